# Everything a contributor runs. `make` alone lists the targets; nothing but python3 (3.11 or newer) is needed beforehand.
#
#   PYTHON=python3.12   which interpreter builds .venv
#   ARGS="-k taint -x"  handed on to pytest, bench, the demo or the lock

PYTHON ?= python3
ARGS ?=
BIN := .venv/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
CODE := $(wildcard src tests testbed bench examples)

# Tests in parallel. As many workers as cores compute; two more run only tests that wait for long, such as stories in real
# time, to which the others give way. If more computed, real control planes would answer seconds late, and stories go another
# way. Tests that share a cluster stay on one worker (loadgroup), and those that wait start first, who waits longest
# before the others: testbed/worker_groups.py. Workers read compiled tests, also where the environment asks Python to
# write none: each would compile all of them again, and every process that a test starts would compile what it imports.
CORES := $(shell cores=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2); echo $$((cores < 8 ? cores : 8)))
WORKERS := $(shell echo $$(($(CORES) + 2)))
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest
IN_PARALLEL := --dist loadgroup --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help demo quick test check lint types tidy mutants sickness compare-vm compare-volumes compare-manifests compare-quota compare-autoscaler compare-nodes compare-plan compare-spot bench format crds field-types lock clean .venv
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z.-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: .venv ## Show what Wukong does, in a minute, without a cluster
	@PATH="$(CURDIR)/$(BIN):$$PATH" bash examples/demo.sh $(ARGS)

quick: lint types ## Lint, types and the tests that need neither a control plane nor long: a minute, after every edit
	@$(PYTEST) -q -n $(CORES) $(IN_PARALLEL) --quick $(ARGS)

test: .venv ## Run every test (ARGS="-k taint" to choose); the first time builds a control plane and KubeVirt, about 11 minutes
	@$(BIN)/python -m testbed build --kubevirt --optional
	@$(BIN)/python -m testbed prometheus --optional
	@$(BIN)/python -m testbed chromium --optional
	@$(PYTEST) -n $(WORKERS) --computing $(CORES) $(IN_PARALLEL) $(ARGS)

check: lint ## Lint, format, types, import rows: what a change must pass besides its tests
	@$(BIN)/ruff format --check --quiet . || { echo "Some files are not formatted: run 'make format'." >&2; exit 1; }
	@$(MAKE) types
	@$(BIN)/python -m pytest -q tests/tidy

lint: .venv ## Look for mistakes with ruff
	@$(BIN)/ruff check --quiet .

types: .venv ## Check types with mypy
	@$(BIN)/mypy $(CODE)

tidy: .venv ## Check import rows, documents and the lock: seconds
	@$(BIN)/python -m pytest -q --quick tests/tidy

mutants: .venv ## Plant small mistakes in the lines a change touches: do the tests notice? (ARGS="--seed 2 src/wukong/state")
	@PYTHONPATH="$(CURDIR)/src:$(CURDIR)/tests" $(BIN)/python -m mutants $(ARGS)

sickness: .venv ## All components through an hour of faults and hostile objects, 500 seeds (ARGS="--seeds 1-20"): a table
	@PYTHONPATH="$(CURDIR)/src:$(CURDIR)/tests" $(BIN)/python -m hostile.sickness $(ARGS)

compare-vm: .venv ## Wukongs and virtual machines on real KubeVirt beside ours, 100 seeds (ARGS="--objects 1-8 --stories none")
	@PYTHONPATH="$(CURDIR)/src:$(CURDIR)/tests" $(BIN)/python -m vm_comparison $(ARGS)

compare-manifests: .venv ## Manifests and patches sent to a real API server and to ours: a table (ARGS="--seeds 1-40")
	@PYTHONPATH="$(CURDIR)/src:$(CURDIR)/tests" $(BIN)/python -m manifest_comparison $(ARGS)

compare-quota: .venv ## Quotas, limit ranges and pod security on a real API server beside ours, 250 seeds (ARGS="--seeds 1-20")
	@PYTHONPATH="$(CURDIR)/src:$(CURDIR)/tests" $(BIN)/python -m quota_comparison $(ARGS)

compare-autoscaler: .venv ## HorizontalPodAutoscalers of kube-controller-manager beside ours, 150 seeds (ARGS="--seeds 1-20")
	@PYTHONPATH="$(CURDIR)/src:$(CURDIR)/tests" $(BIN)/python -m autoscaler_comparison $(ARGS)

