"""Orthogonal matrices as starting values: what passes through them keeps its length."""

import math
from typing import ClassVar

import numpy as np

from mirrored import ops
from mirrored._arguments import explained
from mirrored.layers.starting_values import Drawn, Seed
from mirrored.ops import SeedGenerator, Tensor
from mirrored.ops.spec import DType, Shape


@explained
class Orthogonal(Drawn):
    """Draws a matrix whose columns, or rows where these are fewer, are orthogonal unit vectors.

    It is the Q of a QR decomposition of normal numbers, with signs such that R has a positive
    diagonal, and so any such matrix is as likely as any other. A weight of more axes is a matrix
    whose rows are all axes but the last.

    Saxe et al., Exact solutions to the nonlinear dynamics of learning in deep linear neural
    networks, 2014: https://arxiv.org/abs/1312.6120

    Args:
        gain: What the matrix is multiplied by.
        seed: An integer for the same values every time, None for new ones.

    Example:
        >>> import mirrored as mr
        >>> q = Orthogonal(seed=0)((3, 3))
        >>> float(mr.reduce_max(mr.abs(mr.matmul(q, q, transpose_a=True) - mr.eye(3)))) < 1e-6
        True
    """

    takes_long: ClassVar[bool] = True  # More than in proportion to the values.

    def __init__(self, gain: float = 1.0, seed: Seed = None) -> None:
        super().__init__(seed)
        self.gain = gain

    def _draw(self, generator: SeedGenerator, shape: Shape, dtype: DType) -> Tensor:
        if len(shape) < 2:
            raise ValueError(
                "The tensor to initialize must be at least two-dimensional. Received: "
                f"shape={shape} of rank {len(shape)}."
            )
        rows, columns = math.prod(shape[:-1]), shape[-1]
        computed = np.dtype("float64" if dtype == np.float64 else "float32")
        sizes = max(rows, columns), min(rows, columns)
        # The host's routine decides, and not a device's: every machine starts with the same.
        q, r = np.linalg.qr(generator.normal(sizes, dtype=computed).numpy())
        q = q * np.sign(np.diag(r))
        q = q.T if rows < columns else q
        return ops.constant((self.gain * q).reshape(shape).astype(dtype))
