# Everything here needs only make and a Python (3.11 or later) that has the venv module.
#   make run PYTHON=python3.12     uses another interpreter
#   make test PYTEST_ARGS=-x       passes arguments on to pytest
#   make test WORKERS=0            runs the tests in one process; the default is one per core

PYTHON ?= python3
VENV ?= .venv
PLAN ?= examples/mnist-tutorial.toml
PYTEST_ARGS ?=
WORKERS ?= auto
# The release of PyTorch that the adapters are tested with; any from 2.3 on will do.
TORCH ?= torch==2.13.0

BIN := $(VENV)/bin
LOWEST := $(VENV)-lowest
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq install --no-compile
PYTEST := $(BIN)/python -m pytest
# Each process takes neighbouring tests, which share what they cache, and the idle one takes over.
PARALLEL := -n $(WORKERS) --dist worksteal
# Every test is in exactly one of these three, of which the last two need all extras.
QUICK := not slow and not extras
EXTRAS := extras and not slow
SLOW := slow
# One real run of each engine, though it is slow: Flower, Ray, PostgreSQL, a browser, trainers.
ENGINES := tests/adapters/flower/test_killed_server.py tests/adapters/ray/test_executor.py \
    tests/ledger/test_crashes.py tests/reports/test_browser.py tests/adapters/test_examples.py
REAL := trainer_steps_privately or killed_server or byte_for_byte or a_server_that_crashes or (curve_is_drawn and 1200-light)
# Of the slow tests, one in ONE_IN: every day others, and those of another day by its date as DRAW.
ONE_IN ?= 10
DRAW ?= $(shell date -u +%F)
# Every room, answered and not only imported, for `make test-lowest`.
LIGHT := hockeystick tests/test_readme.py tests/accountants/test_leaves.py tests/cli/test_questions.py \
    tests/privacy_loss/decentralised/test_decentralised.py
LINT := echo "== ruff, import contracts" && $(BIN)/python -m ruff check -q && \
    $(BIN)/python -m ruff format -q --check && $(BIN)/lint-imports --no-logo
# Without more, all that setup.cfg names: the tests and benchmarks as well.
TYPES := echo "== mypy" && $(BIN)/python -m mypy
# With --store, `make notebooks` has the notebooks keep what they show.
STORE ?=
SETUP := setup.cfg pyproject.toml
# Hundreds of processes start in a test run; where no bytecode is kept, each compiles all anew.
unexport PYTHONDONTWRITEBYTECODE
# Compiled kernels do not notice that a kernel which they call has changed, so all are compiled then.
KERNELS := $(shell cat hockeystick/kernels/*.py | cksum | cut -d ' ' -f 1)
export NUMBA_CACHE_DIR ?= $(CURDIR)/$(VENV)/numba-$(KERNELS)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: browser server help run test test-extras test-slow test-all test-lowest check coverage bench docs gallery notebooks clean distclean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(VENV)/.installed ## install, then print epsilon for an example plan
	@$(BIN)/hockeystick epsilon $(PLAN)

# Plain assertions halve what collecting costs in a fresh clone; what fails is run again by itself,
# with its values shown.
test: $(VENV)/.installed-test ## install, then lint, the package's types and imports, and the quick tests
	@$(LINT)
	@$(TYPES) hockeystick >$(VENV)/types 2>&1 & types=$$!; \
	$(PYTEST) $(PARALLEL) --assert=plain -m "$(QUICK)" $(PYTEST_ARGS); status=$$?; \
	[ $$status != 1 ] || $(PYTEST) --last-failed --last-failed-no-failures none -m "$(QUICK)"; \
	wait $$types || status=1; cat $(VENV)/types; exit $$status

test-extras: $(VENV)/.installed-all ## with every extra, the quick tests that need one and a run of each engine
	@$(PYTEST) $(PARALLEL) -m "$(EXTRAS)" hockeystick tests benchmarks $(PYTEST_ARGS)
	@$(PYTEST) -m "" -k "$(REAL)" $(ENGINES)

test-slow: $(VENV)/.installed-all ## with every extra, a tenth of the slow tests: ONE_IN=1 for all of them
	@$(PYTEST) $(PARALLEL) -m "$(SLOW)" --one-in $(ONE_IN) --draw "$(DRAW)" hockeystick tests benchmarks $(PYTEST_ARGS)

test-all: $(VENV)/.installed-all check ## with every extra, all tests, and fresh examples
	@HYPOTHESIS_PROFILE=fresh $(PYTEST) $(PARALLEL) -m "" hockeystick tests benchmarks $(PYTEST_ARGS)

test-lowest: $(LOWEST)/.installed ## with the lowest releases that setup.cfg allows, a light part of the tests
	@NUMBA_CACHE_DIR=$(LOWEST)/numba-$(KERNELS) $(LOWEST)/bin/python -m pytest $(PARALLEL) $(LIGHT) $(PYTEST_ARGS)

check: $(VENV)/.installed-test ## lint, formatting, types and import contracts only
	@$(LINT)
	@$(TYPES)

notebooks: $(VENV)/.installed-all ## run the notebooks: results as stored, claims that hold, no warnings
	@$(BIN)/python -m tests.notebooks.runs $(STORE)

coverage: $(VENV)/.installed-test ## the usual tests, with the lines they miss
	@$(PYTEST) $(PARALLEL) --cov $(PYTEST_ARGS)

bench: $(VENV)/.installed-all ## speed, width and soundness beside peers: writes benchmarks/REPORT.md
	@$(BIN)/python -m benchmarks.report

docs: $(VENV)/.installed-docs ## build docs/_build/html, warnings being errors; claims take a minute
	@$(BIN)/python -m sphinx -E -W --keep-going -q -b html -d docs/_build/doctrees docs docs/_build/html
	@echo "Built docs/_build/html/index.html"

gallery: $(VENV)/.installed-test ## make the pictures of docs/gallery.md anew, with Chromium
	@$(BIN)/python -m tests.gallery.pictures

browser: ## install Debian's Chromium where there is none, for the tests of the reports' pages
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || { \
	    command -v apt-get >/dev/null || { echo "no apt-get here: install Chromium and its driver yourself"; exit 1; }; \
	    if [ "$$(id -u)" = 0 ]; then as=; else as=sudo; fi; \
	    $$as apt-get update -qq && $$as apt-get install -y -qq --no-install-recommends chromium chromium-driver; }

server: ## install Debian's PostgreSQL and strace where they are missing, for the tests of ledgers
	@{ command -v initdb || ls /usr/lib/postgresql/*/bin/initdb; } >/dev/null 2>&1 && command -v strace >/dev/null || { \
	    command -v apt-get >/dev/null || { echo "no apt-get here: install PostgreSQL and strace yourself"; exit 1; }; \
	    if [ "$$(id -u)" = 0 ]; then as=; else as=sudo; fi; \
	    $$as apt-get update -qq && $$as apt-get install -y -qq --no-install-recommends postgresql strace; }

