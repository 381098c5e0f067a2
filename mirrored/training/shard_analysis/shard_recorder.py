"""Records what a replica computes from a shard, and what is known of each value.

Nothing is computed. If a constant may have been made from the sizes of shards and batches, the
function is recorded again for other sizes, which shows how it follows from them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from mirrored.devices import Device, place
from mirrored.distribute.context import outside_scopes
from mirrored.distribute.global_batch import GlobalBatch
from mirrored.graph.inference import ShapeRecorder
from mirrored.ops.hooks import CustomCall, RecordedTensor, only
from mirrored.ops.op import Op
from mirrored.ops.rng_state import current_rng_state
from mirrored.ops.spec import FLOATS, TensorSpec
from mirrored.ops.tensor import Tensor
from mirrored.program.dataflow import SHARED
from mirrored.program.variable_access import ruled_by
from mirrored.training.shard_analysis.rules import DRAWS, Call, example_axes, rule_of
from mirrored.training.shard_analysis.shard_values import (
    SAME,
    UNIT,
    Kind,
    Operation,
    Scale,
    ShardValue,
)
from mirrored.variables import VariableAggregation, VariableSynchronization
from mirrored.variables.device_variable import Undone

_POWERS = range(-2, 3)
_MOST = 1e4  # The numerator of a short fraction.
_DENOMINATORS = (*range(1, 17), *(10**power for power in range(2, 13)))


class Sizes(NamedTuple):
    """The sizes that a function is recorded for, each a prime that divides no other size.

    Attributes:
        examples: The number of examples of a shard.
        replicas: The number of replicas.
    """

    examples: int
    replicas: int


class NotAnalysed(Exception):
    """The function cannot be recorded for other sizes than its own."""


class ShardRecorder(ShapeRecorder):
    """Records a function of a shard.

    Args:
        sizes: The sizes.
        earlier: The recording for other sizes, with which constants are compared; None: this is
            the first one.

    Attributes:
        sizes: The sizes.
        owners: The name and the kind of each layer, model or loss whose call is running, the
            innermost last.
        uneven_variables: By the name of a variable that replicas assign values of their shards,
            and whose aggregation on reads is no sum, its aggregation.
    """

    def __init__(self, sizes: Sizes, earlier: "ShardRecorder | None") -> None:
        super().__init__()
        self.sizes = sizes
        self.owners = [("", "step")]
        self.uneven_variables: dict[str, str] = {}
        self._earlier = earlier
        self._results: list[float | None] = []
        self._has_doubts = False
        self._known_of: dict[int, ShardValue] = {}
        self._calls: list[tuple[str, tuple[float | None, ...]]] = []
        self._makers: dict[int, Operation] = {}
        self._drawn: set[int] = set()

    @property
    def is_certain(self) -> bool:
        """Whether no constant may have been made from the sizes without this being known."""
        return self._earlier is not None or not self._has_doubts

    def shard(self, spec: TensorSpec) -> Tensor:
        """Return what stands for a shard's rows.

        Args:
            spec: The shape, without the axis of the examples, and the dtype.
        """
        whole = TensorSpec((self.sizes.examples, *spec.shape), spec.dtype)
        tensor = self.input(whole, place("Placeholder", ("GPU", "CPU")), SHARED)
        self.declare(tensor, ShardValue(Kind.ROWS))
        return tensor

    def declare(self, tensor: Tensor, value: ShardValue) -> None:
        """Say what is known of a tensor."""
        self._known_of[tensor._id] = value

    def value_known(self, tensor: Any) -> ShardValue:
        """Return what is known of a tensor; of a constant, that it is one."""
        return self._known_of.get(getattr(tensor, "_id", -1), SAME)

    def maker(self, tensor: Tensor) -> frozenset[Operation]:
        """Return the operation that computed a tensor; empty: none that was recorded."""
        operation = self._makers.get(tensor._id)
        return frozenset() if operation is None else frozenset([operation])

    def result_known(self, tensor: Any) -> ShardValue:
        """Return what is known of a result, which may be a constant made from the sizes.

        Both recordings ask for the same results in the same order.
        """
        self._results.append(_number(tensor))
        known = self._known_of.get(getattr(tensor, "_id", -1))
        if known is not None:
            return known
        before = [] if self._earlier is None else self._earlier._results[len(self._results) - 1 :]
        return self._constant(tensor, before[0] if before else None)

    def record(
        self,
        op: Op,
        inputs: tuple[Tensor, ...],
        attrs: Mapping[str, Any],
        spec: TensorSpec,
        device: Device,
    ) -> Tensor:
        """Return what stands for the result of an op, and note what is known of it."""
        # No graph is made, which would keep constants in the memory of a device.
        output = RecordedTensor(self, None, device, spec)
        number = len(self._calls)
        constants = tuple([_number(tensor) for tensor in inputs])
        self._calls.append((op.name, constants))
        if self._earlier is not None:
            before = self._earlier._calls
            if number >= len(before) or before[number][0] != op.name:
                raise NotAnalysed("The function computes otherwise for other sizes of a batch.")
            earlier = before[number][1]
            if len(earlier) == len(inputs):  # Others are of as many as there are examples.
                constants = earlier
        self._note(op, inputs, constants, attrs, output)
        return output

    def _note(
        self,
        op: Op,
        inputs: Sequence[Tensor],
        constants: Sequence[float | None],
        attrs: Mapping[str, Any],
        output: Tensor,
    ) -> None:
        """Note what is known of the result of an op.

        Args:
            op: The op.
            inputs: Its inputs.
            constants: The numbers that they are in the earlier recording.
            attrs: Its attributes.
            output: The result.
        """
        known = [self._known_of.get(tensor._id) for tensor in inputs]
        operation = Operation(self.owners[-1][0], op.name, self.owners[-1][1])
        values = [
            self._constant(tensor, past, operation) if value is None else value
            for tensor, value, past in zip(inputs, known, constants, strict=True)
        ]
        shapes = tuple([tensor._spec.shape for tensor in inputs])
        truncates = inputs[0].dtype in FLOATS and output.dtype not in FLOATS if inputs else False
        shape = output._spec.shape
        call = Call(operation, tuple(values), shapes, attrs, shape, truncates, self.sizes.examples)
        value = rule_of(op)(call)
        if value.kind is Kind.ROWS and len(self._shard_axes(shape)) > 1:
            value = value._replace(mixing=value.mixing | {operation})  # Rows of a shard's length.
        self.declare(output, value)
        self._makers[output._id] = operation

    def _shard_axes(self, shape: tuple[int, ...]) -> list[int]:
        """Return the axes of a shard's examples, without those of all replicas' examples."""
        whole = self.sizes.examples * self.sizes.replicas
        return [axis for axis in example_axes(shape, self.sizes.examples) if shape[axis] % whole]

    def follows(self, tensor: Tensor) -> bool:
        """Return whether gradients are wanted: never."""
        return False

    def on_op(
        self, op: Op, inputs: tuple[Tensor, ...], attrs: Mapping[str, Any], output: Tensor
    ) -> None:
        """Note what is known of random numbers by a constant seed, which are computed at once."""
        if isinstance(output, RecordedTensor) or op.shape_only:
            return
        if op.name in DRAWS or any(tensor._id in self._drawn for tensor in inputs):
            self._drawn.add(output._id)
            self._note(op, inputs, [_number(tensor) for tensor in inputs], attrs, output)

    def on_read(self, variable: Any, value: Tensor) -> None:
        """Note nothing: replicas read the same."""

    def on_custom_call(self, call: CustomCall) -> None:
        """Note where the gradient of a function that defines it combines examples."""
        known = [self._known_of.get(tensor._id) for tensor in call.outputs]
        rows = [value for value in known if value is not None and value.kind is Kind.ROWS]
        if not rows or len(rows) < len(known):
            return
        before = frozenset().union(*(value.mixing for value in rows))
        upstream: list[Tensor] = []
        for tensor, value in zip(call.outputs, rows, strict=True):
            upstream.append(RecordedTensor(self, None, tensor._device, tensor._spec))
            self.declare(upstream[-1], value._replace(mixing=before))
        mixing = before
        for gradient in call.rule(upstream):
            value = self._known_of.get(getattr(gradient, "_id", -1), SAME)
            mixing |= value.mixing
            if value.kind is Kind.OTHER or value.scale != Scale():
                mixing |= value.sources
        for tensor, value in zip(call.outputs, rows, strict=True):
            self.declare(tensor, value._replace(mixing=mixing))

    def write(self, variable: Any, value: Tensor) -> None:
        """Leave the variable as it is, and note where reading it depends on the replicas.

        What replicas assign to others becomes one value for all of them.
        """
        is_on_read = variable.synchronization is VariableSynchronization.ON_READ
        is_whole = self.value_known(value).kind is Kind.SAME
        if is_on_read and not is_whole and variable.aggregation is not VariableAggregation.SUM:
            self.uneven_variables[variable.name] = variable.aggregation.name

    def copy(self, tensor: RecordedTensor, device: Device) -> Tensor:
        """Return what stands for the tensor's copy on another device."""
        output = RecordedTensor(self, None, device, tensor.spec)
        if tensor._id in self._known_of:
            self.declare(output, self._known_of[tensor._id])
        return output

    def _constant(
        self, tensor: Any, earlier: float | None, operation: Operation | None = None
    ) -> ShardValue:
        """Return what is known of a value that does not depend on the shard's rows.

        Args:
            tensor: The value.
            earlier: The number that it was in the earlier recording.
            operation: The operation that uses it.
        """
        shape = getattr(tensor, "shape", ())
        axes = self._shard_axes(tuple(shape))
        if axes:
            is_of_batch = len(axes) < len(example_axes(tuple(shape), self.sizes.examples))
            user = None if is_of_batch else operation
            return _rows_of(tensor, axes[0], self.sizes.examples, user)
        number = _number(tensor)
        if number is None:
            return SAME
        if self._earlier is None:
            self._has_doubts = self._has_doubts or not _is_plain(number, self.sizes)
            earlier = number
        if earlier is None:
            return SAME
        return ShardValue(scale=self._scale(number, earlier), is_zero=number == earlier == 0.0)

    def _scale(self, number: float, earlier: float) -> Scale | None:
        """Return how a number follows from the sizes, given that of the earlier recording."""
        if number == earlier or self._earlier is None:
            return Scale()
        if number and earlier:
            others = self._earlier.sizes
            shard = self.sizes.examples / others.examples
            replicas = self.sizes.replicas / others.replicas
            for examples in _POWERS:
                for power in _POWERS:
                    expected = earlier * shard**examples * replicas**power
                    if abs(number - expected) < 1e-6 * abs(expected):
                        return Scale(examples, power)
        return None


