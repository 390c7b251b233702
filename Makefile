# Everything that a person or a machine does with this checkout. `make help` lists it.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup up test test-all pods lint fmt bench chaos rehearsal sim fuzz audit sbom \
  screenshots kube-demo clean

manifest := --manifest-path brokers/core/Cargo.toml

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## what `up` and `test` begin with: .venv, the extension, the console, Kafka's jars
	@.ci/setup test

up: ## set up and run Freshet on this machine; Ctrl-C stops it
	@.ci/setup up
	@.ci/up

test: ## set up, check and run the everyday tests
	@.ci/test

test-all: ## PART=<name>: all tests that there are, or one part of them
	@.ci/test-all $(PART)

pods: ## the tests of real pods alone, where this machine may run some
	@.ci/setup all
	@.venv/bin/python -m pytest -q --durations=10 tests/kubernetes/pods

lint: ## every check that is not a test (after `make setup`)
	@.ci/lint

fmt: ## format Python, Rust and Go (after `make setup`)
	@.venv/bin/ruff check --fix-only --quiet .
	@.venv/bin/ruff format .
	@cargo fmt --all $(manifest)
	@cargo fmt --manifest-path tests/clients/programs/rust/Cargo.toml
	@gofmt -w provisioning/deliverables/terraform tests/clients/programs/go

bench: ## B=<name>: run a bench against real Kafka [and BEFORE=<commit>]; without B, list them
	@.ci/bench $(B)

chaos: ## hurt a cluster, then one broker, under clients; ARGS="--minutes N --seed N --kills N"
	@.ci/setup all
	@.venv/bin/python -m tests.chaos $(ARGS)

FOLDER ?= screenshots
screenshots: ## FOLDER=<path>: contact sheets of every page of the console, in both themes
	@.ci/setup test
	@.venv/bin/python -m tests.browser.mocked.sheets $(FOLDER)

MINUTES ?= 10
rehearsal: ## MINUTES=<n>: back up, write for that long, lose all but storage, restore, count
	@.ci/setup test
	@.venv/bin/python -m tests.backup --minutes $(MINUTES)

SEEDS ?= 10000
sim: ## SEEDS=<n>: simulate that many seeds (10,000 take some minutes); prints what they did
	@FRESHET_SIM_SEEDS=$(SEEDS) cargo test --quiet --locked $(manifest) --workspace \
	  --test simulation -- --nocapture seeds

EXAMPLES ?= 20
fuzz: ## EXAMPLES=<n>: REST, then every fuzz target of the crates; TARGET=<name>: one alone
	@.ci/setup test
ifndef TARGET
	@FRESHET_FUZZ_EXAMPLES=$(EXAMPLES) .venv/bin/python -m pytest -q tests/console/fuzzing
endif
	@.ci/fuzz $(TARGET)

audit: ## ask databases of known vulnerabilities about every dependency
	@.ci/audit

sbom: ## what a release is made of, as CycloneDX, in sbom.json
	@.ci/setup test
	@.venv/bin/python -m provisioning.deliverables.sbom >sbom.json

kube-demo: ## all of it as pods of a real Kubernetes on this machine, as root; Ctrl-C ends it
	@.ci/setup all
	@.venv/bin/python -m tests.kubernetes.demo $(ARGS)

clean: ## remove what set-up and builds left in the checkout (not your data)
	rm -rf frontend/dist frontend/node_modules tests/clients/programs/js/node_modules
	rm -rf .venv .tools .peer .bench .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -rf brokers/core/target brokers/_core*.so
