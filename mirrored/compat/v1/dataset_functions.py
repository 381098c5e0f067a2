"""Functions of a program that a dataset calls: drawn once, and computed for each element."""

from collections.abc import Callable
from typing import Any, NoReturn

from mirrored import _nest
from mirrored.compat.v1.control_flow import Branch, loop_variable
from mirrored.compat.v1.elements import Operation, Tensor
from mirrored.compat.v1.graph import get_default_graph
from mirrored.compat.v1.running import Run, running
from mirrored.compat.v1.sources import converted
from mirrored.data.leaf_specs import LeafSpec, NestedSpec
from mirrored.ops.conversion import convert_to_tensor
from mirrored.ops.rng_state import RngState, current_rng_state


class DatasetFunction:
    """A function of elements of a dataset, as the part of the graph that it drew.

    Args:
        function: From an element, or the parts of a tuple, to tensors or datasets.
        specs: The structure of an element, with a `LeafSpec` for each array.
        nested: From the specs of a dataset within elements to a dataset that stands for it.
        name: The name scope.

    Attributes:
        inputs: The tensors of the graph that it takes in addition to the element.
        structure: The tensors and datasets that it returns.
    """

    def __init__(
        self, function: Callable[..., Any], specs: Any, nested: Callable[[Any], Any], name: str
    ) -> None:
        graph = get_default_graph()
        with graph.control_dependencies(None), graph.device(None), graph.name_scope(name):
            start = graph.version

            def stand_in(spec: Any) -> Any:
                if isinstance(spec, NestedSpec):
                    return nested(spec.specs)
                if spec.dtype.kind == "O":
                    raise TypeError(
                        "Functions of datasets in sessions take tensors of numbers and booleans. "
                        "Received: a dataset of texts. Keep texts in Python."
                    )
                return loop_variable(graph, spec.shape, spec.dtype)

            element = _nest.map_structure(stand_in, specs)
            is_tuple = type(element) is tuple
            returned = function(*element) if is_tuple else function(element)
            returned = tuple(returned) if isinstance(returned, list) else returned
            self.structure = _nest.map_structure(
                lambda leaf: leaf if hasattr(leaf, "built") else converted(leaf), returned
            )
            self._element, self._is_tuple = _nest.flatten(element), is_tuple
            self._tensors = [leaf for leaf in self._element if isinstance(leaf, Tensor)]
            leaves = _nest.flatten(self.structure)
            self._outputs: list[Tensor] = [
                tensor
                for leaf in leaves
                for tensor in ([leaf] if isinstance(leaf, Tensor) else leaf.inputs)
            ]
            self._branch = Branch(start, self._tensors, self._outputs)
        self.inputs: tuple[Tensor, ...] = tuple(self._branch.captured)

    @property
    def specs(self) -> Any:
        """The structure of its result, with a `LeafSpec` for each array."""
        return _nest.map_structure(_spec_of, self.structure)

    def built(self, known: dict[Any, Any]) -> Callable[..., Any]:
        """Return the function of values.

        Args:
            known: The values of tensors of the graph, and the datasets built so far.
        """

        def call(*values: Any) -> Any:
            leaves = _nest.flatten(values if self._is_tuple else values[0])
            there = {**known, **dict(zip(self._element, leaves, strict=True))}
            captured = [convert_to_tensor(known[tensor]) for tensor in self.inputs]
            with running(Run(_Unkept())):
                results = self._branch([there[tensor] for tensor in self._tensors], captured)
            there.update(zip(self._outputs, results, strict=True))
            return _nest.map_structure(
                lambda leaf: there[leaf] if isinstance(leaf, Tensor) else leaf.built(there),
                self.structure,
            )

        return call


class _Unkept:
    """Stands for what a session keeps, in a function of a dataset, for which it keeps nothing."""

    has_no_values = False

    def __init__(self) -> None:
        self._counts: dict[Operation, int] = {}

    def stream(self, operation: Operation) -> RngState:
        """Return what the dataset's function draws from."""
        return current_rng_state()

    def count(self, operation: Operation) -> int:
        """Return how often this was called for an operation before."""
        self._counts[operation] = self._counts.get(operation, -1) + 1
        return self._counts[operation]

    def storage(self, variable: Any) -> NoReturn:
        """Raise RuntimeError: a dataset does not change variables."""
        raise RuntimeError(
            f"A function of a dataset cannot write to {variable!r}. Write to it in the session."
        )


def _spec_of(leaf: Any) -> LeafSpec | NestedSpec:
    if not isinstance(leaf, Tensor):
        return NestedSpec(leaf.specs)
    return LeafSpec(None if leaf._shape is None else tuple(leaf._shape), leaf._dtype)
