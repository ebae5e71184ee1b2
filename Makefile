# make run      set up, then open the dashboard
# make test     set up, then run the tests (browser tests where Chromium is installed)
# make check    format, lint, types, layers, layout
# make fix      let the tools repair what they can
# make bench    run every benchmark; one JSON object each
# make soak     minutes to hours: slow tests, and property tests with many more examples
# make setup    virtual environment, dependencies, sample weights

VENV ?= .venv
PYTHON ?= python3
ARGS ?=
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup-done
BENCHMARKS ?= overhead batching queueing pool pooling swap

.DELETE_ON_ERROR:
.PHONY: run test check fix bench soak setup

run: $(STAMP)
	$(BIN)/millpond run $(ARGS)

test: $(STAMP)
	$(BIN)/python -m pytest -q $(ARGS)

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/test_layout.py

fix: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP)
	set -e; for name in $(BENCHMARKS); do $(BIN)/python -m benchmarks.$$name --json -; done

soak: $(STAMP)
	$(BIN)/python -m pytest -q -m "slow or hypothesis" --timeout=3600 --hypothesis-profile=soak $(ARGS)

setup: $(STAMP)

# torch comes first and alone, so that a CPU wheel is taken where one is offered.
# Weights are optional: without a network, the set-up ends with one line that says what to do.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("Millpond needs Python 3.11 or later: make PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev,setup]'
	$(BIN)/python -m sample_models.fetch --optional
	@touch $@
