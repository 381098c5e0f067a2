"""Values that the shape of a result depends on, which are known when the op is called."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored.ops.hooks import NoValueError, RecordedTensor, active_recorder
from mirrored.ops.tensor import Tensor


def known_values(tensor: Tensor, what: str, instead: str) -> NDArray[Any]:
    """Return the values of a tensor on the host.

    Args:
        tensor: The tensor.
        what: Of what there are as many as it says.
        instead: A sentence that says what a recorded function can do.

    Raises:
        NoValueError: It is of the function that is being recorded.
    """
    if isinstance(tensor, RecordedTensor) and active_recorder() is tensor.recorder:
        raise NoValueError(
            f"How many {what} there are depends on values, which a recorded function has only when "
            f"it runs, and shapes are known before. Received: {tensor!r}. {instead}"
        )
    return np.asarray(tensor.numpy())
