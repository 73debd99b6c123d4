# The door to the build. The work is done by Meson, Ninja and the programs in tools/; see docs/HACKING.md.

PREFIX  ?= /usr/local
DESTDIR ?=
SEEDS   ?= 100000
SEED    ?= 1
SECONDS ?= 60

# A part of the test run by name, for example `make test PARTS="unit-asan sim"`; empty means all.
PARTS ?=

.DEFAULT_GOAL := build
.PHONY: build run test check sim mutants bench fuzz coverage asan tsan install clean help

build: ## build the release variant: build/sluice
	@tools/setup build
	@tools/build release

run: build ## build, then show the version and what the program can do today
	@build/sluice version
	@build/sluice --help

test: ## every test; ends with "N passed, N failed"
	@tools/setup build test
	@tools/test $(PARTS)

check: ## the source checks alone
	@tools/setup build test
	@tools/test build checks

sim: build ## simulate SEEDS runs from SEED on; ends with "N passed, N failed"
	@build/tests/sim/sim --seeds $(SEEDS) --first $(SEED)

mutants: build ## prove the simulator with planted bugs; ends with "N killed, N survived"
	@python3 tests/sim/mutants/run.py

bench: ## every benchmark
	@tools/setup build bench
	@tools/build release
	@tools/bench

bench-%: ## one benchmark; prints "ratio WHAT PEER NUMBER", writes build/bench/NAME.json
	@tools/setup build bench
	@tools/build release
	@tools/bench $*

fuzz: ## run each fuzzer for SECONDS
	@tools/setup build test
	@tools/build fuzz
	@tools/fuzz $(SECONDS)

coverage: ## line coverage of src/core and src/base; fails below 95 % of src/core
	@tools/setup build test
	@tools/build coverage
	@tools/coverage

asan tsan: ## build the variant with sanitizers: build/asan, build/tsan
	@tools/setup build test
	@tools/build $@

install: ## install below DESTDIR/PREFIX, with header, libraries and pkg-config file
	@tools/setup build
	@tools/build release --prefix "$(PREFIX)"
	@DESTDIR="$(DESTDIR)" meson install -C build --no-rebuild --quiet
	@echo "installed below $(DESTDIR)$(PREFIX)"

clean: ## remove build/
	@rm -rf build

help: ## this list
	@sed -n 's/^\([a-z][a-z %-]*\):[^#]*## \(.*\)/\1|\2/p' $(firstword $(MAKEFILE_LIST)) | \
	    sed 's/^bench-%/bench-NAME/' | awk -F'|' '{ printf "  make %-12s %s\n", $$1, $$2 }'
