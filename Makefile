# Nothing but Python 3.11 or later is needed: everything goes into a virtual environment in here.
PYTHON ?= python3
VENV := .venv
BENCH := .venv-bench
PIP := -m pip install --quiet --quiet --disable-pip-version-check --no-input
DEMO := out/demo
WORKERS ?= 2

.PHONY: demo test test-slow lint bench docs clean

# The paper's planning figures and theorems, on this machine's CPU, as one HTML report.
demo: $(VENV)/.installed
	$(VENV)/bin/tsallax reproduce figure1 figure2a figure2b theorems --out $(DEMO)

# Everything that a change must pass.
test: lint
	$(VENV)/bin/python -m pytest -n $(WORKERS) --dist worksteal -q

lint: $(VENV)/.installed-test
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

test-slow: $(VENV)/.installed-test
	$(VENV)/bin/python -m pytest -q -m slow

# Speed and memory next to the peers, which have an environment of their own.
bench: $(BENCH)/.installed
	$(BENCH)/bin/python benchmarks/operators.py
	$(BENCH)/bin/python benchmarks/planning.py
	$(BENCH)/bin/python benchmarks/learning.py speed memory floor

docs: $(VENV)/.installed-docs
	$(VENV)/bin/pdoc --output-directory site --docformat google tsallax '!tsallax.cli'
	@echo "The documentation is in site/index.html"

clean:
	rm -rf $(VENV) $(BENCH) out site build dist src/*.egg-info
	rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python $(BENCH)/bin/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or later is needed, not " + sys.version.split()[0] + ": try make PYTHON=python3.12")'
	$(PYTHON) -m venv $(@:/bin/python=)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(VENV)/bin/python $(PIP) --editable .
	@touch $@

$(VENV)/.installed-%: pyproject.toml | $(VENV)/bin/python
	$(VENV)/bin/python $(PIP) --editable ".[$*]"
	@touch $(VENV)/.installed $@

$(BENCH)/.installed: pyproject.toml | $(BENCH)/bin/python
	$(BENCH)/bin/python $(PIP) --editable ".[bench]"
	@touch $@
