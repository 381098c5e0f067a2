# The checks that need a GPU; everything else is in .ci/run.
PYTHON ?= python3

.PHONY: gpu-check gpu-first
gpu-check:
	$(PYTHON) -m benchmarks.gpu $(OPTIONS)

gpu-first:
	$(PYTHON) -m benchmarks.gpu.first $(OPTIONS)
