"""The facts that the library keeps of a model, apart from the attributes of users' subclasses."""

from typing import TYPE_CHECKING, Any, TypeGuard

from mirrored.distribute import Strategy
from mirrored.layers import Layer
from mirrored.layers.call_arguments import CallArguments
from mirrored.layers.construction import Arguments
from mirrored.layers.layer_state import LayerState
from mirrored.program import TraceCache
from mirrored.training.compilation import Compilation
from mirrored.training.functional_graph import FunctionalGraph

if TYPE_CHECKING:
    from mirrored.training.model import Model


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
        called_with: While it is built: the arguments of the call.
        zeros_as: While it is built: the dtypes that its inputs come in.
        compilation: What `compile` made.
        uncompiled_eagerly: Whether it is to run eagerly, as long as it is not compiled.
        step_functions: What `make_train_function` and its like made.
    """

    strategy: Strategy
    traces: TraceCache

    def __init__(self, arguments: Arguments | None) -> None:
        super().__init__(arguments)
        self.graph: FunctionalGraph | None = None
        self.begin: Any = None
        self.end: Any = None
        self.names: set[str] = set()
        self.takes_structures = True
        self.called_with: CallArguments | None = None
        self.zeros_as: Any = None
        self.compilation: Compilation | None = None
        self.uncompiled_eagerly = False
        self.step_functions: dict[str, Any] = {}


def is_model(value: Any) -> "TypeGuard[Model]":
    """Return whether a value is a model, by its state: what models call imports no `Model`.

    Args:
        value: The value.
    """
    return isinstance(value, Layer) and isinstance(value.__state__, ModelState)
