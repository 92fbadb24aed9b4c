# Every target sets up .venv by itself; Python >= 3.11 and make are all it needs.
# PYTHON=python3.12 chooses the interpreter of a new .venv.

PYTHON ?= $(firstword $(foreach p,python3 python3.13 python3.12 python3.11 python,\
  $(if $(shell $(p) -c "import sys; print(sys.version_info >= (3, 11) or '')" 2>/dev/null),$(p))))
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet -c constraints.txt
FILES := pyproject.toml constraints.txt

.DEFAULT_GOAL := help
# Two targets must not install into one .venv at a time.
.NOTPARALLEL:
.PHONY: help demo test lint docs bench clean

help:  ## say what there is
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-6s %s\n", $$1, $$2}' Makefile

demo: .venv/.demo  ## decentralized logistic regression: one table, one figure
	$(BIN)/python -m examples.demo

test: .venv/.dev  ## every test and every docstring's example
	$(BIN)/python -m pytest

lint: .venv/.dev  ## style, types, and which module may import which
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: .venv/.docs  ## the documentation, into docs/_build
	$(BIN)/sphinx-build -W --keep-going --quiet -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

bench: .venv/.dev  ## speed, against rivals on the same machine
	$(BIN)/python -m benchmarks.simulation
	$(BIN)/python -m benchmarks.stacked
	$(BIN)/python -m benchmarks.import_time

clean:  ## remove .venv and everything that a target writes
	rm -rf .venv build dist *.egg-info docs/_build docs/api/generated demo-output
	rm -rf .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find backends benchmarks dectool docs examples sim tests -name __pycache__ -prune -exec rm -rf {} +

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "dectool needs Python >= 3.11, and none is on the PATH; name one: make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || { echo "dectool needs Python >= 3.11, but $(PYTHON) is $$($(PYTHON) -V 2>&1); name another: make PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -m venv .venv || { rm -rf .venv; exit 1; }

# What a target installs ends in a stamp, so that the next run finds it done.
.venv/.demo: .venv/bin/python $(FILES)
	$(PIP) -e '.[data,mpi,plot]'
	@touch $@

.venv/.dev: .venv/bin/python $(FILES)
	$(PIP) -e '.[dev]'
	@touch $@

.venv/.docs: .venv/bin/python $(FILES)
	$(PIP) -e '.[docs]'
	@touch $@
