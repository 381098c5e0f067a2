"""Where datasets come from: TensorFlow 2.21 gives what is expected for the same arguments."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from case_table import cases

import mirrored as mr

Dataset = mr.data.Dataset
Listed = Callable[[mr.data.Dataset], list[Any]]


class Point(NamedTuple):
    x: Any
    y: Any


def numbers(count: int = 3) -> Iterator[int]:
    yield from range(count)


SLICES: dict[str, tuple[Any, list[Any]]] = {
    "a list is an array": ([[1, 2], [3, 4]], [[1, 2], [3, 4]]),
    "a tuple": (([1, 2], [3.0, 4.0]), [(1, 3.0), (2, 4.0)]),
    "a dict": ({"b": [1, 2], "a": ([3, 4],)}, [{"b": 1, "a": (3,)}, {"b": 2, "a": (4,)}]),
    "a named tuple": (Point([1], [2]), [Point(1, 2)]),
    "arrays": ((np.eye(2), np.array([True, False])), [([1.0, 0.0], True), ([0.0, 1.0], False)]),
    "none": (np.zeros((0, 3)), []),
}


@cases(("given", "expected"), SLICES.values(), ids=SLICES)
def test_slices(given: Any, expected: list[Any], listed: Listed) -> None:
    dataset = Dataset.from_tensor_slices(given)
    assert listed(dataset) == expected
    assert len(dataset) == len(expected)


def test_elements_are_dicts_of_the_given_type() -> None:
    batches = Dataset.from_tensor_slices(OrderedDict(b=[1, 2], a=[3, 4])).batch(2)
    parts = mr.distribute.MirroredStrategy(["CPU:0"]).experimental_distribute_dataset(batches)
    for element in (next(iter(batches)), next(iter(parts))):
        assert (type(element), list(element)) == (OrderedDict, ["b", "a"])


def test_a_dataset_of_tensors_and_variables(listed: Listed) -> None:
    given = (mr.constant([1.0, 2.0]), mr.Variable([3, 4]))
    assert listed(Dataset.from_tensor_slices(given)) == [(1.0, 3), (2.0, 4)]
    assert listed(Dataset.from_tensors(given)) == [([1.0, 2.0], [3, 4])]


def test_arrays_are_copied_once(listed: Listed) -> None:
    x = np.array([1.0, 2.0])
    datasets = [Dataset.from_tensor_slices(x), Dataset.from_tensor_slices(x.astype(np.float32))]
    datasets.append(Dataset.from_tensors(x).unbatch())
    x[:] = 0
    assert [listed(dataset) for dataset in datasets] == [[1.0, 2.0]] * 3


# What is given and the dtype that elements have.
DTYPES: dict[str, tuple[Any, str]] = {
    "Python floats": ([1.0], "float32"),
    "Python integers": ([1], "int32"),
    "large Python integers": ([2**40], "int64"),
    "Python bools": ([True], "bool"),
    **{
        name: (np.ones(1, name), name)
        for name in ("float32", "float64", "int32", "int64", "uint8", "bool")
    },
    "a list of NumPy's integers": ([np.uint8(200)], "int32"),
}


@cases(("given", "dtype"), DTYPES.values(), ids=DTYPES)
def test_dtypes(given: Any, dtype: str) -> None:
    (element,) = Dataset.from_tensor_slices(given)
    assert element.dtype.name == dtype
    assert element.numpy() == given[0]


GENERATED: dict[str, tuple[Callable[[], Any], dict[str, Any], list[Any]]] = {
    "numbers": (numbers, {}, [0, 1, 2]),
    "any iterable": (lambda: [3, 4], {}, [3, 4]),
    "tuples and dicts": (lambda: [(1, {"a": [2, 3]})], {}, [(1, {"a": [2, 3]})]),
    "arguments": (numbers, {"args": (2,)}, [0, 1]),
    "types": (numbers, {"output_types": mr.float32}, [0.0, 1.0, 2.0]),
    "types and shapes": (
        lambda: [([1], 2)],
        {"output_types": (mr.int32, mr.float32), "output_shapes": ((None,), ())},
        [([1], 2.0)],
    ),
    "types by name": (lambda: [{"a": 1}], {"output_types": {"a": mr.int64}}, [{"a": 1}]),
    "signature": (numbers, {"output_signature": mr.TensorSpec((), mr.float64)}, [0.0, 1.0, 2.0]),
    "a tuple where an array is expected": (
        lambda: [(1, 2)],
        {"output_signature": mr.TensorSpec((2,), mr.int32)},
        [[1, 2]],
    ),
    "a list where a tuple is expected": (
        lambda: [[1, 2]],
        {"output_signature": (mr.TensorSpec((), mr.int32),) * 2},
        [(1, 2)],
    ),
    "nothing": (lambda: [], {}, []),
}


@cases(("generator", "options", "expected"), GENERATED.values(), ids=GENERATED)
def test_generators(
    generator: Callable[[], Any], options: dict[str, Any], expected: list[Any], listed: Listed
) -> None:
    dataset = Dataset.from_generator(generator, **options)
    assert listed(dataset) == expected
    assert listed(dataset) == expected  # It is called anew.
    assert int(dataset.cardinality()) == mr.data.UNKNOWN_CARDINALITY


def test_what_a_generator_yields_is_copied(listed: Listed) -> None:
    """Generators may yield the same memory again and again."""

    def reusing() -> Iterator[np.ndarray]:
        memory = np.zeros(2, np.int32)
        for i in range(3):
            memory[:] = i
            yield memory

    assert listed(Dataset.from_generator(reusing).batch(3)) == [[[0, 0], [1, 1], [2, 2]]]


def test_a_generator_that_is_left_is_closed() -> None:
    closed = []

    def generator() -> Iterator[int]:
        try:
            yield from range(9)
        finally:
            closed.append(True)

    for each in Dataset.from_generator(generator):
        if int(each) == 1:
            break
    assert closed == [True]


@cases(
    ("args", "expected"), [((3,), [0, 1, 2]), ((1, 3), [1, 2]), ((5, 0, -2), [5, 3, 1]), ((0,), [])]
)
def test_range(args: tuple[int, ...], expected: list[int], listed: Listed) -> None:
    dataset = Dataset.range(*args)
    assert listed(dataset) == expected
    assert len(dataset) == len(expected)
    assert all(each.dtype == mr.int64 for each in dataset)


def test_a_long_range_takes_no_memory() -> None:
    assert len(Dataset.range(10**15)) == 10**15


ZIPS: dict[str, tuple[Callable[[], mr.data.Dataset], list[Any]]] = {
    "two": (lambda: Dataset.zip(Dataset.range(2), Dataset.range(3)), [(0, 0), (1, 1)]),
    "a tuple": (lambda: Dataset.zip((Dataset.range(1), Dataset.range(3))), [(0, 0)]),
    "by name": (lambda: Dataset.zip(datasets=(Dataset.range(1),)), [(0,)]),
    "a dict": (lambda: Dataset.zip({"a": Dataset.range(1)}), [{"a": 0}]),
    "one": (lambda: Dataset.zip(Dataset.range(2)), [0, 1]),
    "rows of arrays": (
        lambda: Dataset.zip(
            Dataset.from_tensor_slices([1, 2, 3]), {"a": Dataset.from_tensor_slices(([4, 5],))}
        ),
        [(1, {"a": (4,)}), (2, {"a": (5,)})],
    ),
}


@cases(("make", "expected"), ZIPS.values(), ids=ZIPS)
def test_zip(make: Callable[[], mr.data.Dataset], expected: list[Any], listed: Listed) -> None:
    assert listed(make()) == expected
    assert len(make()) == len(expected)


def boom(*args: Any) -> Any:
    raise KeyError("boom")


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "unequal sizes": (
        lambda: Dataset.from_tensor_slices(([1, 2], [1, 2, 3])),
        ValueError,
        r"Dimensions 2 and 3 are not compatible. Received: `tensors` with the shapes",
    ),
    "a scalar": (
        lambda: Dataset.from_tensor_slices(3),
        ValueError,
        "Unbatching a tensor is only supported for rank >= 1",
    ),
    "no arrays": (
        lambda: Dataset.from_tensor_slices(()),
        ValueError,
        r"`tensors` should not be empty. Received: \(\)",
    ),
    "strings": (
        lambda: Dataset.from_tensor_slices({"a": [1, "x"]}),
        TypeError,
        r"`tensors`\['a'\] is not an array of numbers",
    ),
    "complex numbers": (
        lambda: Dataset.from_tensors(1j),
        TypeError,
        "`tensors` is not an array of numbers",
    ),
    **{
        dtype: (
            lambda dtype=dtype: Dataset.from_tensor_slices({"x": np.ones(1, dtype)}),
            TypeError,
            rf"`tensors`\['x'\] is not an array of numbers. Cannot make a tensor of dtype {dtype}",
        )
        for dtype in ("complex64", "float128")
    },
    "a list of rows of different lengths": (
        lambda: Dataset.from_tensor_slices([[1], [1, 2]]),
        ValueError,
        "Can't convert non-rectangular Python sequence to Tensor",
    ),
    "an element of rows of different lengths": (
        lambda: Dataset.from_tensors(([[1], [1, 2]], 3)),
        ValueError,
        r"`tensors`\[0\] is not an array of numbers. Can't convert non-rectangular Python sequence",
    ),
    "None": (lambda: Dataset.from_tensors((1, None)), TypeError, r"`tensors`\[1\] is not an array"),
    "a generator that was called": (
        lambda: Dataset.from_generator(numbers()),  # type: ignore[arg-type]
        TypeError,
        "`generator` must be a Python callable. Received: <generator",
    ),
    "types and a signature": (
        lambda: Dataset.from_generator(numbers, mr.int32, output_signature=mr.TensorSpec((), "f4")),
        TypeError,
        "The `output_types` argument can not be used together with the `output_signature`",
    ),
    "shapes alone": (
        lambda: Dataset.from_generator(numbers, output_shapes=()),
        TypeError,
        "`output_shapes` needs `output_types`",
    ),
    "a signature of something else": (
        lambda: Dataset.from_generator(numbers, output_signature=mr.int32),
        TypeError,
        "`output_signature` must contain objects that are subclass",
    ),
    "args": (
        lambda: Dataset.from_generator(numbers, args=3),
        TypeError,
        "`args` must be a tuple. Received: args=3",
    ),
    "no range": (Dataset.range, ValueError, "should be between 1 and 3 but was 0"),
    "a range of floats": (lambda: Dataset.range(1.5), TypeError, "`args` must be an integer"),
    "no step": (
        lambda: Dataset.range(1, 3, 0),
        mr.errors.InvalidArgumentError,
        "step must be a non-zero integer",
    ),
    "a zip of nothing": (Dataset.zip, TypeError, "Must pass at least one dataset to `zip`"),
    "a zip of a list": (
        lambda: Dataset.zip([Dataset.range(2)]),
        TypeError,
        "please use a tuple instead. Received: a list of 1",
    ),
    "a zip of numbers": (lambda: Dataset.zip(3), TypeError, "encountered object of type <class"),
}


@cases(("act", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(act: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        act()
    assert type(caught.value) is error


# What a generator does, and the error that reaches whoever iterates.
BROKEN: dict[str, tuple[Callable[[], Any], Any, type[Exception], str, int]] = {
    "it raises at once": (boom, None, KeyError, "boom", 0),
    "it raises later": (
        lambda: (boom() if i == 2 else i for i in range(3)),
        None,
        KeyError,
        "boom",
        2,
    ),
    "it returns no iterable": (lambda: 5, None, TypeError, "'int' object is not iterable", 0),
    "strings and numbers": (
        lambda: [[1], [1, "a"]],
        None,
        TypeError,
        "is not an array of numbers",
        1,
    ),
    "another structure": (
        lambda: [(1, 2), (1, 2, 3)],
        None,
        mr.errors.InvalidArgumentError,
        "has a structure different from the elements before it",
        1,
    ),
    "another dtype": (
        lambda: [1, 2.0],
        None,
        mr.errors.InvalidArgumentError,
        "in component 0: float32 instead of int32",
        1,
    ),
    "another shape than the signature": (
        lambda: [[1, 2], [1, 2, 3]],
        mr.TensorSpec((2,), mr.int32),
        TypeError,
        r"yielded an element of shape \(3,\) where an element of shape \(2,\) was expected",
        1,
    ),
    "another rank than the signature": (
        lambda: [[1, 2]],
        mr.TensorSpec((), mr.int32),
        TypeError,
        "yielded an element of shape",
        0,
    ),
    "another structure than the signature": (
        lambda: [1],
        (mr.TensorSpec((), mr.int32),),
        TypeError,
        "yielded an element that did not match the expected structure",
        0,
    ),
    "no numbers for the signature": (
        lambda: ["a"],
        mr.TensorSpec((), mr.int32),
        TypeError,
        "could not be converted to the expected type. The expected type was int32",
        0,
    ),
}


@cases("ahead", [0, 1, 3])
@cases(("generator", "signature", "error", "message", "index"), BROKEN.values(), ids=BROKEN)
def test_broken_generators(
    generator: Callable[[], Any],
    signature: Any,
    error: type[Exception],
    message: str,
    index: int,
    ahead: int,
) -> None:
    dataset = Dataset.from_generator(generator, output_signature=signature).prefetch(ahead)
    seen: list[Any] = []
    with pytest.raises(error, match=message) as caught:
        seen.extend(dataset)
    assert type(caught.value) is error
    assert len(seen) == index
    note = f"In Dataset.from_generator, at element {index} (counted from 0)."
    assert caught.value.__notes__ == [note]
