# Carillon. `make help` lists the targets; Python 3.11+ with venv is all a machine needs.

PYTHON ?= python3

PY := .venv/bin/python
STAMPS := .venv/.stamps
REQUIREMENTS := infra/requirements
FUNCTIONS := infra/carillon/cdk/requirements/functions.txt
TEMPLATE := cdk.out/Carillon.template.json
INSTALL = $(PY) -m uv pip install --quiet --require-hashes --compile-bytecode
LOCK = $(PY) -m uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header

# The CDK library starts `node` from PATH: the virtual environment's comes first. `cdk` is npm's.
export PATH := $(CURDIR)/.venv/bin:$(CURDIR)/node_modules/.bin:$(PATH)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup run test check baseline smoke simulate simulate-mutants models drill-neighbours drill-bad-items drill-take-up take-up bench bench-load bench-cold bench-recurrence bench-batch bench-simulate bench-wait bench-share bench-cost screenshots fmt options sbom client-types vendor synth lint-template deploy lock clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMPS)/development $(STAMPS)/ministack $(STAMPS)/node $(STAMPS)/chromium $(STAMPS)/layer ## Install everything, pinned and checked by hash; quick when nothing changed

$(STAMPS)/uv: $(REQUIREMENTS)/development.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Carillon needs Python 3.11 or newer: make PYTHON=/path/to/python3"; exit 1; }
	@echo "setup: .venv"
	@test -x $(PY) || $(PYTHON) -m venv .venv
	@mkdir -p $(STAMPS)
	@awk '/^[^ ]/ { wanted = /^uv==/ } wanted' $< > $(STAMPS)/uv.txt
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes \
	  --only-binary :all: --requirement $(STAMPS)/uv.txt
	@touch $@

$(STAMPS)/development: $(STAMPS)/uv $(REQUIREMENTS)/development.txt pyproject.toml
	@echo "setup: libraries and tools"
	@$(INSTALL) --python $(PY) --requirement $(REQUIREMENTS)/development.txt
	@$(PY) -m uv pip install --quiet --python $(PY) --no-deps --no-build-isolation --editable .
	@touch $@

# MiniStack pins another botocore than the functions do, hence an environment of its own.
$(STAMPS)/ministack: $(STAMPS)/uv $(REQUIREMENTS)/ministack.txt
	@echo "setup: .venv-ministack"
	@test -x .venv-ministack/bin/python || $(PYTHON) -m venv --without-pip .venv-ministack
	@$(INSTALL) --python .venv-ministack/bin/python --requirement $(REQUIREMENTS)/ministack.txt
	@touch $@

$(STAMPS)/node: $(STAMPS)/development package.json package-lock.json .npmrc
	@echo "setup: the cdk command"
	@npm ci --loglevel=error --no-progress >/dev/null
	@touch $@

# Unpacks the browser of the tests once: its npm package has the binary, and nothing is downloaded.
CHROMIUM := .venv/.chromium
$(STAMPS)/chromium: $(STAMPS)/node
	@echo "setup: the browser of the tests"
	@rm -rf $(CHROMIUM) && mkdir -p $(CHROMIUM)
	@test -n "$(CARILLON_CHROMIUM)" || \
	  TMPDIR=$(CURDIR)/$(CHROMIUM) AWS_EXECUTION_ENV=AWS_Lambda_nodejs22.x node --input-type=module \
	  -e 'await (await import("@sparticuz/chromium")).default.executablePath()'
	@touch $@

# Installs the layer for Lambda once, to have its wheels in uv's cache: synthesis then needs no network.
$(STAMPS)/layer: $(STAMPS)/development $(FUNCTIONS) infra/carillon/cdk/packages.py
	@echo "setup: wheels of the dependency layer"
	@rm -rf .venv/.layer
	@$(PY) -m carillon.cdk.packages .venv/.layer
	@rm -rf .venv/.layer
	@touch $@

run: setup ## Start the local stack: emulator, deployment, sample jobs (Ctrl-C stops it)
	@$(PY) -m carillon.local run

test: setup ## Everything that CI runs; PARTS="tests/unit check" for some of it (tests/lanes.py)
	@$(PY) -m tests.lanes $(PARTS)

check: setup ## Lint, formatting, import layers, types of Python and of the console
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@.venv/bin/lint-imports --no-logo
	@$(PY) -m mypy
	@$(PY) -m tests.console_types
	@npx --no-install tsc

screenshots: setup ## Take the screenshots of docs/console.md anew
	@mkdir -p docs/images
	@CARILLON_SCREENSHOTS=docs/images $(PY) -m pytest -q -p no:schemathesis tests/browser

smoke: setup ## Drive the deployed stack STACK=Carillon as the signed-in user; QUICK=1 for 90 s, TARGETS="arn:… arn:…"
	@.venv/bin/carillon admin smoke $(if $(STACK),--stack $(STACK)) $(if $(QUICK),--quick) $(addprefix --target ,$(TARGETS))

simulate: setup ## Simulate SEEDS=300 worlds from FIRST=0 on, with faults everywhere; SEED=n replays one; CHUNKS=on, off or switch instead of by seed
	@$(PY) -m tests.simulation $(if $(CHUNKS),--chunks $(CHUNKS)) $(if $(SEED),--seed $(SEED),--seeds $(or $(SEEDS),300) --first $(or $(FIRST),0))

