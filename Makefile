# Two commands: `make quickstart` and `make test`. Each sets itself up, and can be run again.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
WITH_AWS := $(VENV)/.with-aws

.PHONY: quickstart test lint types docs check lock clean

quickstart: $(READY)  ## Declare, preview, apply, load and query a lake, change it and apply the change
	$(BIN)/python examples/quickstart.py

test: $(WITH_AWS)  ## Run all tests
	$(BIN)/python -m pytest -n 2 --dist loadgroup

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy
	cd stacks && MYPYPATH=.. ../$(BIN)/mypy --config-file ../pyproject.toml .

docs: $(READY)  ## Build docs/ as a site under build/site; every warning is an error
	$(BIN)/mkdocs build --strict --quiet

check: test lint types docs  ## All that CI runs

lock: $(READY)  ## Write deployer/compute/lock/ again, of constraints.txt and the package index
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt uv
	$(BIN)/python .ci/lock.py

clean:
	rm -rf $(VENV) build

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("deployer needs Python 3.11 or later, and $(PYTHON) is %d.%d; name another: make PYTHON=python3.12" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip uninstall --quiet --quiet --yes deployer # as it was called before
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $(READY)

$(WITH_AWS): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,aws]'
	touch $(WITH_AWS)
