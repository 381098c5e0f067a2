"""Datasets of a graph: recipes that the datasets of `mirrored.data` are made by, in sessions.

A recipe is a method of `mirrored.data.Dataset` and its arguments, with tensors of the graph among
them, whose values are known when an initializer runs.
"""

import functools
import inspect
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NoReturn

import numpy as np

from mirrored import _nest
from mirrored.compat.v1.control_flow import Branch, loop_variable
from mirrored.compat.v1.graph import get_default_graph
from mirrored.compat.v1.graph_elements import Operation, Tensor
from mirrored.compat.v1.iterators import Iterator as SessionIterator
from mirrored.compat.v1.iterators import Structure, absent, check_one_shot
from mirrored.compat.v1.partial_shapes import TensorShape, sizes_of
from mirrored.compat.v1.running import Run, running
from mirrored.compat.v1.sources import converted
from mirrored.data import Dataset as Engine
from mirrored.data.dataset_iterators import elements_of
from mirrored.data.elements import check_callable
from mirrored.data.leaf_specs import LeafSpec, NestedSpec, common_specs, public_specs
from mirrored.data.source_transforms import Listed, check_rows
from mirrored.data.transform import Slices
from mirrored.graph import placeholders
from mirrored.ops import Tensor as Value
from mirrored.ops import bool_
from mirrored.ops.conversion import convert_to_tensor, to_array
from mirrored.ops.rng_state import WORD, RngState, current_rng_state, derived_seed, drawing_from

_SIZES = (2, 3)  # Sizes that are not known are these in two samples; what differs is not known.


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
        return _nest.map_structure(_spec_of_result, self.structure)

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
        self._counts: dict[Hashable, int] = {}

    def stream(self, operation: Operation) -> RngState:
        """Return what the dataset's function draws from."""
        return current_rng_state()

    def count(self, key: Hashable) -> int:
        """Return how often this was called for a key before."""
        self._counts[key] = self._counts.get(key, -1) + 1
        return self._counts[key]

    @property
    def initialized(self) -> NoReturn:
        """Raise RuntimeError: a dataset knows the values that variables have, and no others."""
        raise RuntimeError(
            "A function of a dataset cannot ask whether a variable has a value. Ask in the session."
        )

    def storage(self, variable: Any) -> NoReturn:
        """Raise RuntimeError: a dataset does not change variables."""
        raise RuntimeError(
            f"A function of a dataset cannot write to {variable!r}. Write to it in the session."
        )


def _spec_of_result(leaf: Any) -> LeafSpec | NestedSpec:
    if not isinstance(leaf, Tensor):
        return NestedSpec(leaf.specs)
    return LeafSpec(None if leaf._shape is None else tuple(leaf._shape), leaf._dtype)


class _Members(type):
    """The class of `Dataset`, which says what to use instead of names that it does not have."""

    def __getattr__(cls, name: str) -> Any:
        raise absent("Dataset", name)