def _number(tensor: Any) -> float | None:
    """Return the value of a constant of one element; None of all else."""
    if isinstance(tensor, RecordedTensor) or not isinstance(tensor, Tensor) or tensor.size != 1:
        return None
    return float(np.asarray(tensor.numpy()).reshape(-1)[0].real)


def _is_plain(number: float, sizes: Sizes) -> bool:
    """Return whether a number is a short fraction in which the sizes do not occur."""
    for denominator in _DENOMINATORS:
        numerator = number * denominator
        if not abs(numerator) < _MOST:
            return False
        if abs(numerator - round(numerator)) <= 1e-6 * abs(numerator):
            return not number or all(round(numerator) % size for size in sizes)
    return False


def _rows_of(tensor: Any, axis: int, examples: int, operation: Operation | None) -> ShardValue:
    """Return what is known of a constant with rows for examples."""
    if isinstance(tensor, RecordedTensor) or not isinstance(tensor, Tensor):
        return ShardValue(Kind.ROWS, axis)
    rows = np.moveaxis(np.asarray(tensor.numpy()), axis, 0)
    if (rows == rows[:1]).all():
        return ShardValue(Kind.ROWS, axis, blocks=None)
    step = int(np.real(rows.reshape(-1)[1])) if rows.size == examples else 0
    if step > 0 and np.array_equal(rows.reshape(-1), np.arange(examples) * step):
        return ShardValue(Kind.ROWS, axis, step=step)
    count = len(rows) // examples
    blocks = rows.reshape(count, examples, -1)
    if (blocks == blocks[:, :1]).all():
        return ShardValue(Kind.ROWS, axis, blocks=count)
    inner = rows.reshape(examples, count, -1)
    mixing = () if operation is None or (inner == inner[:1]).all() else (operation,)
    return ShardValue(Kind.ROWS, axis, mixing=frozenset(mixing))


