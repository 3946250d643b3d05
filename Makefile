# A fresh machine needs Linux, Python 3.11 or later and nothing else: no GPU, no root.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.expgen-setup

.PHONY: setup demo test tools lint dist docs bench chaos clean attack audit

setup: $(STAMP)

# make setup HASHES=hashes.txt installs no file whose sha256 is not in that list (scripts/hash-pins makes it anew)
# --no-build-isolation: the build tool is pinned in constraints.txt like the rest
$(STAMP): pyproject.toml constraints.txt scripts/setup-procgen
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "PYTHON is $(PYTHON), older than 3.11 or missing; accepted: Python 3.11 or later, as in make PYTHON=python3.11" >&2; exit 2; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV) \
		|| { echo "$(PYTHON) cannot make a virtual environment (Debian: the python3-venv package)" >&2; exit 2; }
	$(if $(HASHES),$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r $(HASHES))
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt setuptools
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt --no-build-isolation -e '.[dev]'
	$(BIN)/python scripts/setup-procgen
	@touch $@

demo: setup
	$(BIN)/python scripts/demo

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy

test: lint
	$(BIN)/pytest -n 2 --dist loadgroup -m "not gpu"

# Weights & Biases, MLflow and the Hugging Face Hub, offline: apart, for they bring some fifty packages
tools: setup
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -c constraints-tools.txt --no-build-isolation -e '.[hub,mlflow,wandb]'
	$(BIN)/pytest tests/training/test_loggers.py tests/runs/test_push.py

# Source archive and wheel, tried in an empty environment; of several Pythons: make dist PYTHONS="python3.11 python3.12"
dist: setup
	$(BIN)/python scripts/dist $(PYTHONS)

# The documentation as a site, links checked: open site/index.html
docs: setup
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -c constraints-docs.txt --no-build-isolation -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# Break a Ray cluster of this machine in every way we know; results/chaos.json says what came of it
chaos: setup
	$(BIN)/python scripts/chaos

# Hostile files, stores and command lines, kills, bad folders, wrong calls; docs/attack.md is the table of what came of it
attack: setup
	$(BIN)/python scripts/attack --out docs/attack.md

# Known vulnerabilities of the pinned versions: asks the package index for its advisories
audit: setup
	$(BIN)/python -m pip_audit --version >/dev/null 2>&1 || $(BIN)/pip install --quiet --disable-pip-version-check pip-audit
	$(BIN)/python -m pip_audit --strict --requirement constraints.txt --no-deps --disable-pip

bench: setup
	$(BIN)/expgen bench

clean:
	rm -rf $(VENV) build dist *.egg-info demo site .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
