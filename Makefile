# Every target makes the environment it needs, once. `make help` lists them.
#
#   PY=3.13 DJANGO=6.1    another Python, another Django, in an environment of its own
#   ONCE=1                `make demo` ends after its scenarios
#   ARGS='-k guidance'    passed to pytest, or to the benchmark

.DEFAULT_GOAL := help
.PHONY: help demo test check bench bench-large screenshots clean
SHELL := /bin/sh

VENV := .venv$(if $(PY),-$(PY))$(if $(DJANGO),-django$(DJANGO))
BIN := $(VENV)/bin

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.demo ## run the example site, a worker and a simulated provider on this machine
	$(BIN)/python -m example_project.demo $(if $(ONCE),--once)

test: $(VENV)/.dev ## run the tests: SQLite always, other databases and brokers where they answer
	scripts/test $(BIN)/python $(ARGS)

check: $(VENV)/.dev ## lint, format, types, rooms, migrations, provider tables
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m django makemigrations --check --dry-run --settings=tests.settings --pythonpath=.
	$(BIN)/jobtrack check providers

bench: $(VENV)/.dev ## measure the shipped worker beside a plain Celery task
	$(BIN)/python -m benchmarks $(ARGS)

bench-large: $(VENV)/.dev ## measure the pages over a million operations, on PostgreSQL or MariaDB
	$(BIN)/python -m benchmarks.large $(ARGS)

screenshots: $(VENV)/.dev ## take the pictures of the docs anew, with the system's Chromium
	$(BIN)/python -m pytest -q --ds=tests.browser.settings tests/browser/screenshots.py

clean: ## remove environments, builds and caches
	rm -rf .venv* dist build var htmlcov .coverage* .hypothesis .*_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.demo $(VENV)/.dev: $(VENV)/.%: pyproject.toml scripts/environment
	PY=$(PY) DJANGO=$(DJANGO) scripts/environment $(VENV) $*
	@touch $@
