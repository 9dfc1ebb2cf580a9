#!/usr/bin/env bash
# Runs each fuzz target for a minute, and the differential test of decisions a million times (`fuzz/run.sh json_document` only that one); exits with 1 when one finds something.
# TOOLGATE_FUZZ_SECONDS is the time of each. What was learnt stays in fuzz/corpus, findings go to fuzz/artifacts; both are not committed.
set -euo pipefail
cd "$(dirname "$0")"

seconds=${TOOLGATE_FUZZ_SECONDS:-60}
toolchain=${TOOLGATE_FUZZ_TOOLCHAIN:-nightly}
(($#)) && targets=("$@") || targets=(json_document policy_yaml policy_decide policy_edit chain_lines mcp_envelope config_yaml shell_text patch_text sql_extract uri_template field_path program_args policy_differential tool_classify jwt_token sse_stream stdio_lines openapi_import openapi_request)

if ! cargo "+$toolchain" --version >/dev/null 2>&1; then
  echo "fuzzing needs Rust's nightly toolchain; run: rustup toolchain install nightly --profile minimal" >&2
  exit 1
fi
if ! command -v c++ >/dev/null; then
  echo "fuzzing needs a C++ compiler; run: sudo apt-get install -y g++" >&2
  exit 1
fi
if ! cargo fuzz --version >/dev/null 2>&1; then
  echo "cargo-fuzz is missing and is being installed (once, some minutes)"
  cargo install cargo-fuzz --locked
fi

# The product forbids unsafe code: what can be found are panics, wrong answers, hangs and hunger, and those need no sanitizer.
fuzz=(cargo "+$toolchain" fuzz)
options=(--fuzz-dir . --sanitizer none)
"${fuzz[@]}" build "${options[@]}"

found=()
for target in "${targets[@]}"; do
  # A mode of its own: a million generated calls, decided by the compiled set and by the reference of policy/tests.
  if [[ $target == policy_differential ]]; then
    cases=${TOOLGATE_POLICY_CASES:-1000000}
    echo "== $target, $cases cases"
    (cd .. && TOOLGATE_POLICY_CASES=$cases cargo test --profile quick -p policy --test properties -- --nocapture \
      the_compiled_set_decides_as_the_reference_does) || found+=("$target")
    continue
  fi
  echo "== $target, $seconds s"
  mkdir -p "corpus/$target"
  extra=()
  [[ -f seeds/$target.dict ]] && extra+=("-dict=seeds/$target.dict")
  "${fuzz[@]}" run "${options[@]}" "$target" "corpus/$target" "seeds/$target" -- \
    "-max_total_time=$seconds" -max_len=4096 -timeout=30 -rss_limit_mb=1024 -print_final_stats=1 -verbosity=0 "${extra[@]}" ||
    found+=("$target")
done

if ((${#found[@]})); then
  echo "findings in: ${found[*]}; inputs are in fuzz/artifacts; in fuzz/, this repeats one: cargo +$toolchain fuzz run ${options[*]} TARGET INPUT" >&2
  exit 1
fi
echo "no findings"
