"""The elements of a dataset: structures of read-only NumPy arrays, and failures in their place.

Arrays become tensors where users see them, and the results of users' functions become arrays here.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic

import numpy as np
from numpy.typing import NDArray

from mirrored import _nest
from mirrored._contexts import Within
from mirrored._numbers import as_integer
from mirrored.data.leaf_specs import LeafSpec, NestedSpec
from mirrored.devices import device, logical_devices
from mirrored.errors import InvalidArgumentError
from mirrored.ops import Tensor, transfer
from mirrored.ops.conversion import adopt, is_tensor, to_array
from mirrored.ops.hooks import graph_scope, only, recorded_by
from mirrored.ops.strings import StringTensor, strings_in

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    # What elements are, where type checkers know it. (In Python itself defaults came with 3.13.)
    ElementT = TypeVar("ElementT", default=Any, covariant=True)
else:
    from typing import TypeVar

    ElementT = TypeVar("ElementT", covariant=True)

Element = Any  # An array, a dataset, or a tuple or dict of elements.
Elements = Generator[Element, None, None]  # `close` ends what works for it, threads included.
_OWN = (bool, int, float, list)  # What NumPy makes arrays of that share no memory with them.


class DatasetBase(Generic[ElementT]):
    """Base of datasets for modules below `dataset`; a dataset may be part of an element."""

    _transform: Any


class GlobalBatches:
    """A dataset that a strategy cuts for replicas, to modules that know no strategies."""

    def global_dataset(self) -> DatasetBase:
        """Return the dataset of the batches before they are cut."""
        raise NotImplementedError


# ---------------------------------------------------------------------------- from users


def to_leaf(value: Any, dtype: np.dtype[Any] | None = None) -> NDArray[Any]:
    """Return a value as a read-only array that nobody else holds."""
    if isinstance(value, DatasetBase):
        raise TypeError(f"It is a dataset: {value!r}.")
    if isinstance(value, StringTensor):
        return value._array
    is_own = isinstance(value, (*_OWN, Tensor))
    if is_tensor(value):
        value = adopt(value, None)
    array = to_array(value.numpy() if callable(getattr(value, "numpy", None)) else value)
    if not is_own:
        array = np.array(array, order="C")
    if dtype is not None and array.dtype != dtype:
        array = array.astype(dtype)
    array.flags.writeable = False
    return array


def to_element(value: Any, what: str) -> Element:
    """Return tuples and dicts of values as an element; a list is one array, as in TensorFlow.

    Datasets stay as they are.

    Args:
        value: What a user gave.
        what: What errors call it.

    Raises:
        TypeError: A part holds neither numbers that tensors can have nor strings, or is None.
        ValueError: It has no parts, or rows that differ in length.
    """
    if isinstance(value, dict):
        filled = _filled(value, what)
        mapped = {key: to_element(item, f"{what}[{key!r}]") for key, item in filled}
        return _nest.rebuild_dict(value, mapped)
    if isinstance(value, tuple):
        parts = [to_element(item, f"{what}[{i}]") for i, item in _filled(value, what)]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, DatasetBase):
        return value
    try:
        return to_leaf(value)
    except (TypeError, ValueError) as error:
        strings = strings_in(value) if isinstance(error, TypeError) else None
        if strings is not None:
            return strings
        kinds = (InvalidArgumentError, TypeError, ValueError)
        kind = next(kind for kind in kinds if isinstance(error, kind))
        raise kind(f"{what} is not an array of numbers. {error}") from error


def _filled(value: dict[Any, Any] | tuple[Any, ...], what: str) -> Iterable[tuple[Any, Any]]:
    if not value:
        raise ValueError(
            f"{what} should not be empty. Received: {value!r}. Pass at least one array."
        )
    return value.items() if isinstance(value, dict) else enumerate(value)


# ---------------------------------------------------------------------------- to users


def to_tensors(element: Element) -> Any:
    """Return an element with a tensor on CPU:0 for each array."""
    cpu = logical_devices()[0]

    def tensor(leaf: Any) -> Any:
        if isinstance(leaf, DatasetBase):
            return leaf
        return StringTensor(leaf) if leaf.dtype.kind == "O" else transfer(leaf, cpu)

    if type(element) is np.ndarray:  # The usual cases, and much the faster.
        return tensor(element)
    if _is_flat(element):
        return tuple([tensor(leaf) for leaf in element])
    return _nest.map_structure(tensor, element)


def to_numpy(element: Element) -> Any:
    """Return an element as users may write to it: copies, and NumPy's scalars for rank 0."""
    if type(element) is np.ndarray:  # The usual case, and much the faster.
        return element.copy()[()]
    return _nest.map_structure(_numpy_leaf, element)


