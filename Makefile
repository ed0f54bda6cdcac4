# Tidepool in two commands: make up, make test. `make` alone lists them all.
SHELL := /bin/bash
PYTHON ?= python3
SLOW ?= 1
export TIDEPOOL_HOME ?= $(CURDIR)/.tidepool
export TIDEPOOL_NODE_PREFIX ?= $(TIDEPOOL_HOME)/node
export PYTHON
BIN := .venv/bin
PYTEST := $(BIN)/python -X faulthandler -m pytest
# A story with real processes gets two more chances in CI; the report names every one that took one.
RERUNS := $(if $(CI),--reruns 2 --reruns-delay 2)

.DEFAULT_GOAL := help
.PHONY: help up node test check bench demo environment test-environment

help: ## List the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1|\2/' | column -t -s '|'

up: environment node ## Start everything in the foreground; Ctrl-C stops it
	@exec $(BIN)/python manage.py up

node: environment ## Fetch runc and CRIU into the state folder, nothing system-wide
	@$(BIN)/python -m agents.toolchain --prefix "$(TIDEPOOL_NODE_PREFIX)"

test: check node ## Everything that must pass; SLOW=0 leaves out what takes real processes
	$(PYTEST) -m "not slow" -n 2 --maxprocesses 2 --dist loadfile $(RERUNS)
ifneq ($(SLOW),0)
	$(PYTEST) -m slow -n 0 --durations 10 $(RERUNS)
endif

check: test-environment ## Style, types, import contracts, migrations
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python manage.py check --settings tests.settings
	$(BIN)/python manage.py makemigrations --check --dry-run --settings tests.settings

bench: test-environment node ## Measure, one JSON line a figure
	@$(BIN)/python -m tests.benchmarks

demo: environment ## Play the story against the running product
	@$(BIN)/python manage.py demo

environment:
	@.ci/environment simulator,examples,node

test-environment:
	@.ci/packages
	@.ci/environment dev require-torch
	@if [ "$$CI" = true ]; then $(BIN)/python -V; fi
