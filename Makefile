# `make run` and `make test` are all a newcomer needs: both set everything up first.

PYTHON3 ?= python3
VENV := .venv
PYTHON := $(VENV)/bin/python
READY := $(VENV)/.ready
PYTEST := $(PYTHON) -m pytest
# More than a small machine has cores: many tests wait for a terminal, a process or a pace.
JOBS ?= 4
# Whole files to each, in the order of tests/conftest.py: the long ones first.
SPREAD := -n $(JOBS) --dist loadfile --no-loadscope-reorder
SOURCES := musepi_tui tests

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Byte code makes every start after the first one several times faster.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup run demo fmt lint types imports test test-quick test-slow snap e2e bench docs wheel check lock clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY)  ## make .venv with the locked dependencies and musepi itself

$(READY): requirements.lock pyproject.toml
	@$(PYTHON3) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "musepi needs Python 3.11 or newer; $(PYTHON3) is older. Try: make PYTHON3=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@test -x $(PYTHON) || $(PYTHON3) -m venv $(VENV) || \
		{ rm -rf $(VENV); echo "$(PYTHON3) cannot make a virtual environment. On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m ensurepip --upgrade >/dev/null
	$(PYTHON) -m pip install --quiet --require-hashes --only-binary :all: -r requirements.lock
	$(PYTHON) -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $(READY)

run: $(READY)  ## start musepi; flags go into ARGS="…"
	@$(PYTHON) -m musepi_tui $(ARGS)

demo: $(READY)  ## start musepi on the built-in demo model
	@$(PYTHON) -m musepi_tui --provider demo --model demo $(ARGS)

fmt: $(READY)  ## format the code and sort imports
	$(PYTHON) -m ruff check --quiet --select I --fix $(SOURCES)
	$(PYTHON) -m ruff format $(SOURCES)

lint: $(READY)  ## check format and style
	$(PYTHON) -m ruff format --check $(SOURCES)
	$(PYTHON) -m ruff check $(SOURCES)

types: $(READY)  ## check types
	$(PYTHON) -m basedpyright

imports: $(READY)  ## check that layers import only what is below them
	$(VENV)/bin/lint-imports

test: $(READY)  ## run every test; pytest flags go into ARGS="…"
	$(PYTEST) $(SPREAD) $(ARGS)

test-quick: $(READY)
	$(PYTEST) $(SPREAD) -m "not slow" $(ARGS)

test-slow: $(READY)  ## run only the slow tests
	$(PYTEST) -m slow $(ARGS)

e2e: $(READY)  ## run the tests that drive musepi in a real terminal (tmux)
	$(PYTEST) tests/e2e $(ARGS)

snap: $(READY)  ## draw the stored screens and the pictures of the README again
	MUSEPI_SNAP=1 $(PYTEST) tests/tui/test_snapshots.py
	$(PYTHON) -m tests.tools.draw_pictures

bench: $(READY)  ## measure start, opening, streaming, decoding and session files; prints a table
	@$(PYTHON) -m tests.bench $(ARGS)

docs: $(READY)  ## write the page of settings again and check every link of the docs
	$(PYTHON) -m tests.tools.write_settings_page
	$(PYTEST) tests/architecture/test_docs.py

wheel: $(READY)  ## build wheel and sdist into dist/
	$(PYTHON) -m build --no-isolation --outdir dist .

check: lint types imports test-quick  ## what must pass before a commit

# Needs uv. The lock holds hashes and no addresses.
lock:  ## choose the newest allowed dependencies and write requirements.lock
	uv pip compile pyproject.toml --extra dev --universal --generate-hashes --no-header --no-annotate \
		--python-version 3.11 --upgrade --quiet --output-file requirements.lock

clean:  ## remove everything that was made
	rm -rf $(VENV) dist build .ruff_cache .import_linter_cache .hypothesis .pytest_cache
