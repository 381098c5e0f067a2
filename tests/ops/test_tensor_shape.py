"""Shapes: tuples that answer as TensorFlow 2.21's do."""

import copy
import operator
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.ops.tensor_shape import TensorShape as S

U = S(None)


@cases(
    ("dims", "sizes"),
    [
        ([2, None], (2, None)),
        ((2, 3), (2, 3)),
        ([], ()),
        (5, (5,)),
        (S([2, 3]), (2, 3)),
        (np.array([2, 3]), (2, 3)),
        ([np.int64(2)], (2,)),
    ],
)
def test_sizes(dims: Any, sizes: tuple[Any, ...]) -> None:
    shape = S(dims)
    assert shape == sizes == shape
    assert shape == list(sizes)
    assert not operator.ne(shape, list(sizes))
    assert (tuple(shape), shape.as_list(), shape.dims) == (sizes, list(sizes), list(sizes))
    assert (shape.rank, shape.ndims, str(shape)) == (len(sizes), len(sizes), str(sizes))
    assert {sizes: "found"}[shape] == "found"
    for made in (copy.deepcopy(shape), pickle.loads(pickle.dumps(shape))):
        assert (type(made), made) == (S, shape)


def test_sizes_may_be_tensors() -> None:
    assert S(mr.constant([2, 3])) == S([mr.constant(2), 3]) == (2, 3)


