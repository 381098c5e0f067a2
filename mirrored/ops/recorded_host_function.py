"""Calls of Python in recorded functions: `py_function` and `numpy_function`, in each run.

What they return has no shape while the function is recorded. Where somebody says which it has, a
run checks that; until then nothing computes with it.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored.devices import get_device
from mirrored.errors import InvalidArgumentError, OperatorNotAllowedInGraphError
from mirrored.ops.conversion import constant
from mirrored.ops.hooks import UnknownShape, only
from mirrored.ops.host_tensor import transfer
from mirrored.ops.op import Check, Grads, Op, OpCall
from mirrored.ops.spec import FLOATS, DType, TensorSpec, bool_, shape_text
from mirrored.ops.tensor import Tensor

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
                f"The function returned a value of shape {shape_text(shape)} where it was said to "
                f"be {shape_text(spec.shape)} when it was recorded. Return that shape, or call "
                "the function outside of the recorded one. [Op:PyFunc]"
            )


def _mark_called(xp: Any, out: Any, *_: Any, **__: Any) -> None:
    xp.copyto(out, True)


def _result(xp: Any, out: Any, *_: Any, call: HostCall, index: int, **__: Any) -> None:
    xp.copyto(out, call.results[index].reshape(out.shape), casting="same_kind")


def _check(*_: Any, call: HostCall, index: int, spec: TensorSpec, reshapes: bool) -> Check:
    return lambda: call.check(index, spec, reshapes)


def _no_gradient(call: OpCall, g: Tensor) -> Grads:
    raise OperatorNotAllowedInGraphError(
        "The gradient of what a `py_function` computes is known only when it runs, and a recorded "
        "function's is recorded. Take it outside of the recorded function, where the gradient "
        "flows; or give it by mr.custom_gradient; or stop it, by mr.stop_gradient."
    )


def _calling(name: str, **options: Any) -> tuple[Op, Op]:
    """Return the op that calls a function, and the one that is a result of it.

    Recorded functions alone have them: they are in no table.
    """
    common: Any = {"devices": ("CPU",), "stateful": True}
    calls = Op(
        name=name,
        infer=lambda *_, **__: TensorSpec((), bool_),
        kernel=_mark_called,
        validate=lambda *arrays, call: lambda: call.make(*arrays),
        **common,
    )
    gives = Op(
        name=f"{name}Result",
        infer=lambda *_, spec, **__: spec,
        kernel=_result,
        validate=_check,
        whole=True,
        **common,
        **options,
    )
    return calls, gives


_OF_ARRAYS = _calling("PyFunc")
_OF_TENSORS = _calling("EagerPyFunc", gradient=_no_gradient)


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
