# Every target sets itself up in .venv from Python 3.11+, pip and make alone.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: help reproduce test audit numbers bench format clean

help:
	@echo "make reproduce   the paper's experiments: claims printed, figures and report in results/"
	@echo "make test        format check, lint, types, tests"
	@echo "make audit       how often the promise breaks, in results-audit/; saver audit --full for more"
	@echo "make numbers     every collector on every scenario, written to benchmarks/results/numbers.md"
	@echo "make bench       timing tables, written to benchmarks/results/"
	@echo "make format      rewrite the sources in the house format"

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "saver needs Python 3.11 or newer; run: make PYTHON=/path/to/python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test]"
	@touch $@

reproduce: $(READY)
	$(BIN)/saver reproduce --out results

test: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest -n 2 --dist worksteal

audit: $(READY)
	$(BIN)/saver audit --quick --out results-audit

numbers: $(READY)
	$(BIN)/python benchmarks/run.py numbers

bench: $(VENV)/.peers
	$(BIN)/python benchmarks/run.py

$(VENV)/.peers: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test,peers]"
	@touch $@

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) results .mypy_cache .pytest_cache .ruff_cache .hypothesis