compare-nodes: .venv ## How many nodes come for pods that wait: the real Karpenter beside ours, 40 seeds (ARGS="--seeds 1-10")
	@PYTHONPATH="$(CURDIR)/src:$(CURDIR)/tests" $(BIN)/python -m node_comparison $(ARGS)

compare-plan: .venv ## Random changes planned from a snapshot of a real control plane, and then made there, 200 seeds (ARGS="--seeds 1-20")
	@PYTHONPATH="$(CURDIR)/src:$(CURDIR)/tests" $(BIN)/python -m plan_comparison $(ARGS)

compare-spot: .venv ## Two spot nodes reclaimed on a real control plane: with Wukong, with a drain, with nobody: a table (ARGS="--scenario S2 --modes wukong")
	@PYTHONPATH="$(CURDIR)/src:$(CURDIR)/tests" $(BIN)/python -m spot_comparison $(ARGS)

compare-volumes: .venv ## 320 random pods with volumes beside a real kube-scheduler (ARGS=-x; WUKONG_LIVE_SEED=7 for the same again)
	@WUKONG_VOLUME_PODS=320 WUKONG_LIVE_SEED=$${WUKONG_LIVE_SEED:-any} $(BIN)/python -m pytest -q -n 0 tests/live/test_volumes_against_kube_scheduler.py $(ARGS)

bench: .venv ## Measure the engine (ARGS=--embedded: the embedded cluster; --help lists more)
	@$(BIN)/python -m bench $(ARGS)

format: .venv ## Format the code and mend what ruff can mend
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format --quiet .

crds: .venv ## Write deploy/crds anew from the structs of src/wukong/api (tests/tidy verifies it)
	@$(BIN)/wukong manifests crds --directory deploy/crds

field-types: .venv ## Write src/wukong/api/field_types_data.py anew from Kubernetes' Go sources (tests/kinds verifies it)
	@mkdir -p build && $(BIN)/python -m testbed.field_types > build/field_types_data.py && \
	mv build/field_types_data.py src/wukong/api/field_types_data.py

lock: python-is-fit ## Pin requirements.lock anew from pyproject.toml (ARGS=--upgrade for newer versions)
	@tool=$$(mktemp -d) && trap 'rm -rf "$$tool"' EXIT && \
	$(PYTHON) -m venv "$$tool" && \
	"$$tool/bin/python" -m pip install --quiet --disable-pip-version-check 'uv>=0.9' && \
	{ cp requirements.lock "$$tool" 2>/dev/null || true; } && \
	"$$tool/bin/uv" pip compile pyproject.toml --no-config --extra dev --universal --python-version 3.11 --generate-hashes \
		--no-header --no-emit-index-url --quiet $(ARGS) --output-file "$$tool/requirements.lock" && \
	{ echo '# Generated from pyproject.toml by `make lock`; tests/tidy verifies it. Do not edit.'; cat "$$tool/requirements.lock"; } \
		> requirements.lock

clean: ## Remove the environment, caches and build output
	@rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	@find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment is made of two steps, each with its stamp: what the lock pins (slow; from scratch, so that nothing
# unpinned stays behind) and the project itself (fast; again whenever pyproject.toml changed).
.venv: .venv/installed.stamp

.venv/installed.stamp: .venv/locked.stamp pyproject.toml
	@$(PIP) install --no-deps --no-build-isolation --no-index -e .
	@touch $@

.venv/locked.stamp: requirements.lock
	@$(MAKE) python-is-fit
	@echo "Building .venv from requirements.lock" >&2
	@$(PYTHON) -m venv --clear .venv
	@$(PIP) install --require-hashes -r requirements.lock
	@touch $@

# Debian ships python3 without ensurepip, which venv needs; the package to add is called after the interpreter.
.PHONY: python-is-fit
python-is-fit: package = $(notdir $(PYTHON))-venv
python-is-fit:
	@command -v $(PYTHON) >/dev/null || \
		{ echo "$(PYTHON) is not installed. Install Python 3.11 or newer, or name one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Wukong needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1). Name a newer one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			echo "Installing $(package), which $(PYTHON) needs to build .venv" >&2; \
			apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y $(package) >/dev/null; \
		fi; \
		$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "$(PYTHON) cannot build a virtual environment: its ensurepip is missing. On Debian: apt-get install $(package)" >&2; exit 1; }; }
