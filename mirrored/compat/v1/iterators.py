"""Iterators over datasets in sessions: operations that draw elements, a run one element each."""

import threading
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from mirrored import _nest
from mirrored.compat.v1.graph import Graph, get_default_graph
from mirrored.compat.v1.graph_elements import Operation, Tensor
from mirrored.compat.v1.partial_shapes import TensorShape, sizes_of
from mirrored.compat.v1.plans import Kept, Plan, operation_of
from mirrored.compat.v1.running import current_run
from mirrored.data.leaf_specs import LeafSpec, public_specs, signature_of
from mirrored.errors import FailedPreconditionError, OperatorNotAllowedInGraphError, OutOfRangeError
from mirrored.graph.part import nodes_between
from mirrored.ops.conversion import from_host
from mirrored.ops.hooks import active_recorder

if TYPE_CHECKING:
    from mirrored.compat.v1.datasets import Dataset


def absent(kind: str, name: str) -> AttributeError:
    """Return the error of a name that datasets and iterators of sessions do not have."""
    return AttributeError(
        f"tf.data.{kind} of sessions has no {name!r}. Use it with a dataset of `mirrored.data`, "
        "which `tf.data.make_one_shot_iterator` takes too."
    )


class Structure:
    """Something whose elements have a structure, with the names that TensorFlow 1 has for it.

    Attributes:
        specs: The structure, with a `LeafSpec` for each array.
    """

    specs: Any

    def __getattr__(self, name: str) -> Any:
        raise absent(type(self).__name__, name)

    @property
    def element_spec(self) -> Any:
        """The structure of an element, with a `TensorSpec` for each tensor."""
        return public_specs(self.specs)

    @property
    def output_types(self) -> Any:
        """The dtypes of an element, in its structure."""
        return _nest.map_structure(lambda spec: spec.dtype, self.specs)

    @property
    def output_shapes(self) -> Any:
        """The shapes of an element, in its structure."""
        return _nest.map_structure(lambda spec: TensorShape(spec.shape), self.specs)

    @property
    def output_classes(self) -> Any:
        """`Tensor` for each part of an element, in its structure."""
        return _nest.map_structure(lambda spec: Tensor, self.specs)


