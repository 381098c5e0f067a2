"""A penalty on activations as a layer of its own.

For models that name it apart from the layer whose outputs it is on.
"""

from typing import Any, Unpack

from mirrored._arguments import explained
from mirrored.layers.layer import PlainOptions, SameShape
from mirrored.layers.regularizers import L1L2
from mirrored.ops import Tensor


@explained
class ActivityRegularization(SameShape):
    """Returns its inputs, and adds a penalty on them to the loss.

    The penalty is (l1 * sum(abs(inputs)) + l2 * sum(square(inputs))) / examples.

    Args:
        l1: The factor of the sum of absolute values.
        l2: The factor of the sum of squares.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: A factor is negative or not a finite number.

    Example:
        >>> layer = ActivityRegularization(l2=0.5)
        >>> layer([[1.0, 2.0], [0.0, 1.0]]).shape
        (2, 2)
        >>> [float(loss) for loss in layer.losses]
        [1.5]
    """

    _supports_masking = True

    def __init__(self, l1: float = 0.0, l2: float = 0.0, **options: Unpack[PlainOptions]) -> None:
        penalty = L1L2(l1=l1, l2=l2)
        super().__init__(activity_regularizer=penalty, **options)
        self.l1, self.l2 = penalty.l1, penalty.l2

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make a layer like it, by name, as plain values."""
        config = super().get_config()
        del config["activity_regularizer"]  # It is made of the others.
        return config

    def call(self, inputs: Tensor) -> Tensor:
        """Return ``inputs``, of any shape."""
        return inputs
