"""The matrix products of a step alone, which no step that computes them can beat.

They run on mirrored's NumPy and BLAS with all cores, into memory that is there already.
"""

import sys
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))
import numpy as np

from benchmarks.contenders import protocol
from benchmarks.contenders.blas import blas_facts
from benchmarks.workloads import WORKLOADS, Workload, matrix_products


class Products:
    """Answers `first_step` and `measure` as a contender does.

    Args:
        workload: Whose products.
    """

    def __init__(self, workload: Workload) -> None:
        """Fill the arrays with values that are neither zero nor equal."""
        rng = np.random.default_rng(0)
        self._work = []
        for product in matrix_products(workload):
            a = rng.normal(size=(product.rows, product.inner)).astype(np.float32)
            b = rng.normal(size=(product.inner, product.columns)).astype(np.float32)
            if product.kind == "weight gradient":  # A step has the transpose of this one.
                a = np.ascontiguousarray(a.T).T
            elif product.kind == "input gradient":
                b = np.ascontiguousarray(b.T).T
            self._work.append((a, b, np.empty((product.rows, product.columns), np.float32)))
        self._steps = workload.steps

    def first_step(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run the products once."""
        facts = {"version": np.__version__, "blas": blas_facts()}
        return {"fit_s": self._run(1), "facts": facts}

    def measure(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the microseconds of all products, over as many steps as so many epochs have."""
        self._run(protocol.WARM_STEPS)
        steps = request["epochs"] * self._steps
        return {"us": self._run(steps) * 1e6 / steps}

    def _run(self, steps: int) -> float:
        started = time.perf_counter()
        for _ in range(steps):
            for a, b, out in self._work:
                np.matmul(a, b, out=out)
        return time.perf_counter() - started


def main() -> None:
    """Answer the driver."""
    arguments = protocol.parse_arguments()
    answers = protocol.keep_stdout()
    protocol.serve(Products(WORKLOADS[arguments.workload]), answers)


if __name__ == "__main__":
    main()
