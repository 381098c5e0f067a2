"""Dtypes, shapes and the checks that every op shares."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import ops
from mirrored.errors import InvalidArgumentError
from mirrored.ops import spec


@cases(
    ("given", "name"),
    [
        (float, "float32"),
        (int, "int32"),
        (bool, "bool"),
        ("float", "float32"),
        ("float64", "float64"),
        ("bool", "bool"),
        (np.float64, "float64"),
        (np.dtype("int64"), "int64"),
        (ops.float32, "float32"),
    ],
)
def test_as_dtype(given: Any, name: str) -> None:
    assert ops.as_dtype(given) == np.dtype(name)


@cases("given", [None, "foo", "float128", complex, object, str, np.complex64, ">f4", 3, []])
def test_as_dtype_of_what_tensors_cannot_have(given: Any) -> None:
    with pytest.raises(TypeError, match=r"bool, float16, .* uint64, uint8\. Received: "):
        ops.as_dtype(given)


@cases(
    ("given", "shape"),
    [(3, (3,)), ((), ()), ([2, 3], (2, 3)), (np.array([2, 0]), (2, 0)), (np.int64(4), (4,))],
)
def test_as_shape(given: Any, shape: tuple[int, ...]) -> None:
    found = spec.as_shape(given)
    assert found == shape
    assert all(type(size) is int for size in found)


def test_as_shape_of_tensors() -> None:
    assert spec.as_shape(ops.constant([2, 3])) == (2, 3)


@cases("given", [2.0, (2, 2.5), True, (True,), "ab", None, [[2]], object()])
def test_as_shape_of_other_things(given: Any) -> None:
    with pytest.raises(TypeError, match="A shape must be an integer or a sequence of integers"):
        spec.as_shape(given)


def test_as_shape_of_negative_sizes() -> None:
    with pytest.raises(InvalidArgumentError, match=r">= 0. Received: \(2, -1\)"):
        spec.as_shape((2, -1))


@cases(
    ("shapes", "result"),
    [
        (((2, 3), (2, 3)), (2, 3)),
        (((2, 3), ()), (2, 3)),
        (((), (2, 3)), (2, 3)),
        (((), ()), ()),
        (((2, 1), (3,)), (2, 3)),
        (((0,), (1,)), (0,)),
        (((4, 1, 3), (), (2, 1)), (4, 2, 3)),
    ],
)
def test_broadcast_shapes(shapes: tuple[tuple[int, ...], ...], result: tuple[int, ...]) -> None:
    assert spec.broadcast_shapes("AddV2", *shapes) == result


@pytest.mark.behaviour("shapes-that-do-not-fit")
def test_broadcast_shapes_that_do_not_fit() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        spec.broadcast_shapes("AddV2", (2, 3), (2, 4))
    assert str(caught.value) == "Incompatible shapes: [2,3] vs. [2,4] [Op:AddV2]"


@cases("value", ["float64", np.float64, np.dtype("float64")])
def test_floatx(value: Any) -> None:
    assert ops.floatx() == "float32"
    ops.set_floatx(value)
    assert ops.floatx() == "float64"


@cases("value", ["float16", "int32", None, "foo", 3])
def test_floatx_that_is_none(value: Any) -> None:
    with pytest.raises(ValueError, match=r"Unknown `floatx` value: .*\['float32', 'float64'\]"):
        ops.set_floatx(value)
    assert ops.floatx() == "float32"


def test_a_specification_is_of_float32_unless_it_says_otherwise() -> None:
    assert ops.TensorSpec((None, 2)) == ops.TensorSpec(shape=(None, 2), dtype=ops.float32)


@cases(
    ("given", "spec"),
    [
        (([None, 2],), ((None, 2), ops.float32)),
        (([], "int32"), ((), ops.int32)),
        ((np.array([2, 3]),), ((2, 3), ops.float32)),
        ((3, np.uint8), ((3,), ops.uint8)),
        ((None, float), (None, ops.float32)),
    ],
)
def test_specifications_are_equal_however_they_are_written(given: Any, spec: Any) -> None:
    assert ops.TensorSpec(*given) == ops.TensorSpec(*spec)
    assert hash(ops.TensorSpec(*given)) == hash(ops.TensorSpec(*spec))


@cases(
    ("given", "received"),
    [
        ((["a"],), "A size must be an integer.*Received: 'a'"),
        (("ab",), "Received: shape='ab'"),
        (({2, 3},), "Received: shape={2, 3}"),
        (([2], "float12"), "Received: 'float12'"),
    ],
)
def test_specifications_that_are_none(given: Any, received: str) -> None:
    with pytest.raises(TypeError, match=received):
        ops.TensorSpec(*given)


SPEC = spec.TensorSpec([None, 2])


@cases(
    ("shape", "dtype", "fits", "is_within"),
    [
        ([3, 2], "float32", True, True),
        ([3, None], "float32", True, False),
        (None, "float32", True, False),
        ([3, 3], "float32", False, False),
        ([2], "float32", False, False),
        ([3, 2], "int32", False, False),
    ],
)
def test_specs_that_fit(shape: Any, dtype: str, fits: bool, is_within: bool) -> None:
    other = spec.TensorSpec(shape, dtype)
    assert (SPEC.is_compatible_with(other), other.is_compatible_with(SPEC)) == (fits, fits)
    assert other.is_subtype_of(SPEC) is is_within
    assert other.is_subtype_of(spec.TensorSpec(None)) is (dtype == "float32")


def test_specs_of_tensors() -> None:
    tensor = ops.zeros((3, 2))
    assert (
        spec.TensorSpec.from_tensor(tensor)
        == spec.TensorSpec.from_spec(tensor.spec)
        == ((3, 2), ops.float32)
    )
    assert SPEC.is_compatible_with(tensor)
    assert not SPEC.is_compatible_with(tensor.numpy())
    with pytest.raises(ValueError, match=r"should be a mr\.Tensor, but got type <class 'float'>"):
        spec.TensorSpec.from_tensor(3.0)


def test_sizes_of_a_spec_are_not_negative() -> None:
    with pytest.raises(ValueError, match="Dimension -1 must be >= 0"):
        spec.TensorSpec([2, -1])


def test_a_name_is_a_part_of_a_spec() -> None:
    """As in TensorFlow 2.21; it changes nothing of what is computed."""
    named, plain = mr.TensorSpec([2], name="q"), mr.TensorSpec([2])
    assert (named.name, plain.name, mr.TensorSpec.from_spec(named).name) == ("q", None, "q")
    assert mr.TensorSpec.from_spec(named, "r") == mr.TensorSpec([2], name="r") != named
    assert named != plain
    assert plain != named
    assert hash(named) == hash(plain)
    assert (named.is_subtype_of(plain), plain.is_subtype_of(named)) == (False, True)
    assert named.is_compatible_with(mr.TensorSpec([None], name="r"))
    for each in (pickle.loads(pickle.dumps(named)), copy.deepcopy(named)):
        assert (each, each.name, repr(each)) == (named, "q", repr(named))
    function = mr.function(lambda x: x * 2.0, input_signature=[named])
    assert function([1.0, 2.0]).numpy().tolist() == [2, 4]
    assert function.input_signature == (named,)
