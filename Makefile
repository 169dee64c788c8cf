# Every target sets itself up in .venv from Python 3.11+, pip and make alone.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: help reproduce test test-full quick docs audit audit-guardrails audit-losses audit-vetoes audit-unknown audit-logged chaos coverage golden numbers bench format clean

help:
	@echo "make reproduce   the paper's experiments: claims printed, figures and report in results/"
	@echo "make test        format check, lint, types, tests"
	@echo "make test-full   the same tests with all cases of the large grids; an hour"
	@echo "make docs        the documentation as a site in site/; open site/index.html"
	@echo "make quick       lint and the tests that are not slow, within a minute"
	@echo "make audit       how often the promise breaks, in results-audit/; saver audit --full for more"
	@echo "make audit-guardrails  the same with guardrails, in benchmarks/results/guarded-audit.md; an hour"
	@echo "make audit-losses  the same with lost and late feedback, in benchmarks/results/losses-audit.md; an hour"
	@echo "make audit-vetoes  the same where somebody chooses by where trials start, in benchmarks/results/veto-audit.md"
	@echo "make audit-unknown  the same with unknown transitions, in benchmarks/results/unknown-audit.md"
	@echo "make audit-logged  the same where campaigns begin with a log, in benchmarks/results/logged-audit.md; half an hour"
	@echo "make chaos       350 kills of workers and leaders in each store, in benchmarks/results/chaos.md"
	@echo "make coverage    lines of src/ and audit/ that the tests run, kernels without the compiler; half an hour"
	@echo "make golden      write anew the numbers that equal seeds must give; says which rows changed"
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
	$(BIN)/saver warm & warm=$$!; $(BIN)/mypy; typed=$$?; wait $$warm && exit $$typed
	$(BIN)/pytest -n 2 --dist worksteal

test-full: $(READY)
	$(BIN)/saver warm
	$(BIN)/pytest -n 2 --dist worksteal --full

docs: $(READY)
	rm -rf build/docs
	$(BIN)/python docs/stage.py build/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# What a developer runs while working: everything but the tests marked slow.
quick: $(READY)
	$(BIN)/ruff check .
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow"

audit: $(READY)
	$(BIN)/saver audit --quick --out results-audit

audit-guardrails: $(READY)
	$(BIN)/python benchmarks/run.py guarded-audit

audit-losses: $(READY)
	$(BIN)/python benchmarks/run.py losses-audit

audit-vetoes: $(READY)
	$(BIN)/python benchmarks/run.py veto-audit

audit-unknown: $(READY)
	$(BIN)/python benchmarks/run.py unknown-audit

audit-logged: $(READY)
	$(BIN)/python benchmarks/run.py logged-audit

chaos: $(READY)
	$(BIN)/python benchmarks/run.py chaos

# Compiled functions count where they run without the compiler: the kernels' tests twice, everything else once.
coverage: $(READY)
	rm -f .coverage .coverage.*
	-NUMBA_DISABLE_JIT=1 $(BIN)/coverage run -m pytest -p no:xdist -o addopts= -o filterwarnings= -W ignore -q \
		tests/safety/test_safety.py tests/safety/test_ledger_numbers.py tests/design/test_closed_designs.py tests/engine/test_engines.py \
		-k "not gridworld and not memory and not long_run and not at_random and not exact and not saver-opt"
	$(BIN)/coverage run -m pytest -n 2 --dist worksteal -q
	$(BIN)/coverage combine -q
	$(BIN)/coverage report --sort=cover --fail-under=95

golden: $(READY)
	$(BIN)/python tests/golden.py

numbers: $(READY)
	$(BIN)/python benchmarks/run.py numbers planning

bench: $(VENV)/.peers
	$(BIN)/python benchmarks/run.py

$(VENV)/.peers: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test,peers]"
	@touch $@

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) results build site .mypy_cache .pytest_cache .ruff_cache .hypothesis
