//! Reading one shell command of about 200 bytes.
//!
//! Target: 100 us at p50.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};

const READS: &str = "git log --oneline --no-decorate -n 50 -- src/shell/lexer.rs src/shell/expand.rs src/shell/table.rs | grep -n 'a pattern of words' | sort -k2,2 -t: | uniq -c | head -n 20 | cut -c1-120 | tail -n 5 | cat";
const WRITES: &str = "cd /srv/app && for f in $(find . -name '*.log' -mtime +7); do sudo timeout 30 rm -f \"$f\"; done; curl -sSf -X POST -d \"{\\\"host\\\": \\\"$(hostname)\\\"}\" https://hooks.example.com/done > /dev/null 2>&1";

fn shell(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("shell");
    group.bench_function("reads", |bencher| {
        bencher.iter(|| tools::shell::read(black_box(READS)))
    });
    group.bench_function("writes", |bencher| {
        bencher.iter(|| tools::shell::read(black_box(WRITES)))
    });
    group.finish();
}

criterion_group!(benches, shell);
criterion_main!(benches);
