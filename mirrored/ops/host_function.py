"""Functions of Python and on NumPy arrays as ops: they have a kernel for the CPU alone.

Their results' shapes are known only once they ran, so they do not pass through the op table. A
recorded function calls them in each run.
"""

import functools
import math
from collections.abc import Callable, Sequence
from time import perf_counter_ns, time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored._arguments import explained
from mirrored.devices import get_device, log_placement, place
from mirrored.devices.work_timing import kernel_work, observers, tell
from mirrored.errors import InvalidArgumentError, OperatorNotAllowedInGraphError
from mirrored.ops.checks import check_op
from mirrored.ops.conversion import adopt, constant, convert_to_tensor, from_host, to_array
from mirrored.ops.hooks import UnknownShape, active_recorder, in_graph, only
from mirrored.ops.host_tensor import transfer
from mirrored.ops.op import Check, Gradient, Grads, Op, OpCall
from mirrored.ops.spec import FLOATS, DType, TensorSpec, as_dtype, float64, shape_text
from mirrored.ops.strings import StringTensor
from mirrored.ops.tensor import Tensor


@explained
def numpy_function(
    func: Callable[..., Any] | None = None,
    inp: Sequence[Any] | None = None,
    Tout: Any = None,
    *,
    name: str | None = None,
) -> Any:
    """Call a Python function on NumPy arrays and return its results as tensors on the CPU.

    No gradient flows through it. In a recorded function it is called in each run of that, and its
    results have no shape until `ensure_shape`, `reshape` or their `set_shape` says which: each run
    checks it before anything is written. One replica calls it after the other.

    Args:
        func: Takes one array per input and returns an array, or a sequence of them. In recorded
            functions and functions of datasets inputs of rank 0 are NumPy's scalars. None returns
            a decorator, for a function that is called with the inputs.
        inp: The inputs; left out for a decorator.
        Tout: The dtype of the result, or a list of dtypes for a sequence of results.
        name: Accepted for compatibility; eager ops have no name.

    Raises:
        TypeError: `Tout` is missing, `inp` is missing, or `inp` is passed to a decorator.
        InvalidArgumentError: The device asked for is no CPU and soft placement is off, or the
            results are not as many or of the dtypes that `Tout` says, or not of the shapes.
        OperatorNotAllowedInGraphError: It is in a function that is recorded for a real GPU.

    Example:
        >>> import mirrored as mr
        >>> mr.numpy_function(lambda x: x + 1, [mr.constant([1.0, 2.0])], mr.float32).numpy()
        array([2., 3.], dtype=float32)
        >>> @mr.numpy_function(Tout=mr.float32)
        ... def double(x):
        ...     return 2 * x
        >>> double(mr.constant([1.0, 2.0])).numpy()
        array([2., 4.], dtype=float32)
    """
    if Tout is None:
        raise TypeError("Missing required argument: 'Tout'. Pass the dtype of the result.")
    if func is None:
        if inp is not None:
            raise TypeError(
                "A decorator (`func=None`) has no `inp`. Received: "
                f"inp={inp!r:.100}. Pass the inputs to the decorated function."
            )

        return lambda function: functools.wraps(function)(
            lambda *inputs: numpy_function(function, inputs, Tout)
        )
    if inp is None:
        raise TypeError("Missing argument `inp`: the list of arguments to the function.")
    several = isinstance(Tout, list | tuple)
    dtypes = [as_dtype(dtype) for dtype in (Tout if several else [Tout])]
    device = place("PyFunc", ("CPU",))

    is_eager = active_recorder() is None and not in_graph()

    def run(*arrays: NDArray[Any]) -> list[NDArray[Any]]:
        results = func(*(arrays if is_eager else map(_scalar, arrays)))
        values = _values(results, dtypes, "PyFunc")
        pairs = zip(values, dtypes, strict=True)
        return [_checked(*pair, position) for position, pair in enumerate(pairs)]

    if active_recorder() is not None:
        inputs = [adopt(value, None) for value in inp]
        outputs: list[Any] = list(recorded_call(run, inputs, dtypes, eager=False))
        return outputs if several else outputs[0]
    arrays = [_on_host(value) for value in inp]
    log_placement("PyFunc", device)
    start = perf_counter_ns() if observers else 0
    results = run(*arrays)
    if start:
        nbytes = sum(getattr(array, "nbytes", 0) for array in arrays)
        tell(kernel_work("PyFunc", (), device, nbytes, 0), start)
    tensors = [transfer(result, device) for result in results]
    return tensors if several else tensors[0]


