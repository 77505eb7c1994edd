# Nothing but Python 3.11 or later is needed: everything goes into a virtual environment in here.
PYTHON ?= python3
VENV := .venv
BENCH := .venv-bench
OLDEST := .venv-oldest
OLDEST_PYTHON ?= python3.11
PIP := -m pip install --quiet --quiet --disable-pip-version-check --no-input
DEMO := out/demo
WORKERS ?= 2

.PHONY: demo test sweep-kernels system-kernels test-slow test-browser test-oldest lint bench docs dist clean

# The paper's planning figures and theorems, on this machine's CPU, and the learning results of the
# repository, as one HTML report; and the explorer of policies, which the report links to.
demo: $(VENV)/.installed
	$(VENV)/bin/tsallax reproduce figure1 figure2a figure2b theorems --out $(DEMO)
	$(VENV)/bin/tsallax explore multigoal --out $(DEMO)/explorer.html --report $(DEMO)/index.html
	$(VENV)/bin/tsallax report $(DEMO) results

# Everything that a change must pass.
test: $(VENV)/.installed-test
	@$(MAKE) --no-print-directory -j2 sweep-kernels lint system-kernels
	$(VENV)/bin/python -m pytest -n $(WORKERS) --dist worksteal -q

# With two jobs the second begins when linting ends, and reads what the first has compiled by then.
sweep-kernels: $(VENV)/.installed-test
	@$(VENV)/bin/python tests/compile_kernels.py sweeps

system-kernels: $(VENV)/.installed-test
	@$(VENV)/bin/python tests/compile_kernels.py systems

lint: $(VENV)/.installed-test
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

test-slow: $(VENV)/.installed-test
	$(VENV)/bin/python -m pytest -q -m slow

# The pages in a real browser: the one that is here, or Debian's, or Playwright's.
test-browser: $(VENV)/.installed-test $(VENV)/.installed-browser
	@$(VENV)/bin/python tests/browser.py >/dev/null || { echo "No browser found: installing Chromium"; \
	  [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	  apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null; } || \
	  $(VENV)/bin/playwright install chromium || \
	  { echo "No browser: install Chromium, such as with: apt-get install chromium"; exit 1; }
	@$(VENV)/bin/python tests/browser.py
	$(VENV)/bin/python -m pytest -q tests/paper/page tests/explorer

# The tests with the oldest version of every dependency that pyproject.toml allows.
test-oldest: $(OLDEST)/.installed
	NUMBA_CACHE_DIR=$(abspath $(OLDEST))/kernels \
	  $(OLDEST)/bin/python -m pytest -n $(WORKERS) --dist worksteal -q

# Speed and memory next to the peers, which have an environment of their own.
bench: $(BENCH)/.installed
	$(BENCH)/bin/python benchmarks/operators.py
	$(BENCH)/bin/python benchmarks/planning.py
	$(BENCH)/bin/python benchmarks/learning.py speed memory floor

# The manual, which opens from disk; a warning is an error. It runs the notebooks: about a minute.
docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --quiet --strict
	@echo "The manual is in site/index.html"

# The wheel and the source distribution, into dist/, and the wheel alone on every Python from 3.11 to
# 3.13 that is here, or on those of PYTHONS.
dist: $(VENV)/.installed-dist
	rm -rf dist build src/*.egg-info
	@log=$$($(VENV)/bin/python -m build --sdist --wheel . 2>&1) || { echo "$$log"; exit 1; }
	@rm -rf build src/*.egg-info
	$(VENV)/bin/python tests/wheel_checks.py $(PYTHONS)

clean:
	rm -rf $(VENV) $(BENCH) $(OLDEST) out site build dist src/*.egg-info
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

$(OLDEST)/bin/python:
	@$(OLDEST_PYTHON) -c 'import sys; sys.version_info[:2] == (3, 11) or sys.exit("Python 3.11 is needed, not " + sys.version.split()[0] + ": try make test-oldest OLDEST_PYTHON=...")'
	$(OLDEST_PYTHON) -m venv $(OLDEST)

$(OLDEST)/.installed: pyproject.toml tests/oldest_requirements.py | $(OLDEST)/bin/python
	$(OLDEST)/bin/python tests/oldest_requirements.py > $(OLDEST)/constraints.txt
	$(OLDEST)/bin/python $(PIP) --constraint $(OLDEST)/constraints.txt --editable ".[test]"
	@touch $@