def _numpy_leaf(leaf: Any) -> Any:
    if isinstance(leaf, DatasetBase):
        check_arrays(spec_of(leaf))
    return leaf.copy()[()]


def check_arrays(specs: Any) -> None:
    """Raise TypeError where elements have datasets as parts, which NumPy has not."""
    if any(isinstance(leaf, NestedSpec) for leaf in _nest.flatten(specs)):
        raise TypeError(
            "`Dataset.as_numpy_iterator()` is not supported for datasets that produce values of "
            "type Dataset. Use `flat_map`, or iterate over the dataset, and over each element."
        )


_ON_HOST = device("CPU:0")


def host_scope() -> Within:
    """Within this context compute on CPU:0, unseen by tapes and recorders.

    What users' functions compute is data, which no gradient and no recorded step has a part in.
    """
    return recorded_by(None, _ON_HOST, only())


def call_with(function: Any, element: Element) -> Any:
    """Call a user's function with an element's tensors.

    The parts of a tuple are its arguments, but a named tuple is one.
    """
    tensors = to_tensors(element)
    with host_scope(), graph_scope():
        return function(*tensors) if type(tensors) is tuple else function(tensors)


def check_callable(name: str, value: Any) -> None:
    """Raise ValueError when the method is called: the pipeline runs much later and elsewhere."""
    if not callable(value):
        raise ValueError(
            f"Argument `{name}` must be a callable. Received {name}={value!r:.200} "
            f"(of type {type(value)})."
        )


# ---------------------------------------------------------------------------- structures


class Form:
    """The structure of elements, and the dtypes of their arrays; None for datasets.

    Args:
        element: An element that has it.
    """

    def __init__(self, element: Element) -> None:
        self._structure = element
        leaves = _nest.flatten(element)
        self._is_leaf = isinstance(element, np.ndarray)
        self._is_flat = _is_flat(element)
        self._dtypes = [_dtype_of(leaf) for leaf in leaves]

    def pack(self, leaves: Sequence[Any]) -> Any:
        """Return a structure of this form that holds `leaves` in order."""
        if self._is_leaf:
            return leaves[0]
        return tuple(leaves) if self._is_flat else _nest.pack_like(self._structure, leaves)

    def pack_all(self, elements: list[tuple[Any, ...]]) -> list[Any]:
        """Return structures of this form that hold the leaves of each element."""
        return elements if self._is_flat else list(map(self.pack, elements))

    def leaves(self, element: Element, where: str) -> list[NDArray[Any]]:
        """Return the arrays of an element; raises where it has another form, and says `where`."""
        if self._is_leaf and isinstance(element, np.ndarray):
            leaves = [element]
        elif self._is_flat and _is_flat(element) and len(element) == len(self._dtypes):
            leaves = list(element)
        else:
            try:
                # In the order of the first one's leaves, whatever the order of a dict's keys.
                leaves = _nest.flatten(
                    _nest.map_structure(lambda _, leaf: leaf, self._structure, element)
                )
            except ValueError as error:
                raise InvalidArgumentError(
                    f"{where} has a structure different from the elements before it. {error}"
                ) from None
        for number, (leaf, dtype) in enumerate(zip(leaves, self._dtypes, strict=True)):
            if type(leaf) is np.ndarray and leaf.dtype == dtype:
                continue
            kinds = (_dtype_of(leaf), dtype)
            if kinds[0] != kinds[1]:
                names = ["a dataset" if kind is None else kind.name for kind in kinds]
                raise InvalidArgumentError(
                    f"{where} has a dtype different from the elements before it in component "
                    f"{number}: {names[0]} instead of {names[1]}. Use one dtype for all elements."
                )
        return leaves


class FormCheck:
    """Checks that elements have the structure and the dtypes of the first one.

    It is called with an element and with what errors call that.
    """

    _form: Form | None = None

    def __call__(self, element: Element, where: str) -> Element:
        """Return the element."""
        self._form = self._form or Form(element)
        self._form.leaves(element, where)
        return element


def _dtype_of(leaf: Any) -> np.dtype[Any] | None:
    return None if isinstance(leaf, DatasetBase) else leaf.dtype


def _is_flat(element: Element) -> bool:
    """Whether an element is a tuple of arrays."""
    return type(element) is tuple and {*map(type, element)} <= {np.ndarray}