clean: ## remove what builds and test runs leave behind
	@rm -rf build dist *.egg-info .coverage htmlcov docs/_build
	@rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find . -path "./.venv*" -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## the same, and the virtual environments
	@rm -rf $(VENV) $(LOWEST)

$(VENV)/.created $(LOWEST)/.created:
	@$(PYTHON) -c 'import sys; v = sys.version_info; \
	    sys.exit(None if v >= (3, 11) else "hockeystick needs Python 3.11 or later; $(PYTHON) is %d.%d. Try make PYTHON=python3.11" % v[:2])'
	@echo "Creating the virtual environment $(@D)"
	@rm -rf $(@D)
	@$(PYTHON) -m venv $(@D)
	@touch $@

$(VENV)/.installed: $(SETUP) | $(VENV)/.created
	@echo "Installing hockeystick (once; about a minute)"
	@$(PIP) -e .
	@touch $@

$(VENV)/.installed-test: $(SETUP) | $(VENV)/.installed
	@echo "Installing the test tools (once; about a minute)"
	@$(PIP) -e '.[test]'
	@touch $@

$(VENV)/.installed-docs: $(SETUP) | $(VENV)/.installed
	@echo "Installing what builds the pages (once; about a minute)"
	@$(PIP) -e '.[docs]'
	@touch $@

$(VENV)/.installed-all: $(SETUP) | $(VENV)/.installed-test
	@echo "Installing PyTorch and the other accountants to compare with (once; minutes)"
	@$(PIP) '$(TORCH)'
	@$(PIP) -e '.[test,docs,notebooks,peers,torch,trl,lightning,jax,opacus,optuna,ray,flower,postgres,pandas,examples]'
	@touch $@

# Each `name>=bound` of install_requires, as `name==bound`.
$(LOWEST)/.installed: $(SETUP) | $(LOWEST)/.created
	@echo "Installing the lowest releases that setup.cfg allows (once; about a minute)"
	@sed -n '/^install_requires/,/^$$/s/^ *\(.*\)>=/\1==/p' setup.cfg > $(LOWEST)/lowest.txt
	@$(LOWEST)/bin/python -m pip --disable-pip-version-check -qq install -e '.[report,explore,verify,ledger]' -r $(LOWEST)/lowest.txt \
	    hypothesis pytest pytest-xdist
	@touch $@
