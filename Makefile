# Every target makes its own environment in .venv first; it is made again only when what it needs has changed.
PYTHON ?= python3
BIN := .venv/bin

# Told to use more threads than there are cores, tests must not lose their time to threads that spin while they wait.
test quick: export OMP_WAIT_POLICY = passive

.PHONY: demo test quick lint docs browser bench clean

demo: .venv/ready
	$(BIN)/gammacaps demo

test: lint docs browser
	path=$$(command -v chromium) && export GAMMACAPS_BROWSER=$$path; GAMMACAPS_SITE=site $(BIN)/python -m pytest -n auto --dist worksteal

quick: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow"

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The documentation as a site: open site/index.html. Nothing is fetched, and a warning is an error.
docs: .venv/ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict

# Pages are tested in Debian's Chromium; where it is not and can't be installed, these tests skip and say so.
browser:
	command -v chromium || { test "$$(id -u)" = 0 && apt-get -qq update && apt-get -qq install chromium >/dev/null; } || true

bench: .venv/ready
	$(BIN)/python -m benchmarks.routing

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "gammacaps needs Python 3.11 or newer: make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis dist site