class Iterator(Structure):
    """Draws elements of a dataset, one in each run that takes from it.

    Args:
        graph: The graph.
        specs: The structure of an element, with a `LeafSpec` for each array.
        source: The dataset of an iterator that needs no initializer; None: an initializer runs.

    Raises:
        TypeError: An element has parts that are no tensors here: texts, or datasets.

    Example:
        >>> import mirrored.compat.v1 as tf
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     dataset = tf.data.Dataset.range(4).batch(3)
        ...     batch = dataset.make_one_shot_iterator().get_next()
        ...     [session.run(batch).tolist() for _ in range(2)]
        [[0, 1, 2], [3]]
    """

    def __init__(self, graph: Graph, specs: Any, source: "Dataset | None" = None) -> None:
        for spec in _nest.flatten(specs):
            if not isinstance(spec, LeafSpec) or spec.dtype.kind == "O":
                raise TypeError(
                    "Iterators of sessions return only tensors of numbers and booleans. "
                    f"Received: {public_specs(specs)}. Leave strings out, and use `flat_map` for "
                    "datasets."
                )
        self.specs = specs
        self._graph, self._source = graph, source
        self._initializer: Operation | None = None
        self._lock = threading.Lock()

    @staticmethod
    def from_structure(
        output_types: Any,
        output_shapes: Any = None,
        shared_name: str | None = None,
        output_classes: Any = None,
    ) -> "Iterator":
        """Return an iterator for several datasets, each of which has an initializer.

        Args:
            output_types: The dtypes of an element, in its structure.
            output_shapes: The shapes, in the same structure; None: not known.
            shared_name: Accepted for compatibility.
            output_classes: Accepted for compatibility.
        """
        shapes = _nest.map_structure(
            lambda leaf: sizes_of(leaf) if isinstance(leaf, TensorShape) else leaf, output_shapes
        )
        return Iterator(get_default_graph(), signature_of(output_types, shapes))

    @property
    def initializer(self) -> Operation:
        """The operation that starts at the first element.

        Raises:
            ValueError: There is none.
        """
        if self._initializer is None:
            raise ValueError(
                "The iterator does not have an initializer. This means it was likely created using "
                "`tf.data.Dataset.make_one_shot_iterator()`. For an initializable iterator, use "
                "`tf.data.Dataset.make_initializable_iterator()` instead."
            )
        return self._initializer

    def initialize_from(self, source: "Dataset") -> "Iterator":
        """Let `initializer` start at the first element of a dataset, and return the iterator."""
        self._initializer = self.make_initializer(source, "MakeIterator")
        return self

    def make_initializer(self, dataset: "Dataset", name: str | None = None) -> Operation:
        """Return an operation that starts at the first element of a dataset.

        Args:
            dataset: A dataset of the graph.
            name: Its name.

        Raises:
            TypeError: Its elements have another structure, other dtypes or other shapes.
        """
        if self.output_types != dataset.output_types:
            raise TypeError(
                f"Expected output types {self.output_types} but got dataset with output types "
                f"{dataset.output_types}. Use a dataset of the same structure and dtypes."
            )
        shapes = [_nest.flatten(side.output_shapes) for side in (self, dataset)]
        for expected, shape in zip(*shapes, strict=True):
            if not expected.is_compatible_with(shape):
                raise TypeError(
                    f"Expected output shapes compatible with {expected} but got dataset with "
                    f"output shapes {shape}. Use a dataset of these shapes."
                )

        def start(*values: Any) -> None:
            run = current_run()
            if run is not None and not run.kept.has_no_values:
                self._start(run.kept, dataset.opened([value.numpy() for value in values]))

        return self._graph.draw(
            start,
            dataset.inputs,
            kind="MakeIterator",
            name=name or "make_initializer",
            runs_only=True,
        )

    def get_next(self, name: str | None = None) -> Any:
        """Return tensors whose values are the next element in each run, in its structure.

        Args:
            name: The name of the operation.
        """

        def draw() -> Any:
            run: Any = current_run()
            if active_recorder() is not None:
                raise OperatorNotAllowedInGraphError(
                    "A recorded function, for example of `map_fn`, cannot request elements of a "
                    "dataset. Call `get_next()` outside of it."
                )
            return [from_host(array) for array in self.take(run.kept)]

        operation = self._graph.draw(
            draw,
            kind="IteratorGetNext",
            name=name or "IteratorGetNext",
            results=[Tensor(spec.shape, spec.dtype, "") for spec in _nest.flatten(self.specs)],
            asks_run=True,
        )
        operation.iterator = self
        return _nest.pack_like(self.specs, operation.outputs)

    def string_handle(self, name: str | None = None) -> NoReturn:
        """Raise NotImplementedError: there are no tensors of texts."""
        raise NotImplementedError(_NO_HANDLES)

    @staticmethod
    def from_string_handle(*args: Any, **kwargs: Any) -> NoReturn:
        """Raise NotImplementedError: there are no tensors of texts."""
        raise NotImplementedError(_NO_HANDLES)

    def take(self, kept: Kept) -> list[Any]:
        """Return the arrays of the next element in a session.

        Args:
            kept: What the session keeps.

        Raises:
            FailedPreconditionError: The iterator was not initialized.
            OutOfRangeError: There are no more elements.
        """
        with self._lock:
            if self not in kept.elements:
                if self._source is None:
                    raise FailedPreconditionError(
                        "GetNext() failed because the iterator has not been initialized. Ensure "
                        "that you have run the initializer operation for this iterator before "
                        "getting the next element."
                    )
                # It depends on no placeholder and no variable.
                inputs = self._source.inputs
                values = Plan(inputs, (), kept, list)(()) if inputs else []
                self._start(kept, self._source.opened(values))
            try:
                element = next(kept.elements[self])
            except StopIteration:
                raise OutOfRangeError("End of sequence") from None
        return [np.asarray(leaf) for leaf in _nest.flatten(element)]

    def _start(self, kept: Kept, elements: Any) -> None:
        before = kept.elements.pop(self, None)
        if before is not None:
            before.close()
        kept.elements[self] = elements


_NO_HANDLES = (
    "Handles of iterators are texts, which tensors here are not. Use "
    "`tf.data.Iterator.from_structure`, with an initializer for each dataset."
)
# What draws, or changes, from run to run, with the kinds that begin with "Random".
_STATEFUL = frozenset(
    (
        *("Dropout", "IteratorGetNext", "Multinomial", "PyFunc", "TruncatedNormal"),
        "VariableV2",
    )
)


def check_one_shot(source: "Dataset") -> None:
    """Raise ValueError where a dataset depends on what an iterator without initializer cannot."""
    nodes, _ = nodes_between([], source.inputs)
    for operation in map(operation_of, nodes):
        kind = operation.type
        where = f"(name:{operation.name}, type:{kind}) by value."
        if kind == "Placeholder":
            raise ValueError(
                f"Cannot capture a placeholder {where} Use `make_initializable_iterator()`, and "
                "feed the run of its initializer."
            )
        if kind in _STATEFUL or kind.startswith("Random") or operation.reads:
            raise ValueError(
                f"Cannot capture a stateful node {where} Use `make_initializable_iterator()` "
                "instead."
            )
