# Everything a newcomer needs: `make up` shows a real plan, `make test` proves the checkout works.
# Needs Python 3.11 or newer, git, make and a package index. Choose another Python with PYTHON=python3.12.

PYTHON ?= python3
WORKERS ?= auto
VENV := .venv
BIN := $(VENV)/bin
HOST ?= 127.0.0.1
PORT ?= 8000
TEST ?= tests

.PHONY: up install test test-all test-postgres spreadsheet lint bench nightly lock clean
.DEFAULT_GOAL := install

up: install
	@exec $(BIN)/clusterwright up --host $(HOST) --port $(PORT)

install: $(VENV)/installed

# A file at a time on each processor: fixtures that serve a whole file stay on one. In the order of folders, not of how many tests a
# file has: the solver's, of a few seconds each, come last, and the processors end together. Properties of random problems are tested
# on a few of them (tests/seeds.py). Modules are compiled once, whatever the shell says: every process would do it again. At the end:
# processor seconds by folder, the slowest files and tests. WORKERS: processes of tests, as many as processors unless stated.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -p tests.processor_time -n $(WORKERS) --dist loadfile --no-loadscope-reorder
test: $(VENV)/installed-dev
	$(PYTEST) $(TEST)

# The same on every random problem: what continuous integration runs.
test-all: $(VENV)/installed-dev
	ALL_SEEDS=1 $(PYTEST) $(TEST)

# What `make test` does not: the tests of the service on the PostgreSQL that CLUSTERWRIGHT_TEST_DATABASE_URL names: each file
# works on a database of its own, a copy of one seeded once, so the role must be allowed to create databases.
test-postgres: $(VENV)/installed-dev
	@test -n "$$CLUSTERWRIGHT_TEST_DATABASE_URL" || { echo "set CLUSTERWRIGHT_TEST_DATABASE_URL=postgresql+psycopg://user:password@host/database"; exit 2; }
	$(PYTEST) -k postgresql tests/service

# Workbooks of comparisons, computed by LibreOffice Calc: apt-get install libreoffice-calc, or SOFFICE=path. Fails without.
spreadsheet: $(VENV)/installed-dev
	$(BIN)/python -m tests.spreadsheet

lint: $(VENV)/installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/installed-dev
	$(BIN)/python -m tests.bench
	ALL_SEEDS=1 $(BIN)/python -m tests.bench.brute_force_verdicts
	$(BIN)/python -m tests.bench.simulation
	$(BIN)/python -m tests.bench.class_plans
	$(BIN)/python -m tests.bench.bucket_ilp
	$(BIN)/python -m tests.bench.fleet_plans
	$(BIN)/python -m tests.bench.why_answers
	$(BIN)/python -m tests.bench.screening
	$(BIN)/python -m tests.bench.oracle
	$(BIN)/python -m tests.bench.claims
	$(BIN)/python -m tests.bench.partitions
	$(BIN)/python -m tests.bench.lasting_queues
	$(BIN)/python -m tests.bench.measured_mixes
	$(BIN)/python -m tests.bench.tco_compare
	$(BIN)/python -m tests.bench.tco_command
	$(BIN)/python -m tests.bench.tco_verdicts

# Every night, on a database that may be written to: some hours. FUZZ passes on options, such as --requests 2000.
nightly: $(VENV)/installed-fuzz
	$(BIN)/python -m tests.hostile.fuzz $(FUZZ)
	$(BIN)/python -m tests.hostile.corpus

# After a change of dependencies in pyproject.toml: needs the public index.
lock: $(BIN)/python
	$(BIN)/python -m venv $(VENV)/lock
	$(VENV)/lock/bin/python -m pip install --quiet --require-hashes -r requirements/lock.txt
	$(VENV)/lock/bin/uv lock
	for group in build dev fuzz lock; do \
		$(VENV)/lock/bin/uv export --quiet --locked --no-header --no-annotate --only-group $$group -o requirements/$$group.txt; done
	$(VENV)/lock/bin/uv export --quiet --locked --no-header --no-annotate --no-dev --no-emit-project -o requirements/service.txt

clean:
	rm -rf $(VENV)

# The environment itself: made once.
$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) was not found; install Python 3.11 or newer, or set PYTHON="; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is $$($(PYTHON) -V 2>&1); Python 3.11 or newer is needed, set PYTHON="; exit 2; }
	@echo "making the environment $(VENV)"
	@$(PYTHON) -m venv $(VENV)

# What uv.lock locks, each file checked against its hash (requirements/ is exported from it; make lock). The project itself is
# built by the locked backend, not by one fetched for the occasion.
$(VENV)/installed: pyproject.toml requirements/service.txt requirements/build.txt | $(BIN)/python
	@echo "installing the locked packages, then compiling the simulation: once, a minute or two"
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/service.txt -r requirements/build.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	$(BIN)/python -m solver.engine.compile
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed requirements/dev.txt
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/dev.txt
	@touch $@

$(VENV)/installed-fuzz: $(VENV)/installed-dev requirements/fuzz.txt
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/fuzz.txt
	@touch $@
