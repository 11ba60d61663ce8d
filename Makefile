# Each target is complete on a fresh machine that has make and Python 3.11 or newer.
# Versions come from constraints/: ci.txt for everything, oldest.txt for `make test-oldest`, apart.txt for
# `make test-apart`.

PYTHON ?= python3
VENV   ?= .venv
JOBS   ?= auto

AXE    := $(VENV)/npm/node_modules/axe-core/axe.min.js

PIP    := $(VENV)/bin/python -m pip --disable-pip-version-check
PYTEST := $(VENV)/bin/python -m pytest -n $(JOBS)

# pip reads these two, also for the environments in which it builds the package.
export PIP_CONSTRAINT := constraints/ci.txt
export PIP_BUILD_CONSTRAINT := constraints/ci.txt

# What one process has compiled serves the next: the tests start many.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.SECONDARY:
.PHONY: help demo test test-all test-oldest test-apart lint docs site bench bench-fixes bench-gpu compare validate pictures wheel clean extras extras-changed

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14

demo: $(VENV)/.with-core ## a worked example on the terminal, and its report
	$(VENV)/bin/safecal demo

# One thread for each worker: the workers already use every core.
test test-all test-oldest test-apart: export OMP_NUM_THREADS := 1

test: $(VENV)/.with-test ## the fast tests, at most four cases of each: about a minute on two cores
	$(PYTEST) --cases 4

test-all: export SAFECAL_NO_SKIP := 1
test-all: export SAFECAL_AXE := $(abspath $(AXE))
test-all: $(VENV)/.with-test,test-all $(AXE) ## every test, none skipped, with branch coverage; needs chromium, npm, Java and PostgreSQL
	$(PYTEST) -m "" --hypothesis-profile=proof --cov --cov-report=term --durations=20

test-oldest: $(VENV)-oldest/.with-test ## the fast tests on the oldest supported numpy and scipy, at most eight cases of each
	$(VENV)-oldest/bin/python -m pytest -n $(JOBS) --cases 8

test-apart: export SAFECAL_NO_SKIP := 1
test-apart: $(VENV)-apart/.with-test-apart ## the tests of lm_eval, Inspect, NGBoost and skpro, in an environment of their own
	$(VENV)-apart/bin/python -m pytest -n $(JOBS) -m apart

lint: $(VENV)/.with-lint ## ruff, mypy and the docstrings
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy
	$(VENV)/bin/python tools/check_docstrings.py

docs: $(VENV)/.with-test ## run every code block of the documentation
	$(VENV)/bin/python -m pytest -m "" tests/docs/test_blocks.py

# A warning is an error; nothing is fetched while it builds, and nothing when its pages are read.
site: $(VENV)/.with-site ## the documentation as a site, every example of the gallery executed: build/site/index.html
	$(VENV)/bin/python -m sphinx -W --keep-going -j $(JOBS) -d build/site-doctrees docs build/site

bench: $(VENV)-bench/.with-peers ## every peer measured in the same run: bench/results/cpu.json, docs/benchmarks.md
	$(VENV)-bench/bin/python bench/run.py --rows-max 100000000
	$(VENV)-bench/bin/python bench/monitor.py

$(VENV)-bench/.with-peers: export PIP_CONSTRAINT := constraints/bench.txt
$(VENV)-bench/.with-peers: export PIP_BUILD_CONSTRAINT := constraints/bench.txt
$(VENV)-bench/.with-peers: pyproject.toml constraints/bench.txt bench/peers.txt | $(VENV)-bench/.made
	$(VENV)-bench/bin/python -m pip --disable-pip-version-check install --quiet -e '.[bench]' -r bench/peers.txt
	@touch $@

bench-fixes: $(VENV)-bench/.with-peers ## maps beside those of others, docs/fixes.md: make bench-fixes DATA=folder
	$(VENV)-bench/bin/python bench/fixes.py $(DATA)

bench-gpu: ## the GPU benchmark, with the Python of an environment that has torch and CUDA: make bench-gpu PYTHON=...
	PYTHONPATH=src $(PYTHON) bench/gpu.py

compare: $(VENV)-bench/.with-peers ## every peer asked the same questions: bench/results/peers.json, docs/comparison.md
	$(VENV)-bench/bin/python tools/compare_peers.py

