#!/usr/bin/env bash
# Installs what the tests need and is not there yet: Postgres, Redis (with TLS and Sentinel), nginx, the real MCP servers and the Python clients.
# As root it installs Debian's packages itself; otherwise it prints the line to run.
set -euo pipefail
cd "$(dirname "$0")"

packages=()
want() { # want COMMAND-OR-GLOB PACKAGE
  compgen -G "$1" >/dev/null || command -v "$1" >/dev/null 2>&1 || packages+=("$2")
}
want '/usr/lib/postgresql/*/bin/initdb' postgresql
want redis-server redis-server
want redis-sentinel redis-sentinel
want nginx nginx-light
want npm npm
want jq jq
want curl curl
want git git
want cc build-essential
python3 -c 'import ensurepip' 2>/dev/null || packages+=(python3-venv)

if ((${#packages[@]})); then
  if [[ $(id -u) == 0 ]]; then
    # Debian's packages start servers of their own at installation; the tests never use them.
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
  else
    echo "missing packages; run: sudo apt-get install -y ${packages[*]}" >&2
    exit 1
  fi
fi

if ! cmp -s servers/package-lock.json servers/node_modules/.installed; then
  (cd servers && npm ci --no-audit --no-fund --loglevel=error)
  cp servers/package-lock.json servers/node_modules/.installed
fi

venvs=../target/venvs
mkdir -p "$venvs"
for list in python/*.txt; do
  venv=$venvs/$(basename "$list" .txt)
  if ! cmp -s "$list" "$venv/.installed"; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --requirement "$list"
    cp "$list" "$venv/.installed"
  fi
done
