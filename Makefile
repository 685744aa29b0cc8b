# BrookMQ: `make setup` once, then the other targets. Everything lands in .venv; nothing is installed elsewhere.

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check
REGISTER := BROOKMQ_COMPILE=0 $(PIP) --no-deps --no-build-isolation --editable .
DEV := $(VENV)/.setup-dev
RUN := $(VENV)/.setup-run
ARGS ?=

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup setup-test build run demo test test-long check format bench fuzz docs lock clean distclean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-11s %s\n", $$1, $$2 }'

setup: $(DEV) build ## Make .venv with everything to use, test and develop BrookMQ
	@echo "ready: $(VENV)/bin/brookmq"

setup-test: ## Install the Debian packages that tests with other programs use
	@.ci/debian-packages mosquitto mosquitto-clients postgresql

run: $(if $(wildcard $(DEV)),$(DEV),$(RUN)) build ## Install what a node needs, then start it (ARGS="--mqtt HOST:PORT ...")
	@exec $(VENV)/bin/brookmq start $(ARGS)

demo: setup ## A thousand devices, the pipeline on Spark, and a picture of what came out
	@echo "preparing Spark (a minute, the first time) ..."
	@$(PY) -m brookmq.spark.warming >/dev/null 2>&1 || true
	@$(PY) -m demo $(ARGS)

build: ## Compile the hot modules that changed
	@$(PY) setup.py --quiet build_ext --inplace

test: setup setup-test ## Run the tests, compiled and as plain Python
	@$(PY) .ci/test.py $(ARGS)

test-long: setup setup-test ## Run the tests that take minutes
	@$(PY) -m pytest -m long $(ARGS)

check: $(DEV) ## Lint, formatting, types, import rules
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports

format: $(DEV) ## Format the sources and fix what can be fixed
	@$(VENV)/bin/ruff check --fix .
	@$(VENV)/bin/ruff format .

bench: setup ## Measure side by side with Mosquitto
	@$(PY) -m bench $(ARGS)

FUZZ_SECONDS ?= 600
fuzz: setup ## Feed a broker what peers may do, guided by coverage (FUZZ_SECONDS=600)
	@mkdir -p build/fuzz
	@$(PY) -m fuzz.fuzz_channel -max_total_time=$(FUZZ_SECONDS) -artifact_prefix=build/fuzz- build/fuzz fuzz/corpus $(ARGS)

docs: $(DEV) ## Write the generated parts of the guide
	@$(PY) -m brookmq.base.config.guide docs/guide/configuration.md
	@$(PY) -m brookmq.spark.rules.guide docs/guide/rules.md
	@$(PY) -m brookmq.spark.guide docs/guide/spark.md

# Hashes and versions only, no addresses: pip's own settings say where packages come from.
LOCK := $(VENV)/bin/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes \
	--no-annotate --custom-compile-command "make lock" --quiet
lock: $(PY) ## Write the lock files anew (ARGS=--upgrade for newer versions)
	@test -x $(VENV)/bin/uv || $(PIP) uv
	$(LOCK) --extra dev --output-file requirements-dev.lock $(ARGS)
	$(LOCK) --extra build --constraint requirements-dev.lock --output-file requirements-run.lock $(ARGS)

clean: ## Remove what was built and cached
	@rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis src/*.egg-info
	@find src tests bench demo -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
	@find src \( -name '*.so' -o -name '*.c' \) -delete

distclean: clean ## clean, and remove .venv
	@rm -rf $(VENV)

$(PY):
	@$(PYTHON) .ci/prerequisites.py
	@$(PYTHON) -m venv $(VENV)

$(RUN): requirements-run.lock pyproject.toml setup.py | $(PY)
	@echo "installing what a node needs ..."
	@$(PIP) --require-hashes --requirement requirements-run.lock
	@$(REGISTER)
	@touch $@

$(DEV): requirements-dev.lock pyproject.toml setup.py | $(PY)
	@echo "installing everything ..."
	@$(PIP) --require-hashes --requirement requirements-dev.lock
	@$(REGISTER)
	@touch $@ $(RUN)
