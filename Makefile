PYTHON ?= python3

.PHONY: docs gpu-check gpu-first
# The documentation site, in docs/_build/html. It needs the extra `docs`.
docs:
	$(PYTHON) -m sphinx -q -n -W --keep-going -j 2 docs docs/_build/html

# The checks that need a GPU; everything else is in .ci/run.
gpu-check:
	$(PYTHON) -m benchmarks.gpu $(OPTIONS)

gpu-first:
	$(PYTHON) -m benchmarks.gpu.first $(OPTIONS)
