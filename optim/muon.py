"""Muon: the momentum of a matrix is made orthogonal before it is a step.

What is no matrix is trained by AdamW's rule.
"""

import math
import re
from collections.abc import Sequence
from typing import Unpack

from mirrored import ops
from mirrored._numbers import check_count
from mirrored.ops import Tensor
from mirrored.optim.hyperparameters import (
    LearningRate,
    OtherSettings,
    Tensors,
    check_number,
    optional_number,
)
from mirrored.optim.optimizer import Optimizer
from mirrored.variables import Variable


class Muon(Optimizer):
    """Muon (Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024).

    A matrix with gradient g: m <- momentum m + g, and w <- w - r s U, where U is what `ns_steps`
    Newton-Schulz steps x <- a x + (b x x' + c (x x')^2) x make of u / |u|: nearly the orthogonal
    matrix next to it. u is m, or g + momentum m with `nesterov`; s is rms_rate times the root of
    the matrix' longer side (Liu et al., "Muon is scalable for LLM training", 2025).

    Every other variable is trained by AdamW: what has not two axes; what has "embedding" in its
    name, where `exclude_embeddings`; and what `exclude_layers` names.

    Args:
        learning_rate: r, a number >= 0 that may be set between steps, or a schedule.
        adam_beta_1: AdamW's decay of the mean, in [0, 1).
        adam_beta_2: AdamW's decay of the mean of squares, in [0, 1).
        adam_weight_decay: As `weight_decay`, for what AdamW trains; None: none.
        epsilon: AdamW's, above 0.
        weight_decay: The part of each matrix, times r, that a step takes away; None: none.
        exclude_layers: Regular expressions; variables whose names have a match are AdamW's.
        exclude_embeddings: Whether those with "embedding" in their names are.
        muon_a: a.
        muon_b: b.
        muon_c: c.
        adam_lr_ratio: AdamW's learning rate is r times this.
        momentum: How much of m stays in each step.
        ns_steps: The number of Newton-Schulz steps.
        nesterov: Whether to look ahead along the momentum.
        rms_rate: The root mean square that steps have; None: they are not scaled.
        **settings: Those that all optimizers have: see `Optimizer`.

    Raises:
        ValueError: A number is not in its range, or more than one kind of clipping is asked for.

    Example:
        >>> import mirrored as mr
        >>> v = mr.Variable([[1.0, 0.0], [0.0, 1.0]])
        >>> optimizer = mr.optim.Muon(0.1, weight_decay=None)
        >>> _ = optimizer.apply_gradients([(mr.constant([[9.0, 0.0], [0.0, 9.0]]), v)])
        >>> print([f"{w:.2f}" for w in v.numpy().flatten()])
        ['0.97', '0.00', '0.00', '0.97']
    """

    _plannable = False  # It looks into lists.
    # The momentum; and the mean of squares, which AdamW's rule has.
    slot_names = ("momentum", "velocity")

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        adam_beta_1: float = 0.9,
        adam_beta_2: float = 0.999,
        adam_weight_decay: float | None = 0.004,
        epsilon: float = 1e-7,
        weight_decay: float | None = 0.004,
        *,
        exclude_layers: Sequence[str] | None = None,
        exclude_embeddings: bool = True,
        muon_a: float = 3.4445,
        muon_b: float = -4.7750,
        muon_c: float = 2.0315,
        adam_lr_ratio: float = 1,
        momentum: float = 0.95,
        ns_steps: int = 5,
        nesterov: bool = True,
        rms_rate: float | None = 0.2,
        **settings: Unpack[OtherSettings],
    ) -> None:
        self.adam_beta_1 = check_number("adam_beta_1", adam_beta_1, below=1.0)
        self.adam_beta_2 = check_number("adam_beta_2", adam_beta_2, below=1.0)
        self.adam_weight_decay = optional_number("adam_weight_decay", adam_weight_decay)
        self.epsilon = check_number("epsilon", epsilon, above_zero=True)
        self.exclude_layers = list(exclude_layers or ())
        self.exclude_embeddings = bool(exclude_embeddings)
        self.muon_a, self.muon_b, self.muon_c = float(muon_a), float(muon_b), float(muon_c)
        self.adam_lr_ratio = check_number("adam_lr_ratio", adam_lr_ratio)
        self.momentum = check_number("momentum", momentum)
        check_count("ns_steps", ns_steps, least=0)
        self.ns_steps = ns_steps
        self.nesterov = bool(nesterov)
        self.rms_rate = optional_number("rms_rate", rms_rate)
        super().__init__(learning_rate, weight_decay=weight_decay, **settings)

    def slot_names_for(self, variable: Variable) -> tuple[str, ...]:
        """Return both names where AdamW's rule trains a variable, else the first."""
        return self.slot_names if self._is_adams(variable) else self.slot_names[:1]

    def _is_adams(self, variable: Variable) -> bool:
        name = variable.name.removesuffix(":0")
        if len(variable.shape) != 2 or (self.exclude_embeddings and "embedding" in name.lower()):
            return True
        return any(re.search(pattern, name) for pattern in self.exclude_layers)

    def _weight_decay_for(self, variable: Variable) -> float | None:
        return self.adam_weight_decay if self._is_adams(variable) else self.weight_decay

    def update(
        self, gradient: Tensor, value: Tensor, slots: Tensors, learning_rate: Tensor, step: Tensor
    ) -> tuple[Tensor, Tensors]:
        """Return the new value and slots; arguments as for `Optimizer.update`."""
        if len(slots) == 2:
            mean, square = slots
            mean = mean + (gradient - mean) * (1.0 - self.adam_beta_1)
            square = square + (gradient * gradient - square) * (1.0 - self.adam_beta_2)
            correction = ops.sqrt(1.0 - self.adam_beta_2**step) / (1.0 - self.adam_beta_1**step)
            rate = learning_rate * self.adam_lr_ratio * correction
            return value - mean * rate / (ops.sqrt(square) + self.epsilon), (mean, square)
        mean = slots[0] + (gradient + slots[0] * (self.momentum - 1.0))
        ahead = gradient + mean * self.momentum if self.nesterov else mean
        rate = learning_rate
        if self.rms_rate is not None:
            rate = rate * math.sqrt(max(value.shape)) * self.rms_rate
        return value - self._orthogonal(ahead) * rate, (mean,)

    def _orthogonal(self, matrix: Tensor) -> Tensor:
        """Return a matrix near the orthogonal one that is next to a matrix."""
        tall = matrix.shape[0] > matrix.shape[1]
        x = ops.transpose(matrix) if tall else matrix
        x = x / (ops.sqrt(ops.reduce_sum(x * x)) + 1e-7)
        for _ in range(self.ns_steps):
            square = ops.matmul(x, x, transpose_b=True)
            power = square * self.muon_b + ops.matmul(square * self.muon_c, square)
            x = x * self.muon_a + ops.matmul(power, x)
        return ops.transpose(x) if tall else x
