#!/usr/bin/env bash
# Measures the figures of docs/performance.md; arguments go to the driver (`bench/run.sh --quick`, `bench/run.sh calls`).
# Builds in the release profile, which takes minutes; TOOLGATE_BENCH_PROFILE=quick shows that everything works.
set -euo pipefail
cd "$(dirname "$0")/.."

profile=${TOOLGATE_BENCH_PROFILE:-release}
cargo build --profile "$profile" --package sidecar --package control-plane --package bench

out=target/bench
mkdir -p "$out"
raw=$out/$(date -u +%Y%m%dT%H%M%SZ).txt
{
  rm -rf target/criterion
  cargo bench --profile "$profile" --package policy --bench decision -- --noplot
  cargo bench --profile "$profile" --package tools --bench classify -- --noplot
  cargo bench --profile "$profile" --package chain --bench verify -- --noplot
  cargo bench --profile "$profile" --package bench --bench verdict -- --noplot
  cargo bench --profile "$profile" --package bench --bench token -- --noplot
  "target/$profile/bench" --table "$out/table.md" "$@"
} 2>&1 | tee "$raw"
echo "raw output: $raw"
