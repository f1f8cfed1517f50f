# Everything runs from .venv, which each target makes first where it is missing or its pins have changed.
PYTHON ?= python3
CONFIG ?= config/config.yaml
PROFILE ?= profiles/default
CORES ?=
DEVICE ?=
ARGS ?=
JOBS ?= 2

BIN := .venv/bin
# The environment that .venv was set up with, or the CPU's; Gaudis have theirs in the maker's container (README).
FOR ?= $(or $(patsubst .venv/installed-%,%,$(firstword $(wildcard .venv/installed-*))),cpu)
STAMP := .venv/installed-$(FOR)
PINS := $(firstword $(wildcard envs/$(FOR).lock.txt) envs/$(FOR).txt)
export PATH := $(CURDIR)/$(BIN):$(PATH)

.DEFAULT_GOAL := help
.PHONY: help install demo test lint run speed figures plan why show-jobs config clean

help: ## Lists these targets.
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 18

install: $(STAMP) ## Sets up .venv; does nothing where it is up to date. FOR=cuda, once, on a GPU box or a cluster.

$(STAMP): $(PINS) envs/carriers.txt pyproject.toml
	@test -d .venv || $(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))' \
	    || { echo "genaccel needs Python 3.11 or 3.12, and $(PYTHON) is another; name one: make PYTHON=python3.11 ..." >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r $(PINS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r envs/carriers.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@rm -f .venv/installed-* && touch $@

demo: install ## Simulated MRI to trained model, scored samples, figures and a report, in minutes.
	@genaccel run --config config/config.yaml --profile profiles/default --cores "$(CORES)"

run: install ## The same for your study: make run CONFIG=config/mine.yaml
	@genaccel run --config "$(CONFIG)" --profile "$(PROFILE)" --cores "$(CORES)" -- $(ARGS)

speed: install ## Measures every variant on this machine's GPU; its rows beside the committed ones: results/speed/optimize/beside.csv.
	@genaccel run --config config/speed.yaml --profile "$(PROFILE)" --cores "$(CORES)" -- optimize $(ARGS)
	@python -m genaccel.table --out results/speed/optimize/beside.csv results/speed/optimize/*/*/*.json \
	    $(wildcard results/reference/*/runs/optimize-*.json)

plan: install ## Jobs, disk, device memory and hours before you submit: make plan CONFIG=... DEVICE=A100-40 (or none)
	@genaccel plan --config "$(CONFIG)" $(if $(DEVICE),--device "$(DEVICE)")

show-jobs: install ## The exact sbatch line of every kind of job, submitting nothing: make show-jobs PROFILE=profiles/slurm CONFIG=...
	@genaccel show-jobs --config "$(CONFIG)" --profile "$(PROFILE)"

why: install ## What would run again and why, down to the module or setting that changed: make why CONFIG=...
	@genaccel why --config "$(CONFIG)"

figures: install ## Redraws the figures of the committed measurements into results/figures/; needs no GPU.
	@python -m snakemake reference --cores 1 --quiet rules
	@ls -1 results/figures/*/*

test: install ## The tests; ARGS=tests/train passes arguments on to pytest; JOBS=1 runs them one by one.
	@python -m pytest $(if $(filter-out 1,$(JOBS)),-n $(JOBS) --dist loadfile) $(ARGS)

lint: install ## Style of Python and Snakemake files, and Snakemake's own checks.
	ruff check .
	ruff format --check .
	snakefmt --check Snakefile workflow/rules
	snakemake --lint

config: install ## Writes config/config.yaml, its table of keys and the schemas again from the spec classes.
	@genaccel config

clean: ## Removes what runs produced (results, logs); keeps .venv and the committed measurements.
	@git clean -fdXq results logs
