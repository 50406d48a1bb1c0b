# Everything a developer or CI runs. Needs python3 (3.11 or newer) and make, nothing else.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
# Without bytecode each of the hundreds of processes of the tests compiles the package anew.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
DEMO_INPUT ?= rebalance_core/bundled/demo/join-leave/tables
DEMO_COLLECTION ?= tests/recordings/data/nightly/collection
SPARKS ?= 3.5 4.0 4.1 4.2 4.3
VECTORS ?= $(wildcard tests/vectors/*)

BIN := .venv/bin
STAMP := .venv/setup.stamp
LANES := unit or conformance or spark or jobs
NOT_BY_DEFAULT := not (oracle or slow or bench)
# Two workers; tests/conftest.py gives all tests that share a Spark session to one of them.
SIDE_BY_SIDE := -n 2

.PHONY: help setup demo test test-unit test-all test-catalogs test-kills test-sparks test-wheel oracle conformance fidelity degraded live collector calendar prometheus mutants notebook bench \
  bench-full bench-check lint format dist docs lock site test-site clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(STAMP) ## Make .venv from requirements.lock, and find or fetch a Java
	@$(BIN)/python scripts/setup.py java

$(STAMP): requirements.lock pyproject.toml scripts/setup.py
	@$(PYTHON) scripts/setup.py venv

demo: setup ## Simulate one bundled recording in a process and on Spark, and audit another
	$(BIN)/rebalance simulate --input $(DEMO_INPUT) --output out/demo --overwrite
	@echo
	$(BIN)/rebalance simulate --input $(DEMO_INPUT) --output out/demo-spark --overwrite --run-on spark \
	  > /dev/null
	@$(BIN)/python scripts/compare_runs.py out/demo out/demo-spark
	@echo
	$(BIN)/rebalance audit --collection $(DEMO_COLLECTION) --output out/audit --overwrite \
	  || { code=$$?; echo; echo "rebalance ended with exit code $$code"; test $$code -eq 3; }

test: setup ## Run the lanes unit, conformance, spark and jobs
	$(BIN)/python -m pytest -m "($(LANES)) and $(NOT_BY_DEFAULT)" $(SIDE_BY_SIDE) --durations=20

test-unit: setup ## Run the lane that needs no JVM (4 minutes)
	$(BIN)/python -m pytest -m "unit and $(NOT_BY_DEFAULT)" $(SIDE_BY_SIDE)

test-all: setup ## Run every test but the oracle, the slow ones too
	$(BIN)/python -m pytest -m "not oracle"

test-catalogs: setup ## Publish into Parquet, Delta and Iceberg tables, with their real jars (1 GB)
	$(BIN)/python -m scripts.test_catalogs $(CATALOGS)

test-kills: setup ## Kill a publishing process 30 times: make test-kills KILLS=30 SEED=1
	KILLS=$(or $(KILLS),30) SEED=$(or $(SEED),1) $(BIN)/python -m pytest -q -s -m slow tests/spark/test_killed_publish.py

test-sparks: setup ## Jobs, lines and Connect on other Sparks: make test-sparks SPARKS="3.5 4.3" (4 GB)
	$(BIN)/python -m scripts.test_sparks $(SPARKS)

test-wheel: setup ## Install the wheel into fresh environments and run what the tutorial prints
	$(BIN)/python scripts/test_wheel.py

oracle: setup ## Compare random cases with the released Java classes
	$(BIN)/python -m pytest -m oracle

conformance: setup ## Check vector files: make conformance VECTORS="FILE…"
	@$(BIN)/python -m tests.conformance $(VECTORS)

fidelity: setup ## Compare the recordings with 1,000 simulated futures each, for docs/fidelity-figures.md (5 minutes)
	$(BIN)/python -m tests.recordings.timings

degraded: setup ## Damage recordings at random: is the audit honest? make degraded EACH=20 SEED=1, or TRIALS=5000
	@$(BIN)/python -m tests.degraded $(if $(TRIALS),--trials $(TRIALS),--each $(or $(EACH),2)) --seed $(or $(SEED),1) --workers 2

live: setup ## Four nights of a real cluster with planted faults (15 minutes; a JDK, Maven): make live LAB=DIR
	$(BIN)/python -m tests.live --lab $(or $(LAB),.lab)

collector: setup ## Compile the collector's Java into rebalance_core/bundled/collect/classes (a JDK, Maven)
	$(BIN)/python scripts/build_collector.py

calendar: setup ## Fold 30 made nights: is anything gone or new that is not? make calendar NIGHTS=30
	NIGHTS=$(or $(NIGHTS),30) $(BIN)/python -m pytest tests/history

prometheus: setup ## Let a real Prometheus read the metrics of a history (needs Debian's package)
	$(BIN)/python scripts/test_prometheus.py

mutants: setup ## Plant 150 small mistakes, one at a time: do the tests notice? (2 hours; resumes)
	$(BIN)/python -m tests.mutants

notebook: setup ## Run notebooks/*.py into their .ipynb and draw docs/pictures
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes \
	  -r requirements-notebook.lock
	$(BIN)/python scripts/run_notebooks.py

bench: setup ## Measure what it costs, beside others (10 minutes; needs an idle machine)
	$(BIN)/python -m tests.bench --list quick --out out/bench/quick.json

bench-full: setup ## The same at full sizes (hours; 10 GB of disk)
	$(BIN)/python -m tests.bench --list full --out out/bench/full.json

bench-check: bench ## Run bench; is a ratio 20 % worse than what is checked in?
	$(BIN)/python -m tests.bench.check out/bench/quick.json

lint: setup ## Check style, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup ## Fix style and format in place
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

dist: setup ## Build dist/rebalance_core.zip (for --py-files) and the wheel
	$(BIN)/python scripts/build_zip.py dist/rebalance_core.zip
	$(BIN)/python -m hatchling build -t wheel -d dist

GENERATED = audit-rules|data-dictionary|fidelity-figures|performance

docs: setup ## Generate the reference pages of docs/, the types of rows and the list of the public interface
	$(BIN)/python -m rebalance_core.contracts.row_types > rebalance_core/contracts/rows.py
	$(BIN)/python -m rebalance_core.contracts.evidence_types > rebalance_core/ingest/evidence_types.py
	$(BIN)/python -m rebalance_core.contracts.dictionary > docs/data-dictionary.md
	$(BIN)/python -m rebalance_core.audit.rules_page > docs/audit-rules.md
	$(BIN)/python -m tests.bench.page > docs/performance.md
	$(BIN)/python -m tests.unit.public_interface > tests/unit/public_interface.txt
	cp rebalance_core/audit/known_issues.toml docs/known-issues.toml
	$(BIN)/python scripts/bundle_recording.py
	@words=$$(ls README.md docs/*.md | grep -vE '\.zh\.md|$(GENERATED)' | xargs grep -ohE '\S*[A-Za-z0-9]\S*' | wc -l); \
	  echo "$$words words in README.md and docs/*.md, generated and Chinese pages left out; at most 35,000"; \
	  test $$words -le 35000

site: .venv-site/made ## Build the documentation site into out/site, in an environment of its own
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=. .venv-site/bin/mkdocs build --strict

test-site: setup site ## Build the site, open it in Chromium, follow each link
	$(BIN)/python -m pytest -m "" tests/unit/scripts/test_site_in_browser.py

.venv-site/made: requirements-site.txt
	$(PYTHON) -m venv --clear .venv-site
	.venv-site/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-site.txt
	@touch $@

# Rarely needed, so not in the list: resolves pyproject.toml again. Needs uv.
lock:
	sed '/^[^#]/,$$d' requirements.lock > requirements.lock.new
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-emit-find-links --no-header --no-annotate --quiet --extra spark --extra report --group dev \
	  pyproject.toml >> requirements.lock.new
	mv requirements.lock.new requirements.lock
	{ echo "# What \`make notebook\` adds to requirements.lock; made by \`make lock\`."; \
	  uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-emit-find-links --no-header --no-annotate --quiet --group notebook \
	  -c requirements.lock pyproject.toml; } > requirements-notebook.lock

release-check: setup ## Is this tree fit to be released? Version, changelog, tag, wheel, sdist, docs, twine
	$(BIN)/python scripts/release_check.py

clean: ## Remove build products and outputs, but not .venv and .java
	rm -rf dist build out spark-warehouse metastore_db derby.log artifacts
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -not -path './.java/*' -prune -exec rm -rf {} +