def recordings(others: Sequence[int]) -> Iterator[ShardRecorder]:
    """Yield a recorder, and a second one if the recording by the first has constants in doubt.

    What the last one knows is known.

    Args:
        others: Sizes that occur in the function besides those of batches.
    """
    earlier: ShardRecorder | None = None
    for sizes in sizes_beside(others):
        recorder = ShardRecorder(sizes, earlier)
        yield recorder
        if recorder.is_certain:
            return
        earlier = recorder


def sizes_beside(others: Sequence[int]) -> tuple[Sizes, Sizes]:
    """Return two pairs of sizes that divide none of the others."""
    candidates = (
        number
        for number in range(41, 400)
        if all(number % n for n in range(2, int(number**0.5) + 1))
        and all(other % number or not other for other in others)
    )
    primes = list(islice(candidates, 4))
    return Sizes(primes[2], primes[0]), Sizes(primes[3], primes[1])


def is_by_example(function: Callable[..., Any], arguments: Sequence[Tensor]) -> bool:
    """Return whether each row of a function's result is known to depend on one example alone.

    The function is recorded for other numbers of examples; nothing is computed or written.

    Args:
        function: The function, of tensors of shape (examples, ...).
        arguments: What it is called with, of which shapes and dtypes are looked at.

    Returns:
        False also where that is unknown, as where the function cannot be recorded.
    """
    specs = [TensorSpec(tensor.shape[1:], tensor.dtype) for tensor in arguments]
    result: Any = None
    back = current_rng_state().mark()
    try:
        for recorder in recordings([size for spec in specs for size in spec.shape]):
            with (
                only(),
                recorder.recording(),
                ruled_by(lambda name: None),
                Undone().in_force(),
                GlobalBatch([recorder.sizes.examples]).in_force(),
                outside_scopes(),
            ):
                result = function(*[recorder.shard(spec) for spec in specs])
    except Exception:  # Whatever it raises, it does so again where it is called.
        return False
    finally:
        back()
    value = recorder.value_known(result)
    is_row_each = value.kind is Kind.ROWS and value.axis == 0 and value.scale == UNIT
    is_in_order = value.blocks in (1, None) and not value.reordered
    return is_row_each and is_in_order and not (value.mixing or value.step)
