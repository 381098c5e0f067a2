# What people type most often; .ci/run has all checks. `make test PYTHON=python3.13` takes that Python.
PYTHON ?= $(or $(wildcard .venv/bin/python),python3)

# A few files that together run what a training step needs, in 20 seconds.
SMOKE = tests/test_public_api.py tests/test_replica_parity.py tests/test_main.py tests/autodiff \
	tests/layers/test_package.py tests/program/test_replay.py tests/training/test_loop.py

.PHONY: bench docs gpu-check gpu-first lint reliability smoke test types

test: # All but the slow tests.
	$(PYTHON) -m pytest -q

smoke:
	$(PYTHON) -m pytest -q -x $(SMOKE)

lint:
	.ci/run --installed lint

types:
	.ci/run --installed types

bench: # The speed on this machine.
	$(PYTHON) -m benchmarks $(OPTIONS)

# The documentation site, in docs/_build/html. It needs the extra `docs`.
docs:
	@$(PYTHON) -c "import sphinx" 2>/dev/null || { echo 'First run: $(PYTHON) -m pip install -e ".[dev,docs]"'; exit 1; }
	$(PYTHON) -m sphinx -q -n -W --keep-going -j 2 docs docs/_build/html

# The checks that need a GPU.
gpu-check:
	$(PYTHON) -m benchmarks.gpu $(OPTIONS)

reliability: # Two hours: the long tests, and docs/reliability.md.
	$(PYTHON) -m benchmarks.reliability $(OPTIONS)

gpu-first:
	$(PYTHON) -m benchmarks.gpu.first $(OPTIONS)