simulate-mutants: setup ## See that the simulation finds every planted bug
	@$(PY) -m tests.simulation.mutants

models: setup ## Explore the models of chunks whole, with large bounds; see each planted bug break a promise
	@$(PY) -m tests.models

drill-neighbours: setup ## Let 200 webhooks of one owner hang beside another owner's jobs, for MINUTES=5; with RUNS=5 under a quota of as many concurrent runs
	@$(PY) -m tests.e2e.drills.neighbours --minutes $(or $(MINUTES),5) $(if $(RUNS),--concurrent-runs $(RUNS))

drill-bad-items: setup ## Put a malformed entry a minute, and a malformed control item, beside jobs in 15 other segments
	@$(PY) -m tests.e2e.drills.bad_items --minutes $(or $(MINUTES),4)

drill-take-up: setup ## Destroy a production stack on MiniStack, take it up again, and count what was lost
	@$(PY) -m tests.e2e.drills.take_up

bench-cold: setup ## Measure what loading each packaged function costs, with and without bytecode
	@$(PY) -m tests.bench.cold

bench: setup ## Measure dispatch and the run protocol: in memory, then on MiniStack beside bare requests of boto3
	@$(PY) -m tests.bench.dispatch

bench-load: setup ## Measure the lag of RATE=7000 runs a minute on a stack of its own, for MINUTES=5, and whose CPU it took; in chunks by CHUNKS=1
	@$(PY) -m tests.bench.load --rate $(or $(RATE),7000) --minutes $(or $(MINUTES),5) $(if $(CHUNKS),--chunks)

bench-recurrence: setup ## Measure the recurrence engine beside cronsim, croniter and APScheduler
	@$(PY) -m tests.bench.recurrence

bench-batch: setup ## Measure `carillon preview --batch` beside a bare loop over cronsim
	@$(PY) -m tests.bench.batch

bench-simulate: setup ## Simulate a day of 1,000,000 fires: wall time and peak memory
	@$(PY) -m tests.bench.simulate

bench-wait: setup ## Measure what executors are billed for waiting, by the fraction of the tick's second (6 minutes)
	@$(PY) -m tests.bench.wait

bench-share: setup ## Measure full batches of chunks by the processor that a function's memory brings
	@$(PY) -m tests.bench.share

bench-cost: setup ## Count and price every AWS request of the handlers, by profile (ONLY="…"); JSON at the end
	@$(PY) -m tests.bench.cost $(ONLY)

fmt: setup ## Format the code and repair what the linter can
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

synth: setup ## Write the CloudFormation template to cdk.out
	@npx --no-install cdk synth --quiet

# W3005 (a DependsOn that a GetAtt implies already): CDK itself writes these for every function.
lint-template: synth ## Check the template with cfn-lint
	@.venv/bin/cfn-lint --ignore-checks W3005 -- $(TEMPLATE)

baseline: setup ## Take the present template for what later ones are compared with, for what they replace
	@$(PY) -m tests.infra.replacements

deploy: setup ## Deploy to the AWS account of the current credentials; OPTIONS="-c key=value …"
	@npx --no-install cdk deploy $(OPTIONS)

take-up: setup ## Take up a destroyed production stack, with the data it has left; OPTIONS as for deploy
	@$(PY) -m carillon.cdk.take_up $(if $(STACK),--stack $(STACK)) $(OPTIONS)

# npm writes the addresses of funding pages into its lock file; a lock file here names none.
define WITHOUT_FUNDING
const fs = require('fs'), name = 'package-lock.json', lock = JSON.parse(fs.readFileSync(name));
for (const one of Object.values(lock.packages)) delete one.funding;
fs.writeFileSync(name, JSON.stringify(lock, null, 2) + '\n');
endef
export WITHOUT_FUNDING

options: ## Write the tables of the CLI's options anew from the marks of settings
	$(PY) -m tests.options_table

sbom: setup ## Print what is deployed, with licences and hashes, as CycloneDX
	@$(PY) -m tests.sbom

client-types: ## Write the types of the client anew from the API's OpenAPI description
	$(PY) -m tests.client_types

vendor: $(STAMPS)/node ## Copy the console's libraries from their npm packages, and defaults from the API
	@$(PY) -m tests.vendored

# uv knows no extra without the project's own requirements; the layer has no use for those of a command line.
define REQUIREMENTS_OF_THE_LAYER
import tomllib
with open("pyproject.toml", "rb") as file:
    print(*tomllib.load(file)["project"]["optional-dependencies"]["aws"], sep="\n")
endef
export REQUIREMENTS_OF_THE_LAYER

lock: $(STAMPS)/uv ## Resolve the requirements anew from pyproject.toml (UPGRADE=--upgrade for newer ones)
	@$(PY) -c "$$REQUIREMENTS_OF_THE_LAYER" | $(LOCK) $(UPGRADE) - --output-file $(FUNCTIONS)
	@$(LOCK) $(UPGRADE) pyproject.toml --all-extras --group dev --output-file $(REQUIREMENTS)/development.txt
	@$(LOCK) $(UPGRADE) --group pyproject.toml:ministack --output-file $(REQUIREMENTS)/ministack.txt
	@npm install --package-lock-only --loglevel=error
	@node -e "$$WITHOUT_FUNDING"

clean: ## Remove what can be made again, the state of the local stack included
	@rm -rf .venv .venv-ministack node_modules cdk.out .local build dist
	@rm -rf .import_linter_cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
