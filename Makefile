# Two commands do everything on a fresh machine: `make demo` and `make test`.
PROFILE := --profile quick
CARGO   := cargo
# Programs under test can be told to die at named points (net::crash).
CRASHES := --features sidecar/crash-points,control-plane/crash-points

.PHONY: setup check demo test conformance interop bench fuzz deny

## Installs what is missing: Postgres, Redis, nginx, the real MCP servers and clients of the tests.
setup:
	tests/setup.sh

## Format and lints, as every commit passes them.
check:
	$(CARGO) fmt --all --check
	$(CARGO) clippy $(PROFILE) --workspace --all-targets --quiet -- -D warnings

## One allowed call, one denied, one that waits for you, and the chain that recorded them.
demo:
	$(CARGO) build $(PROFILE) --quiet --package cli
	target/quick/toolgate demo $(shell test -t 0 || echo --yes)

## Everything that main must pass: under 30 minutes from a cold clone on 2 cores.
test: setup check
	# One selection of packages for both: another would build the dependencies a second time, with other features.
	$(CARGO) build $(PROFILE) --workspace --bins --tests $(CRASHES)
	$(CARGO) test $(PROFILE) --workspace --no-fail-fast $(CRASHES)

## The official conformance suite of MCP, directly and through a sidecar; writes the tables of docs/mcp.md.
conformance:
	$(CARGO) build $(PROFILE) --quiet --package cli
	tests/conformance/run.sh

## Real MCP servers and clients, each pair directly and through Toolgate; writes the tables of docs/interop.md.
interop: setup
	$(CARGO) build $(PROFILE) --quiet --package cli
	tests/interop/run.sh

## The figures of docs/performance.md.
bench:
	bench/run.sh

## Each fuzz target for 60 seconds.
fuzz:
	fuzz/run.sh

## Licences, sources and bans of dependencies.
deny:
	command -v cargo-deny >/dev/null || $(CARGO) install --locked cargo-deny
	$(CARGO) deny check licenses bans sources
