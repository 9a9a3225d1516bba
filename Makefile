# Everything a fresh machine with Python 3.11 or newer needs:  make demo   make test
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
KERNEL := $(wildcard src/countless/*/*_c/*) $(wildcard src/countless/automata/*.c) src/countless_lab/scan.c
# Where the tables of the scoreboard are; those that are not there are skipped.
COUNTLESS_DATA ?= ../shared/data

.PHONY: demo test docs scoreboard dist lint types tests postgres chromium clean

demo: .venv/.train
	$(BIN)/countless demo

test: lint types tests

# Measures the product as shipped, and writes docs/scoreboard.md. QUICK=1: three tables in 12 minutes. TABLES="adult flights": only these.
scoreboard: .venv/.lab
	$(BIN)/countless bench scoreboard $(TABLES) $(if $(QUICK),--quick) --data "$(COUNTLESS_DATA)" \
	    -o docs/results/scoreboard --page docs/scoreboard.md --readme README.md

# The docs as a site, in site/: open site/index.html. The reference pages are written from the commands and docstrings.
docs: .venv/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "wrote site/index.html; the search works with: python3 -m http.server -d site"

# The sdist and the wheel for Linux on x86-64, in dist/. Both are checked, installed without a compiler, and asked a question.
# The wheel runs where glibc is 2.17 or newer; elsewhere the sdist builds the extension, or works without it.
dist: .venv/.dev
	rm -rf dist
	$(BIN)/python -m build --outdir dist -C--build-option=--plat-name=manylinux2014_x86_64
	$(BIN)/python tools/check_dist.py dist

lint: .venv/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports

types: .venv/.dev
	$(BIN)/mypy

tests: .venv/.dev postgres chromium
	OMP_NUM_THREADS=1 $(BIN)/pytest -n auto --dist loadfile  # a process for each core, with one thread

# A server for the tests that ask PostgreSQL. Where it cannot be had, those tests are skipped, and say why.
postgres:
	@ls /usr/lib/postgresql/*/bin/postgres > /dev/null 2>&1 || command -v initdb > /dev/null \
	    || { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null && export DEBIAN_FRONTEND=noninteractive \
	        && { apt-get install -y --no-install-recommends postgresql \
	            || { apt-get update && apt-get install -y --no-install-recommends postgresql; }; }; } \
	    || echo "no PostgreSQL server here: its tests are skipped; apt-get install postgresql brings one"

# A browser for the tests of the page. Where it cannot be had, those tests are skipped, and say why.
chromium:
	@command -v chromium > /dev/null || command -v chromium-browser > /dev/null || command -v google-chrome > /dev/null \
	    || { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null && export DEBIAN_FRONTEND=noninteractive \
	        && { apt-get install -y --no-install-recommends chromium \
	            || { apt-get update && apt-get install -y --no-install-recommends chromium; }; }; } \
	    || echo "no browser here: the tests of the page are skipped; apt-get install chromium brings one"

# Two stamps, so that the demo does not wait for the developers' tools.
.venv/.train: pyproject.toml constraints.txt $(KERNEL) | .venv
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e '.[train]'
	touch $@

.venv/.dev: pyproject.toml constraints.txt $(KERNEL) | .venv
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@ .venv/.train .venv/.lab

.venv/.docs: pyproject.toml constraints.txt $(KERNEL) | .venv
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e '.[docs,train]'
	touch $@ .venv/.train

.venv/.lab: pyproject.toml constraints.txt $(KERNEL) | .venv
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e '.[lab]'
	touch $@ .venv/.train

.venv:
	$(PYTHON) -m venv .venv

clean:
	rm -rf .venv .scoreboard dist build site docs/reference .mypy_cache .ruff_cache .pytest_cache .hypothesis adult.countless* npm_urls.countless*