def specs_of(element: Element) -> Any:
    """Return the structure of an element with a `LeafSpec` for each array."""
    return _nest.map_structure(spec_of, element)


def spec_of(leaf: Any) -> LeafSpec | NestedSpec:
    """Return the spec of an element's part."""
    if isinstance(leaf, DatasetBase):
        return NestedSpec(leaf._transform.specs())
    return LeafSpec(leaf.shape, leaf.dtype)


# ---------------------------------------------------------------------------- signatures


def conform(value: Any, signature: Any) -> Element:
    """Return a value of a generator as an element of its signature."""
    if isinstance(signature, dict) and isinstance(value, dict) and value.keys() == signature.keys():
        return {key: conform(value[key], item) for key, item in signature.items()}
    if isinstance(signature, tuple) and isinstance(value, list | tuple):
        if len(value) == len(signature):
            return tuple(conform(*pair) for pair in zip(value, signature, strict=True))
    elif isinstance(signature, LeafSpec):
        return _conforming_leaf(value, signature)
    raise TypeError(
        "`generator` yielded an element that did not match the expected structure. The expected "
        f"structure was {signature}, but the yielded element was {value!r:.200}."
    )


def _conforming_leaf(value: Any, spec: LeafSpec) -> NDArray[Any]:
    try:
        # As TensorFlow converts: a tuple is an array here, and floats become integers.
        array = to_leaf(list(value) if isinstance(value, tuple) else value, spec.dtype)
    except TypeError as error:
        raise TypeError(
            "`generator` yielded an element that could not be converted to the expected type. "
            f"The expected type was {spec.dtype.name}, but the yielded element was {value!r:.200}."
        ) from error
    if not spec.accepts(array.shape):
        raise TypeError(
            f"`generator` yielded an element of shape {array.shape} where an element of shape "
            f"{spec.shape} was expected."
        )
    return array


# ----------------------------------------------------------------------------------------- failures

# A generator function that raises has ended. So an element that cannot be created travels as an
# item, a `Failure`: transforms yield it and go on, and taking it from an iterator raises its error.


class Failure:
    """Replaces an element that could not be created.

    Args:
        error: The error that was raised.
    """

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        self.error = error


def attempt(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a function, or a `Failure` with the error that it raised.

    A generator calls this instead of catching the error: its own frame is then not in the
    traceback, which would keep it and its arrays alive.
    """
    try:
        return function(*arguments)
    except Exception as error:
        return Failure(error)


def succeeded(item: Any) -> Any:
    """Return an element; raise the error of a `Failure`."""
    if type(item) is not Failure:
        return item
    error = item.error
    try:
        if isinstance(error, StopIteration):  # It would look like the end.
            raise RuntimeError("A function of a dataset raised StopIteration.") from error
        raise error
    finally:
        del error, item  # Its traceback leads here: a cycle would keep the arrays.


class Succeeding(Iterator[Any]):
    """Iterates over elements, and raises the error of each `Failure`.

    Args:
        items: The elements, to be closed.
    """

    def __init__(self, items: Any) -> None:
        self._items = items

    def __next__(self) -> Any:
        """Return the next element, or raise its error."""
        return succeeded(next(self._items))

    def close(self) -> None:
        """End all that works for the elements."""
        self._items.close()


# ------------------------------------------------------------------------------- numbers of methods

AUTOTUNE = -1


def as_whole(name: str, value: Any) -> int:
    """Return an argument that is an integer; raises TypeError where it is none."""
    number = as_integer(value)
    if number is None:
        raise TypeError(f"`{name}` must be an integer. Received: {name}={value!r:.200}.")
    return number


def as_count(name: str, value: Any, *, least: int) -> int:
    """Return an argument that is a count; all methods raise the same error for others."""
    number = as_whole(name, value)
    if number < least:
        kind = "greater than zero" if least == 1 else f"{least} or more"
        raise InvalidArgumentError(f"`{name}` must be {kind}. Received: {name}={number}.")
    return number


def check_parallel_calls(value: Any, synchronous: Any = None) -> None:
    """Raise where a number of parallel calls is neither None nor AUTOTUNE nor positive."""
    if synchronous and value is not None:
        raise ValueError(
            "`synchronous` is not supported with `num_parallel_calls`, but `num_parallel_calls` "
            f"was set to {value}. Leave out one of them."
        )
    if value is not None and value != AUTOTUNE:
        as_count("num_parallel_calls", value, least=1)