def timestamp(name: str | None = None) -> Tensor:
    """Return the seconds since the epoch, as float64 on the CPU; a recorded function in each run.

    Args:
        name: Accepted for compatibility; eager ops have no name.

    Raises:
        OperatorNotAllowedInGraphError: It is in a function that is recorded for a real GPU.

    Example:
        >>> import mirrored as mr
        >>> start = mr.timestamp()
        >>> bool(mr.timestamp() >= start)
        True
    """
    seconds: Tensor = numpy_function(time, [], float64)
    seconds.set_shape(())
    return seconds


@explained
def py_function(
    func: Callable[..., Any] | None = None,
    inp: Sequence[Any] | None = None,
    Tout: Any = None,
    name: str | None = None,
) -> Any:
    """Call a Python function on tensors, which it may look at, and return its results as tensors.

    What it computes with operations has a gradient, but in a recorded function. It runs as any
    Python code does, on the devices that are current; in a recorded function in each call of that,
    as `numpy_function` does.

    Args:
        func: Takes one tensor an input and returns a tensor, an array or a number, or a list of
            such; None returns a decorator.
        inp: The inputs.
        Tout: The dtype of the result, or a list of dtypes for a list of results. A `TensorSpec`
            says the shape too.
        name: Accepted for compatibility; eager ops have no name.

    Raises:
        TypeError: `Tout` or `inp` is missing.
        ValueError: `func` cannot be called.
        InvalidArgumentError: The results are not as many or of the dtypes that `Tout` says.
        OperatorNotAllowedInGraphError: It is in a function that is recorded for a real GPU, or its
            gradient is asked for in one that is recorded.

    Example:
        >>> import mirrored as mr
        >>> def halve_if_large(x):
        ...     return x / 2.0 if x > 4.0 else x
        >>> x = mr.constant(6.0)
        >>> with mr.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = mr.py_function(halve_if_large, [x], mr.float32)
        >>> float(y), float(tape.gradient(y, x))
        (3.0, 0.5)
    """
    if Tout is None:
        raise TypeError("Missing required argument: 'Tout'. Pass the dtype of the result.")
    if func is None:
        return lambda func: lambda *inputs: py_function(func, inputs, Tout)
    if inp is None:
        raise TypeError("Missing argument `inp`: the list of arguments to the function.")
    if not callable(func):
        raise ValueError(
            f"Expected func to be callable. Received func={func!r} of type {type(func)}."
        )
    several = isinstance(Tout, list | tuple) and not isinstance(Tout, TensorSpec)
    wanted = [
        spec if isinstance(spec, TensorSpec) else as_dtype(spec)
        for spec in (Tout if several else [Tout])
    ]
    dtypes = [spec.dtype if isinstance(spec, TensorSpec) else spec for spec in wanted]
    arguments: list[Any] = [
        value if isinstance(value, StringTensor) else adopt(value, None) for value in inp
    ]

    def run(*tensors: Tensor) -> list[Tensor]:
        result = func(*tensors)
        values = _values(result, dtypes, "EagerPyFunc")
        try:
            return [convert_to_tensor(*pair) for pair in zip(values, dtypes, strict=True)]
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(f"{error} [Op:EagerPyFunc]") from error

    def run_on_arrays(*arrays: NDArray[Any]) -> list[NDArray[Any]]:
        return [np.asarray(tensor.numpy()) for tensor in run(*map(from_host, arrays))]

    outputs: list[Any] = []
    if active_recorder() is not None:
        outputs += recorded_call(run_on_arrays, arguments, wanted, eager=True)
    else:
        outputs += run(*arguments)
    return outputs if several else outputs[0]


def _values(result: Any, dtypes: Sequence[DType], kind: str) -> list[Any]:
    """Return the values that a function returned: those of a list or a tuple are several."""
    values = list(result) if isinstance(result, list | tuple) else [result]
    if result is None:
        values = []
    if len(values) != len(dtypes):
        raise InvalidArgumentError(
            f"The function returns {len(values)} values, but Tout names {len(dtypes)} dtypes. "
            f"Convert a list that is meant as one value to an array first. [Op:{kind}]"
        )
    return values


def _on_host(value: Any) -> Any:
    """Return an input as an array; strings as bytes."""
    if isinstance(value, StringTensor):
        return value.numpy()
    return np.asarray(adopt(value, None).numpy())


def _scalar(array: Any) -> Any:
    return array if isinstance(array, bytes) else array[()]