class Dataset(Structure, metaclass=_Members):
    """Elements that an iterator draws in sessions.

    Datasets come from the static methods of `mirrored.data.Dataset`, and its methods return others;
    arguments may be tensors of the graph, such as placeholders.

    Args:
        function: Makes a dataset of `mirrored.data`.
        args: Its arguments by position, with datasets, functions and tensors of the graph in them.
        kwargs: Those by name.
        declared: The structure of an element, where a function makes them.
        sample: A dataset with such elements, where one is known without the values of tensors.

    Example:
        >>> import mirrored.compat.v1 as tf
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     rows = tf.placeholder(tf.float32, [None])
        ...     dataset = tf.data.Dataset.from_tensor_slices(rows).map(lambda x: x * 2.0)
        ...     iterator = dataset.batch(2).make_initializable_iterator()
        ...     batch = iterator.get_next()
        ...     session.run(iterator.initializer, {rows: [1.0, 2.0, 3.0]})
        ...     [session.run(batch).tolist() for _ in range(2)]
        [[2.0, 4.0], [6.0]]
    """

    def __init__(
        self,
        function: Callable[..., Engine[Any]],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        declared: Any = None,
        sample: Engine[Any] | None = None,
    ) -> None:
        self.graph = get_default_graph()
        self.graph.check_open()
        self._function, self._arguments, self._declared = function, (args, kwargs or {}), declared
        leaves = _nest.flatten(self._arguments)
        self._parts = [leaf for leaf in leaves if isinstance(leaf, Dataset | DatasetFunction)]
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        tensors += [tensor for part in self._parts for tensor in part.inputs]
        self.inputs: tuple[Tensor, ...] = tuple(dict.fromkeys(tensors))
        self.graph.check_own(self.inputs)
        self.graph.dataset_count += 1
        self._seed, self._number = self.graph.seed, self.graph.dataset_count
        with drawing_from(RngState(0)):  # Samples take no seeds from the global state.
            self._samples = (
                [self._sample(i) for i in range(2 if self.inputs else 1)]
                if sample is None
                else [sample]
            )
        specs = [sample._transform.specs() for sample in self._samples]
        self.specs: Any = functools.reduce(common_specs, specs)

    def _sample(self, number: int) -> Engine[Any]:
        """Return the dataset for arrays that stand for the inputs."""
        known: dict[Any, Any] = {tensor: _stand_in(tensor, number) for tensor in self.inputs}
        for part in self._parts:
            if isinstance(part, Dataset):
                known[part] = part._samples[min(number, len(part._samples) - 1)]
        return self._build(known)

    def built(self, known: dict[Any, Any]) -> Engine[Any]:
        """Return the dataset of `mirrored.data`.

        Args:
            known: The values of tensors, and the datasets built so far, to which it is added.
        """
        if self not in known:
            sample = self._samples[0]
            is_constant = not self.inputs and isinstance(sample._transform, Slices)
            known[self] = sample if is_constant else self._build(known)
        dataset: Engine[Any] = known[self]
        return dataset

    def _build(self, known: dict[Any, Any]) -> Engine[Any]:
        args, kwargs = _nest.map_structure(functools.partial(_argument, known), self._arguments)
        with self._draws():
            dataset = self._function(*args, **kwargs)
        if self._declared is not None:
            dataset._transform.declare(self._declared)
        return dataset

    def _draws(self) -> AbstractContextManager[Any]:
        """Return a context in which seeds follow from the graph's, as often as it is entered."""
        if self._seed is None:
            return nullcontext()
        return drawing_from(RngState(derived_seed(self._seed % WORD, self._number)))

    def opened(self, values: Sequence[Any]) -> Any:
        """Return an iterator over the elements as arrays, for values of the inputs."""
        return elements_of(self.built(dict(zip(self.inputs, values, strict=True)))._transform)

    def make_one_shot_iterator(self) -> SessionIterator:
        """Return an iterator that starts with the session.

        Raises:
            ValueError: The dataset depends on a placeholder or a variable.
        """
        check_one_shot(self)
        return SessionIterator(self.graph, self.specs, self)

    def make_initializable_iterator(self, shared_name: str | None = None) -> SessionIterator:
        """Return an iterator that starts when its `initializer` runs.

        Args:
            shared_name: Accepted for compatibility.
        """
        return SessionIterator(self.graph, self.specs).initialize_from(self)

    def apply(self, transformation_func: Callable[["Dataset"], Any]) -> Any:
        """Return what a function of the dataset returns."""
        return transformation_func(self)

    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError(
            "`tf.data.Dataset` only supports Python-style iteration in eager mode. Use "
            "`make_one_shot_iterator().get_next()`, and run that in a session."
        )

    def __len__(self) -> int:
        raise TypeError(
            "`tf.data.Dataset` only supports `len` in eager mode. Use `len` of a dataset of "
            "`mirrored.data`."
        )

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<tf.data.Dataset element_spec={self.element_spec}>"


def _stand_in(tensor: Tensor, number: int) -> Any:
    size = _SIZES[number]
    shape = (size,) * (number + 1) if tensor._shape is None else tensor._shape
    return np.full([size if axis is None else axis for axis in shape], size, tensor._dtype)


def _argument(known: dict[Any, Any], leaf: Any) -> Any:
    """Return the argument of `mirrored.data` for an argument of the recipe."""
    if isinstance(leaf, Dataset | DatasetFunction):
        return leaf.built(known)
    if isinstance(leaf, TensorShape):
        return sizes_of(leaf)
    value = known[leaf] if isinstance(leaf, Tensor) else leaf
    value = value.numpy() if isinstance(value, Value) else value
    return value[()] if isinstance(value, np.ndarray) and not value.ndim else value


