# Requires Linux and Python 3.11 or later; no GPU, no root access.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.expgen-setup

.PHONY: setup demo test tools lint dist docs bench chaos clean attack audit

setup: $(STAMP)

# make setup HASHES=hashes.txt installs only files whose sha256 is in that list (written by scripts/hash-pins).
# --no-build-isolation: the build tool is pinned in constraints.txt as well.
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

# Tests of Weights & Biases, MLflow and the Hugging Face Hub, offline; separate because they install about fifty packages
tools: setup
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -c constraints-tools.txt --no-build-isolation -e '.[hub,mlflow,wandb]'
	$(BIN)/pytest tests/training/test_loggers.py tests/runs/test_push.py

# Source archive and wheel, tested in an empty environment; for several Pythons: make dist PYTHONS="python3.11 python3.12"
dist: setup
	$(BIN)/python scripts/dist $(PYTHONS)

# Build the documentation site and check its links: site/index.html
docs: setup
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -c constraints-docs.txt --no-build-isolation -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# Inject faults into a local Ray cluster; writes results/chaos.json
chaos: setup
	$(BIN)/python scripts/chaos

# Try hostile files, stores and command lines, kills, bad folders and wrong calls; writes docs/attack.md
attack: setup
	$(BIN)/python scripts/attack --out docs/attack.md

# Look up known vulnerabilities of the pinned versions at the package index
audit: setup
	$(BIN)/python -m pip_audit --version >/dev/null 2>&1 || $(BIN)/pip install --quiet --disable-pip-version-check pip-audit
	$(BIN)/python -m pip_audit --strict --requirement constraints.txt --no-deps --disable-pip

bench: setup
	$(BIN)/expgen bench

clean:
	rm -rf $(VENV) build dist *.egg-info demo site .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
