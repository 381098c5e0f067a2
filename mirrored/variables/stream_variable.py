"""The state of a layer's random stream as a variable, as Keras' layers have it."""

from typing import Any

import numpy as np

from mirrored import devices, ops
from mirrored.ops import SeedGenerator
from mirrored.ops.hooks import active_recorder
from mirrored.ops.spec import DType, int64
from mirrored.ops.tensor import Tensor, new_id
from mirrored.ops.tensor_shape import TensorShape
from mirrored.variables.traits import Traits
from mirrored.variables.variable import (
    Prepared,
    Variable,
    VariableAggregation,
    VariableSynchronization,
)

_WORD = 1 << 64


class StreamVariable(Variable):
    """The seed of a stream and the number of its draws, which the host keeps for all replicas.

    Args:
        stream: The stream.
        name: The variable's name.
    """

    __slots__ = ("_id", "_name", "_stream")

    def __init__(self, stream: SeedGenerator, name: str) -> None:
        self._stream, self._name, self._traits = stream, name, Traits()
        self._id = new_id()

    @property
    def name(self) -> str:
        """The name, with TensorFlow's ``:0`` behind it."""
        return f"{self._name}:0"

    @property
    def trainable(self) -> bool:
        """False."""
        return False

    @property
    def device(self) -> str:
        """The full name of the host."""
        return self.read_value().device

    @property
    def aggregation(self) -> VariableAggregation:
        """What all replicas have alike is the first one's."""
        return VariableAggregation.ONLY_FIRST_REPLICA

    @property
    def synchronization(self) -> VariableSynchronization:
        """Copies, of which there are none, would be alike."""
        return VariableSynchronization.AUTO

    @property
    def dtype(self) -> DType:
        """The dtype of both numbers."""
        return int64

    @property
    def shape(self) -> TensorShape:
        """That of two numbers."""
        return TensorShape((2,))

    def read_value(self) -> Tensor:
        """Return the state as it is now.

        Raises:
            RuntimeError: A function is being recorded.
        """
        self._check_context()
        words = np.array(self._stream.state, np.uint64).view(np.int64)
        with devices.device("CPU:0"):
            return ops.convert_to_tensor(words)

    def prepare(self, method: str, value: Any) -> "list[tuple[Variable, Prepared]]":
        """Return this variable with what the method would write into it."""
        self._check_context()
        old = self.read_value()
        if method == "change":
            new = value(old)
        else:
            new = ops.convert_to_tensor(value, int64)
            new = new if method == "assign" else old + (new if method == "assign_add" else -new)
        if new.shape != self.shape:
            raise ValueError(
                f"Cannot assign value to variable ' {self.name}': Shape mismatch.The variable "
                f"shape {self.shape}, and the assigned value shape {new.shape} are incompatible."
            )
        return [(self, new)]

    def commit(self, value: Prepared, method: str = "assign") -> None:
        """Let the stream go on from a state that `prepare` returned."""
        del method
        array = value if isinstance(value, np.ndarray) else value.numpy()
        self._stream.restore([int(number) % _WORD for number in array])

    def _check_context(self) -> None:
        if active_recorder() is not None:
            raise RuntimeError(
                f"The state {self.name!r} of a layer's random stream is kept by Python, which a "
                "recorded function does not run. Received: its use while a function was being "
                "recorded. Read and assign it outside mr.function and `fit`'s steps."
            )
