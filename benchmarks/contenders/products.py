"""The matrix products of a step alone, which no step that computes them can beat.

They run on mirrored's NumPy and BLAS with all cores, into memory that is there already.
"""

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))
import numpy as np

from benchmarks.contenders import protocol
from benchmarks.contenders.blas import blas_facts
from benchmarks.workloads import WORKLOADS, Array, Product, Workload, matrix_products


class Products:
    """Answers `first_step` and `measure` as a contender does.

    Args:
        workload: Whose products.
    """

    def __init__(self, workload: Workload) -> None:
        """Fill the arrays with values that are neither zero nor equal."""
        rng = np.random.default_rng(0)
        self._work = [operands(product, rng) for product in matrix_products(workload)]
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


class ProductsOfParts(Products):
    """The products of equal parts of a batch, each on one BLAS thread, and the sums of gradients.

    As many threads as there are cores take the parts, each several one after the other. The parts'
    weight gradients are added over a binary tree.

    Args:
        workload: Whose products.
        parts: How many parts, a power of two.
    """

    def __init__(self, workload: Workload, parts: int) -> None:
        """Make the operands of all parts, and the threads."""
        from threadpoolctl import threadpool_limits

        threadpool_limits(1)
        rng = np.random.default_rng(0)
        cores = max(count for count in (1, 2, 4, 8) if count <= (os.cpu_count() or 1))
        self._parts, self._steps = parts // cores, workload.steps
        products = [part_of(product, parts) for product in matrix_products(workload)]
        self._lanes = [[operands(product, rng) for product in products] for _ in range(cores)]
        # As many partial sums of gradients as are alive at a time; the last one is the lane's sum.
        depth = self._parts.bit_length()
        self._sums = [
            {
                i: [np.zeros((product.rows, product.columns), np.float32) for _ in range(depth)]
                for i, product in enumerate(products)
                if product.kind == "weight gradient"
            }
            for _ in range(cores)
        ]
        self._barrier = threading.Barrier(cores)
        for lane in range(1, cores):
            threading.Thread(target=self._follow, args=(lane,), daemon=True).start()

    def _run(self, steps: int) -> float:
        started = time.perf_counter()
        for _ in range(steps):
            self._barrier.wait()
            self._lane(0)
            self._barrier.wait()
            for number, (*_, total) in self._sums[0].items():
                for sums in self._sums[1:]:
                    np.add(total, sums[number][-1], out=total)
        return time.perf_counter() - started

    def _follow(self, lane: int) -> None:
        while True:
            self._barrier.wait()
            self._lane(lane)
            self._barrier.wait()

    def _lane(self, lane: int) -> None:
        for part in range(self._parts):
            # A part's sum takes in those of the parts before it, as far as the tree joins them.
            level = (~part & (part + 1)).bit_length() - 1
            for number, (a, b, out) in enumerate(self._lanes[lane]):
                sums = self._sums[lane].get(number)
                target = out if sums is None else sums[level]
                np.matmul(a, b, out=target)
                for below in range(level if sums is not None else 0):
                    np.add(sums[below], target, out=target)


def operands(product: Product, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Return what a product multiplies, in the layout that a step has, and where it writes."""
    a = rng.normal(size=(product.rows, product.inner)).astype(np.float32)
    b = rng.normal(size=(product.inner, product.columns)).astype(np.float32)
    if product.kind == "weight gradient":  # A step has the transpose of this one.
        a = np.ascontiguousarray(a.T).T
    elif product.kind == "input gradient":
        b = np.ascontiguousarray(b.T).T
    return a, b, np.empty((product.rows, product.columns), np.float32)


def part_of(product: Product, parts: int) -> Product:
    """Return the product of a part of the batch."""
    if product.kind == "weight gradient":
        return Product(product.kind, product.rows, product.inner // parts, product.columns)
    return Product(product.kind, product.rows // parts, product.inner, product.columns)


def main() -> None:
    """Answer the driver."""
    arguments = protocol.parse_arguments()
    answers = protocol.keep_stdout()
    workload, parts = WORKLOADS[arguments.workload], arguments.fixed_replicas
    protocol.serve(ProductsOfParts(workload, parts) if parts else Products(workload), answers)


if __name__ == "__main__":
    main()