def _checked(value: Any, dtype: DType, position: int) -> NDArray[Any]:
    """Return a result as an array; Python numbers take the dtype, arrays must have it."""
    array = np.asarray(value) if hasattr(value, "dtype") else to_array(value, dtype)
    if array.dtype != dtype:
        raise InvalidArgumentError(
            f"{position}-th value returned by the function is {array.dtype.name}, but "
            f"expects {dtype.name}. Convert it in the function. [Op:PyFunc]"
        )
    return array


# From the inputs' arrays, which it may keep, to those of the results.
Run = Callable[..., Sequence[NDArray[Any]]]


class HostCall:
    """A function's results in the run of a program that goes on, which calls it once.

    Args:
        run: The function.
        count: How many inputs it takes. What takes none is given one, as each op is.
    """

    def __init__(self, run: Run, count: int) -> None:
        self._run = run
        self._count = count
        self.results: Sequence[NDArray[Any]] = ()

    def make(self, *arrays: Any) -> None:
        """Call the function: as a check, since it may raise what stops the program."""
        self.results = self._run(*(np.array(array) for array in arrays[: self._count]))

    def check(self, index: int, spec: TensorSpec, reshapes: bool) -> None:
        """Raise InvalidArgumentError where a result is not of the shape that was said."""
        shape = self.results[index].shape
        if math.prod(shape) != math.prod(spec.shape) if reshapes else shape != spec.shape:
            raise InvalidArgumentError(
                f"The function returned a value of shape {shape_text(shape)}, but its shape was "
                f"{shape_text(spec.shape)} when it was recorded. Return that shape, or call the "
                "function outside of the recorded one. [Op:PyFunc]"
            )


def _result(xp: Any, out: Any, *_: Any, call: HostCall, index: int, **__: Any) -> None:
    xp.copyto(out, call.results[index].reshape(out.shape), casting="same_kind")


def _check(*_: Any, call: HostCall, index: int, spec: TensorSpec, reshapes: bool) -> Check:
    return lambda: call.check(index, spec, reshapes)


def _no_gradient(call: OpCall, g: Tensor) -> Grads:
    raise OperatorNotAllowedInGraphError(
        "The gradient of a `py_function` is known only when it runs, so it cannot be recorded. "
        "Compute it outside of the recorded function, define it with mr.custom_gradient, or stop "
        "it with mr.stop_gradient."
    )


def _calling(name: str, gradient: Gradient | None = None) -> tuple[Op, Op]:
    """Return the op that calls a function, and the one that is a result of it.

    Recorded functions alone have them: they are in no table.
    """
    calls = check_op(name, lambda *arrays, call: lambda: call.make(*arrays))
    gives = Op(
        name=f"{name}Result",
        infer=lambda *_, spec, **__: spec,
        kernel=_result,
        gradient=gradient,
        devices=("CPU",),
        validate=_check,
        stateful=True,
        whole=True,
    )
    return calls, gives


_OF_ARRAYS = _calling("PyFunc")
_OF_TENSORS = _calling("EagerPyFunc", _no_gradient)


def recorded_call(
    run: Run, inputs: Sequence[Tensor], specs: Sequence[TensorSpec | DType], *, eager: bool
) -> list[UnknownShape]:
    """Note the call of a function in what is being recorded; return what stands for its results.

    Args:
        run: From arrays, one an input, to those of the results, of the right dtypes.
        inputs: The inputs.
        specs: The dtype of each result, or its spec, where its shape is known.
        eager: Whether it computes with tensors, and would have a gradient.
    """
    calls, gives = _OF_TENSORS if eager else _OF_ARRAYS
    call = HostCall(run, len(inputs))
    with only():
        signal = calls(*(inputs or [constant(0)]), call=call)
    # A tape has to know that the results depend on them.
    floats = [tensor for tensor in inputs if tensor.dtype in FLOATS] if eager else []

    def result(index: int, spec: TensorSpec | DType) -> UnknownShape:
        def shaped(spec: TensorSpec, reshapes: bool) -> Tensor:
            return gives(signal, *floats, call=call, index=index, spec=spec, reshapes=reshapes)

        def value() -> Tensor:
            return transfer(call.results[index], get_device("CPU:0"))

        if not isinstance(spec, TensorSpec):
            return UnknownShape(spec, shaped, value)
        placeholder = UnknownShape(spec.dtype, shaped, value)
        placeholder.set_shape(spec.shape)
        return placeholder

    return [result(index, spec) for index, spec in enumerate(specs)]