def _nested(specs: Any) -> Dataset:
    """Return a dataset that stands for a part of an element."""
    return Dataset(lambda: Engine(Listed((), specs)))


def _element(value: Any) -> Any:
    """Return arrays and tensors in tuples and dicts; a list is one array, as in TensorFlow."""
    if isinstance(value, dict):
        return _nest.rebuild_dict(value, {key: _element(item) for key, item in value.items()})
    if isinstance(value, tuple):
        return _nest.rebuild(value, [_element(item) for item in value])
    if not isinstance(value, list):
        return value
    return converted(value) if placeholders(value) else to_array(value)


def _recipe(function: Callable[..., Any]) -> Callable[..., Dataset]:
    return lambda *args, **kwargs: Dataset(function, args, kwargs)


def _of_arrays(function: Callable[..., Any]) -> Callable[..., Dataset]:
    def dataset(tensors: Any, name: str | None = None) -> Dataset:
        element = _element(tensors)
        if not placeholders(element):
            return Dataset(function, (element,))
        specs = _nest.map_structure(_spec_of, element)
        if function.__name__ == "from_tensor_slices":
            check_rows([spec.shape for spec in _nest.flatten(specs)])
            specs = _nest.map_structure(lambda spec: spec.row(), specs)
        return Dataset(function, (element,), sample=Engine(Listed((), specs)))

    return dataset


def _spec_of(leaf: Any) -> LeafSpec:
    leaf = leaf if isinstance(leaf, Tensor) else to_array(leaf)
    return LeafSpec(TensorShape(leaf.shape).sizes, leaf.dtype)


def _calling(method: Callable[..., Any]) -> Callable[..., Dataset]:
    """Return a method for one that calls a function, which is drawn into the graph."""
    signature, name = inspect.signature(method), method.__name__
    parameter = list(signature.parameters)[1]

    def call(dataset: Dataset, *args: Any, **kwargs: Any) -> Dataset:
        bound = signature.bind(dataset, *args, **kwargs)
        function = bound.arguments[parameter]
        check_callable(parameter, function)
        drawn = DatasetFunction(function, dataset.specs, _nested, f"dataset_{name}")
        bound.arguments[parameter] = drawn
        declared = _declared(name, parameter, drawn)
        return Dataset(method, bound.args, bound.kwargs, declared)

    return call


def _declared(name: str, parameter: str, drawn: DatasetFunction) -> Any:
    """Return the structure of elements that a function makes; None: that of the dataset before.

    Raises:
        TypeError: The function of `flat_map` or `interleave` returns no dataset.
        ValueError: A predicate returns no boolean.
    """
    if name == "map":
        return drawn.specs
    if name in ("flat_map", "interleave"):
        if isinstance(drawn.structure, Dataset):
            return drawn.structure.specs
        raise TypeError(
            f"The `{parameter}` argument must return a `Dataset` object. Got {drawn.structure!r}. "
            "Convert it, for example with `Dataset.from_tensors`."
        )
    if drawn.specs not in (LeafSpec((), bool_), LeafSpec(None, bool_)):
        raise ValueError(
            f"Invalid `{parameter}`. `{parameter}` must return a `tf.bool` scalar tensor, but its "
            f"return type is {public_specs(drawn.specs)}. Compare, or use `tf.cast`."
        )
    return None


# The names of methods of `mirrored.data.Dataset`, by the function that makes a method of each.
_NAMES: dict[Callable[..., Any], str] = {
    _of_arrays: "from_tensor_slices from_tensors",
    _recipe: "choose_from_datasets counter from_generator random range sample_from_datasets zip "
    "batch cache concatenate enumerate ignore_errors padded_batch prefetch rebatch repeat shard "
    "shuffle skip take unbatch unique window with_options",
    _calling: "filter flat_map interleave map take_while",
}


def _add(make: Callable[..., Any], name: str) -> None:
    function = getattr(Engine, name)
    method = functools.wraps(function)(make(function))
    method.__doc__ = f"Return a dataset of the graph: `mirrored.data.Dataset.{name}` says the rest."
    is_source = inspect.ismethod(function)  # It is called on the class.
    setattr(Dataset, name, staticmethod(method) if is_source else method)


for _make, _listed in _NAMES.items():
    for _name in _listed.split():
        _add(_make, _name)
