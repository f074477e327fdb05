# Everything needs only Python 3.11 or newer and a C compiler; the environment is made in .venv.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test acceptance lint install benchmarks clean

install: $(STAMP)

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/tcptune search einsum "ik,jk->ij" -s i=512 -s j=512 -s k=64 --dtype bf16 --trials 60 --seed 0 --out results/demo
	@echo "report: $(CURDIR)/results/demo/report.html"

test: $(STAMP)
	$(BIN)/python -m pytest -m "not slow" -n 2

acceptance: $(STAMP)
	$(BIN)/python -m pytest -m "slow or not slow" -n 2
	$(BIN)/python benchmarks/run.py

benchmarks: $(STAMP)
	$(BIN)/python benchmarks/run.py

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) build dist *.egg-info
