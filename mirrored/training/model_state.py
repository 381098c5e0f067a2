"""The facts that the library keeps of a model, apart from the attributes of users' subclasses."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeGuard

from mirrored import _nest
from mirrored.distribute import Strategy, has_strategy, in_cross_replica_context
from mirrored.graph import SymbolicTensor, drawn_anywhere
from mirrored.layers import Layer
from mirrored.layers.construction import Arguments
from mirrored.layers.layer_state import LayerState
from mirrored.layers.policy import DTypePolicy
from mirrored.program import TraceCache
from mirrored.training.compilation import Compilation
from mirrored.training.functional_graph import FunctionalGraph

if TYPE_CHECKING:
    from mirrored.training.model import Model
    from mirrored.training.step_verification import StepVerifier


class ModelState(LayerState):
    """The facts about a model; see `LayerState`.

    Args:
        arguments: What its constructor was called with.

    Attributes:
        strategy: The strategy in whose scope it was made, and is trained.
        traces: What `fit`, `evaluate` and `predict` recorded, by what it was recorded for.
        graph: The graph of a functional model.
        begin: The placeholders where a functional or `Sequential` model begins.
        end: Those where it ends, once it is built.
        names: The names of a `Sequential` model's layers: adding many takes no longer for each.
        takes_structures: Whether inputs may be lists, tuples and dicts; else data in a list of one
            are the one.
        zeros_as: While it is built: the dtypes that its inputs come in.
        compilation: What `compile` made.
        uncompiled_eagerly: Whether it is to run eagerly, as long as it is not compiled.
        step_functions: What `make_train_function` and its like made.
        verifier: What repeats some of the steps that train; None: none is repeated.
    """

    strategy: Strategy
    traces: TraceCache
    returns_values = True

    def __init__(self, arguments: Arguments | None) -> None:
        super().__init__(arguments)
        self.graph: FunctionalGraph | None = None
        self.begin: Any = None
        self.end: Any = None
        self.names: set[str] = set()
        self.takes_structures = True
        self.zeros_as: Any = None
        self.compilation: Compilation | None = None
        self.uncompiled_eagerly = False
        self.step_functions: dict[str, Any] = {}
        self.verifier: StepVerifier | None = None

    @property
    def inputs(self) -> list[SymbolicTensor]:
        """The placeholders where the model begins; none where it has no graph."""
        if self.begin is not None:
            return _nest.flatten(self.begin)
        start = self.end
        while start is not None and start.node.inputs:
            start = start.node.inputs[0]  # Back to where a `Sequential` model was built from.
        return [] if start is None else [start]

    @property
    def outputs(self) -> list[SymbolicTensor]:
        """The placeholders where it ends, likewise."""
        return [] if self.end is None else _nest.flatten(self.end)

    def take_policy(self, policy: DTypePolicy) -> None:
        """Compute in the dtypes of a policy; the layers inside cast inputs.

        Args:
            policy: The policy.
        """
        before = vars(self).get("input_dtype")
        super().take_policy(policy)
        if before is not None:
            self.input_dtype = before

    @contextmanager
    def weights_scope(self) -> Iterator[None]:
        """Enter the context in which weights are made: the scope of the model's strategy."""
        if has_strategy() and not in_cross_replica_context():
            yield  # A variable that is made in a replica is an error, which tells what to do.
            return
        with self.strategy.scope(), self.strategy.replica_device_scope(0), drawn_anywhere():
            yield


def is_model(value: Any) -> "TypeGuard[Model]":
    """Return whether a value is a model, by its state: what models call imports no `Model`.

    Args:
        value: The value.
    """
    return isinstance(value, Layer) and isinstance(value.__state__, ModelState)