validate: $(VENV)/.with-plot,stonesoup $(VENV)/.with-peers ## the published tables of size, power and coverage; resumes where it was stopped
	$(VENV)/bin/python tools/validate.py
	$(VENV)/bin/python tools/validate_recalibration.py > docs/validation/recalibration.md.part
	mv docs/validation/recalibration.md.part docs/validation/recalibration.md
	$(VENV)/bin/python tools/validate_maps.py
	$(VENV)/bin/python tools/validate_verdict.py > docs/validation/verdict.md.part
	mv docs/validation/verdict.md.part docs/validation/verdict.md
	$(VENV)/bin/python tools/validate_slices.py > docs/validation/slices.md.part
	mv docs/validation/slices.md.part docs/validation/slices.md
	$(VENV)/bin/python tools/validate_ensembles.py
	$(VENV)/bin/python tools/tracking_tables.py
	$(VENV)/bin/python tools/validate_monitoring.py

pictures: $(VENV)/.with-cli,sklearn ## the pictures of the documentation; needs chromium
	$(VENV)/bin/python tools/draw_pictures.py

wheel: $(VENV)/.with-build ## build, install in a fresh environment, look inside
	rm -rf build dist
	$(VENV)/bin/python -m build --quiet --outdir dist
	$(PYTHON) -m venv --clear $(VENV)-wheel
	$(VENV)-wheel/bin/python -m pip --disable-pip-version-check install --quiet dist/*.whl
	$(VENV)-wheel/bin/python -I tools/check_wheel.py dist/*.whl dist/*.tar.gz

extras: ## each extra alone in a fresh environment does its job; those that are large by name: make extras EXTRAS="spark torch"
	$(PYTHON) tools/try_extras.py $(EXTRAS)

extras-changed: ## as extras, those that install something else than before this change
	$(PYTHON) tools/try_extras.py --changed

clean: ## remove what the other targets made
	rm -rf $(VENV) $(VENV)-apart $(VENV)-bench $(VENV)-oldest $(VENV)-wheel build dist src/*.egg-info
	rm -rf docs/gallery docs/reference/api docs/reference/commands docs/reference/documents docs/reference/errors.rst
	rm -rf .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests tools bench -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# Environments. A stamp named `.with-EXTRAS` says what is installed, so a second run installs nothing.

# The accessibility checker of the browser tests, as npm ships it.
$(AXE): | $(VENV)/.made
	npm install --silent --no-fund --no-audit --no-save --prefix $(VENV)/npm axe-core@4.14.0
	@touch $@

%/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "safecal needs Python 3.11 or newer; set PYTHON=")'
	$(PYTHON) -m venv $*
	@touch $@

$(VENV)/.with-core: pyproject.toml constraints/ci.txt | $(VENV)/.made
	$(PIP) install --quiet -e .
	@touch $@

$(VENV)/.with-build: constraints/ci.txt | $(VENV)/.made
	$(PIP) install --quiet build
	@touch $@

$(VENV)/.with-%: pyproject.toml constraints/ci.txt | $(VENV)/.made
	$(PIP) install --quiet -e '.[$*]'
	@touch $@ $(VENV)/.with-core

$(VENV)/.with-peers: tools/peers.txt constraints/ci.txt | $(VENV)/.with-core
	$(PIP) install --quiet -r tools/peers.txt
	@touch $@

$(VENV)-oldest/.with-%: export PIP_CONSTRAINT := constraints/oldest.txt
$(VENV)-oldest/.with-%: export PIP_BUILD_CONSTRAINT := constraints/oldest.txt
$(VENV)-oldest/.with-%: pyproject.toml constraints/oldest.txt | $(VENV)-oldest/.made
	$(VENV)-oldest/bin/python -m pip --disable-pip-version-check install --quiet -e '.[$*]'
	@touch $@

$(VENV)-apart/.with-%: export PIP_CONSTRAINT := constraints/apart.txt
$(VENV)-apart/.with-%: export PIP_BUILD_CONSTRAINT := constraints/apart.txt
$(VENV)-apart/.with-%: pyproject.toml constraints/apart.txt | $(VENV)-apart/.made
	$(VENV)-apart/bin/python -m pip --disable-pip-version-check install --quiet -e '.[$*]'
	@touch $@
