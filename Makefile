# The door to the build. The work is done by Meson, Ninja and the programs in tools/; see docs/HACKING.md.

PREFIX  ?= /usr/local
DESTDIR ?=
SEEDS   ?= 100000
SEED    ?= 1
SECONDS ?= 60

# A part of the test run by name, for example `make test PARTS="unit-asan sim"`; empty means all.
PARTS ?=

.DEFAULT_GOAL := build
.PHONY: build run test test-long check sim mutants bench fuzz coverage asan tsan install uninstall clean help

# One word for the shell, whatever it holds.
quoted = '$(subst ','\'',$(1))'

# Refuses a variable that is no whole number from $(2) on, before anything is built.
whole_number = @case $(call quoted,$($(1))) in \
    '' | *[!0-9]* | ????????????????????*) bad=1 ;; \
    *) if [ $(call quoted,$($(1))) -ge $(2) ] 2>/dev/null; then bad=0; else bad=1; fi ;; \
    esac; \
    [ $$bad = 0 ] || { printf 'make %s: %s must be a whole number from %s on, not "%s"\n' \
    $@ $(1) $(2) $(call quoted,$($(1))) >&2; exit 2; }

build: ## build the release variant: build/sluice
	@tools/setup build
	@tools/build release

run: build ## build, then run the server on its data folder, sluice-data
	@build/sluice serve

test: ## every test, or PARTS; ends with "N passed, N failed"
	@tools/setup build test
	@tools/test $(PARTS)

test-long: ## the long runs: 100,000 power cuts, 600 kills; half an hour
	@tools/setup build test
	@tools/test --long $(PARTS)

check: ## the source checks alone
	@tools/setup build test
	@tools/test build checks

sim: ## simulate SEEDS runs from SEED on
	$(call whole_number,SEEDS,1)
	$(call whole_number,SEED,0)
	@tools/setup build
	@tools/build release
	@build/tests/sim/sim --seeds $(SEEDS) --first $(SEED)

mutants: build ## prove the simulator with planted bugs
	@python3 tests/sim/mutants/run.py

bench: ## every benchmark
	@tools/setup build bench
	@tools/build release
	@tools/bench

bench-%: ## one benchmark; results go to build/bench/NAME.json
	@tools/setup build bench
	@tools/build release
	@tools/bench $*

fuzz: ## run each fuzzer for SECONDS
	$(call whole_number,SECONDS,1)
	@tools/setup build test
	@tools/build fuzz
	@tools/fuzz $(SECONDS)

coverage: ## line coverage; fails below 95 % of src/core
	@tools/setup build test
	@tools/build coverage
	@tools/coverage

asan: ## build with address sanitizer: build/asan
	@tools/setup build test
	@tools/build asan

tsan: ## build with thread sanitizer: build/tsan
	@tools/setup build test
	@tools/build tsan

install: ## install program, header and libraries below PREFIX
	@tools/setup build
	@tools/install $(call quoted,$(PREFIX)) $(call quoted,$(DESTDIR))

uninstall: ## remove what install put below PREFIX
	@tools/setup build
	@tools/install --remove $(call quoted,$(PREFIX)) $(call quoted,$(DESTDIR))

clean: ## remove build/
	@rm -rf build

help: ## this list
	@sed -n 's/^\([a-z][a-z%-]*\):[^#]*## \(.*\)/\1|\2/p' $(firstword $(MAKEFILE_LIST)) | \
	    sed 's/^bench-%/bench-NAME/' | awk -F'|' '{ printf "  make %-11s  %s\n", $$1, $$2 }'
	@echo
	@echo 'variables, as in "make sim SEEDS=500":'
	@printf '  %-19s  %s\n' \
	    PREFIX=$(call quoted,$(PREFIX)) 'where install puts things' \
	    DESTDIR=$(call quoted,$(DESTDIR)) 'a folder in front of PREFIX, for packages; usually empty' \
	    SEEDS=$(call quoted,$(SEEDS)) 'how many simulations' \
	    SEED=$(call quoted,$(SEED)) 'the first of them' \
	    SECONDS=$(call quoted,$(SECONDS)) 'how long each fuzzer runs' \
	    PARTS=$(call quoted,$(PARTS)) 'parts of the test run; empty: all ("tools/test --list")'
