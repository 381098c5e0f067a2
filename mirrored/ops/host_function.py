"""Functions on NumPy arrays as ops: they have a kernel for the CPU alone.

Their results' shapes are known only once they ran, so they do not pass through the op table.
"""

from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored._arguments import explained
from mirrored.devices import log_placement, place
from mirrored.devices.timing import kernel_work, observers, tell
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import adopt, to_array
from mirrored.ops.host_tensor import transfer
from mirrored.ops.spec import DType, as_dtype


@explained
def numpy_function(
    func: Callable[..., Any], inp: Sequence[Any], Tout: Any, *, name: str | None = None
) -> Any:
    """Call a Python function on NumPy arrays and return its results as tensors on the CPU.

    No gradient flows through it.

    Args:
        func: Takes one array an input and returns an array, or a sequence of them.
        inp: The inputs.
        Tout: The dtype of the result, or a list of dtypes for a sequence of results.
        name: Accepted for compatibility; eager ops have no name.

    Raises:
        InvalidArgumentError: The device asked for is no CPU and soft placement is off, or the
            results are not as many or of the dtypes that `Tout` says.

    Example:
        >>> import mirrored as mr
        >>> mr.numpy_function(lambda x: x + 1, [mr.constant([1.0, 2.0])], mr.float32).numpy()
        array([2., 3.], dtype=float32)
    """
    several = isinstance(Tout, list | tuple)
    dtypes = [as_dtype(each) for each in (Tout if several else [Tout])]
    device = place("PyFunc", ("CPU",))
    arrays = [np.asarray(adopt(value, None).numpy()) for value in inp]
    log_placement("PyFunc", device)
    start = perf_counter_ns() if observers else 0
    results = func(*arrays)
    if start:
        nbytes = sum(array.nbytes for array in arrays)
        tell(kernel_work("PyFunc", (), device, nbytes, 0), start)
    values = list(results) if several else [results]
    if len(values) != len(dtypes):
        raise InvalidArgumentError(
            f"The function returns {len(values)} values, but Tout names {len(dtypes)} dtypes "
            "[Op:PyFunc]"
        )
    tensors = [
        transfer(_checked(value, dtype, position), device)
        for position, (value, dtype) in enumerate(zip(values, dtypes, strict=True))
    ]
    return tensors if several else tensors[0]


def _checked(value: Any, dtype: DType, position: int) -> NDArray[Any]:
    """Return a result as an array; Python numbers take the dtype, arrays must have it."""
    array = np.asarray(value) if hasattr(value, "dtype") else to_array(value, dtype)
    if array.dtype != dtype:
        raise InvalidArgumentError(
            f"{position}-th value returned by the function is {array.dtype.name}, but "
            f"expects {dtype.name}. Convert it in the function. [Op:PyFunc]"
        )
    return array