@cases(
    ("dims", "error"),
    [
        ([2, -1], ValueError),
        ([2.0], TypeError),
        (["a"], TypeError),
        ("ab", TypeError),
        (2.5, TypeError),
    ],
)
def test_what_is_no_shape(dims: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        S(dims)


ANSWERS: list[tuple[Callable[[], Any], Any]] = [
    (lambda: S([2, 3]).num_elements(), 6),
    (lambda: S([]).num_elements(), 1),
    (lambda: S([None, 2]).num_elements(), None),
    (lambda: S([2]).is_fully_defined(), True),
    (lambda: S([None]).is_fully_defined(), False),
    (lambda: S([2]).assert_is_fully_defined(), None),
    (lambda: S([None]).assert_is_fully_defined(), ValueError),
    (lambda: S([2, 3]).is_compatible_with((2, None)), True),
    (lambda: S([2, 3]).is_compatible_with(None), True),
    (lambda: S([2, 3]).is_compatible_with([2, 4]), False),
    (lambda: S([2, 3]).is_compatible_with([2]), False),
    (lambda: S([2, 3]).is_compatible_with("a"), TypeError),
    (lambda: S([2, 3]).assert_is_compatible_with([2, 3]), None),
    (lambda: S([2, 3]).assert_is_compatible_with([2, 4]), ValueError),
    (lambda: S([None, 3]).merge_with([2, None]), (2, 3)),
    (lambda: S([2]).merge_with(None), (2,)),
    (lambda: S([2, 3]).merge_with([2]), ValueError),
    (lambda: S([2, 3]).concatenate([None]), (2, 3, None)),
    (lambda: operator.add(S([2, 3]), [4]), (2, 3, 4)),
    (lambda: operator.add([4], S([2, 3])), (4, 2, 3)),
    (lambda: operator.add((4,), S([2, 3])), (4, 2, 3)),
    (lambda: S([2, 3])[:1], (2,)),
    (lambda: S([2, 3])[-1], 3),
    (lambda: S([2, 3])[5], IndexError),
    (lambda: S([2, 3]).with_rank(2), (2, 3)),
    (lambda: S([2, 3]).with_rank(3), ValueError),
    (lambda: S([2, 3]).with_rank_at_least(2), (2, 3)),
    (lambda: S([2, 3]).with_rank_at_least(3), ValueError),
    (lambda: S([2, 3]).with_rank_at_most(2), (2, 3)),
    (lambda: S([2, 3]).with_rank_at_most(1), ValueError),
    (lambda: S([2, 3]).assert_has_rank(2), None),
    (lambda: S([2, 3]).assert_has_rank(1), ValueError),
    (lambda: S([2, 3]).assert_same_rank([1, 1]), None),
    (lambda: S([2, 3]).assert_same_rank([1]), ValueError),
    (lambda: S([2, 3]).is_subtype_of(S([None, 3])), True),
    (lambda: S([None, 3]).is_subtype_of(S([2, 3])), False),
    (lambda: S([2, 3]).most_specific_compatible_shape([2, 4]), (2, None)),
    (lambda: (str(U), repr(U), f"{U}"), ("<unknown>", "TensorShape(None)", "<unknown>")),
    (lambda: (U.rank, U.ndims, U.dims, U.num_elements(), U[0]), (None,) * 5),
    (lambda: (bool(U), U.is_fully_defined()), (False, False)),
    (lambda: (operator.eq(U, S([2])), S([2]) == U, U == (), operator.eq((), U)), (False,) * 4),
    (lambda: (operator.eq(U, None), S(U) == U, hash(U) == hash(S(None))), (True,) * 3),
    (lambda: [copy.deepcopy(U), pickle.loads(pickle.dumps(U))] == [U, U], True),
    (lambda: U.as_list(), ValueError),
    (lambda: U.assert_is_fully_defined(), ValueError),
    (lambda: len(U), ValueError),
    (lambda: list(U), ValueError),
    (lambda: tuple(U), ValueError),
    (lambda: operator.contains(U, 3), ValueError),
    (lambda: U.count(3), ValueError),
    (lambda: operator.lt(U, S([2])), ValueError),
    (lambda: U[:2], (None, None)),
    (lambda: U[0:0], ()),
    (lambda: [U[1:], U[:-1], U[-2:]] == [U, U, U], True),
    (lambda: U[::2], ValueError),
    (
        lambda: (
            [operator.add(U, [1]), operator.add([1], U), operator.add((1,), U), S([2]) + U]
            == [U] * 4
        ),
        True,
    ),
    (lambda: S([2]).concatenate(None) == U, True),
    (lambda: U.merge_with([2, 3]), (2, 3)),
    (lambda: S([2, 3]).merge_with(U), (2, 3)),
    (lambda: (U.is_compatible_with([2]), S([2]).is_compatible_with(U)), (True, True)),
    (lambda: U.with_rank(2), (None, None)),
    (lambda: [U.with_rank_at_least(2), U.with_rank_at_most(2)] == [U, U], True),
    (lambda: (U.assert_has_rank(2), U.assert_same_rank([2])), (None, None)),
    (lambda: (U.is_subtype_of(S([2])), S([2]).is_subtype_of(U)), (False, True)),
    (lambda: S([2]).most_specific_compatible_shape(None) == U, True),
]


@cases(("ask", "answer"), ANSWERS)
def test_answers(ask: Callable[[], Any], answer: Any) -> None:
    if isinstance(answer, type) and issubclass(answer, Exception):
        with pytest.raises(answer) as caught:
            ask()
        assert type(caught.value) is answer
        return
    given = ask()
    assert given == answer
    assert type(given) in (type(answer), S)


def test_tensors_variables_and_placeholders_have_such_shapes() -> None:
    values = [mr.zeros((2, 3)), mr.Variable([[1.0]]), mr.layers.Input((3,))]
    assert {type(each.shape) for each in values} == {mr.TensorShape} == {S}
    assert [mr.zeros((2, 3)).get_shape(), mr.Variable([1.0]).get_shape()] == [[2, 3], [1]]
    assert mr.zeros(values[0].shape).shape[1:].as_list() == [3]


@cases(
    "call",
    [
        lambda: mr.TensorSpec(U, mr.int32).shape is None,
        lambda: mr.TensorSpec(U).is_compatible_with(mr.zeros((2, 3))),
        lambda: mr.ensure_shape([1, 2], U).shape == (2,),
        lambda: mr.zeros((2,)).set_shape(U) is None,
        lambda: mr.Variable([1.0]).set_shape(U) is None,
        lambda: mr.function(lambda x: x + 1.0, input_signature=[mr.TensorSpec(U)])([1.0]) == 2.0,
        lambda: mr.compat.v1.TensorShape(U).rank is None,
        lambda: (
            mr.data.Dataset.from_generator(
                lambda: iter([1]), output_types=mr.int32, output_shapes=U
            ).element_spec.shape
            is None
        ),
    ],
)
def test_unknown_shape_is_any_shape(call: Callable[[], Any]) -> None:
    assert call()


@cases(
    "call",
    [
        lambda: mr.zeros(U),
        lambda: mr.fill(U, 1),
        lambda: mr.constant(1, shape=U),
        lambda: mr.reshape([1, 2], U),
        lambda: mr.random.normal(U),
        lambda: mr.convert_to_tensor(U),
        lambda: mr.layers.Input(U),
        lambda: mr.layers.Dense(3).build(U),
        lambda: mr.layers.Dense(3).compute_output_shape(U),
        lambda: mr.layers.Layer().add_weight(shape=U),
        lambda: mr.data.Dataset.from_tensors([1]).padded_batch(2, padded_shapes=U),
    ],
)
def test_unknown_shape_where_sizes_are_needed(call: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match="number of axes is unknown"):
        call()
