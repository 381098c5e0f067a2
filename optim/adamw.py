"""Adam with weight decay: the weights shrink by themselves, and not through the gradient.

A penalty in the loss would be scaled as the gradient is, and large weights shrink too little.
"""

from typing import Any, Unpack

from mirrored._arguments import explained
from mirrored.optim.adam import Adam
from mirrored.optim.hyperparameters import OtherSettings


@explained
class AdamW(Adam):
    """AdamW (Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019).

    A step takes the part r * weight_decay of each weight away, and goes on as Adam's.

    Args:
        learning_rate: r, a number >= 0 that may be set between steps, or a schedule.
        weight_decay: The part of each weight, times r, that a step takes away.
        beta_1: The decay of the mean, in [0, 1).
        beta_2: The decay of the mean of squares, in [0, 1).
        epsilon: What keeps the quotient finite, above 0.
        amsgrad: Whether to divide by the largest mean of squares so far.
        **settings: Those that all optimizers have: see `Optimizer`.

    Raises:
        ValueError: A number is not in its range, or more than one kind of clipping is asked for.

    Example:
        >>> import mirrored as mr
        >>> v, optimizer = mr.Variable(10.0), mr.optim.AdamW(0.1, weight_decay=0.5)
        >>> optimizer.exclude_from_weight_decay(var_names=["bias"])
        >>> _ = optimizer.apply_gradients([(mr.constant(5.0), v)])
        >>> print(f"{v:.4f}")
        9.4000
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        weight_decay: float = 0.004,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        **settings: Unpack[OtherSettings],
    ) -> None:
        if weight_decay is None:
            raise ValueError(
                "Argument `weight_decay` must be a float. Received: weight_decay=None. Use Adam, "
                "which has none."
            )
        super().__init__(
            learning_rate, beta_1, beta_2, epsilon, amsgrad, weight_decay=weight_decay, **settings
        )
