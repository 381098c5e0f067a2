"""Functional models of several inputs and outputs: what they are given, and what they return."""

import copy
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.layers import Dense, Input, Layer

A = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
B = np.random.default_rng(1).normal(size=(3, 2)).astype(np.float32)


class Joined(Layer):
    """Takes several tensors by the names of its arguments."""

    def build(self, left_shape: Any, right_shape: Any) -> None:
        self.shapes = (left_shape, right_shape)
        self.kernel = self.add_weight(shape=(left_shape[-1], right_shape[-1]), name="kernel")

    def call(self, left: mr.Tensor, right: mr.Tensor, scale: float = 1.0) -> mr.Tensor:
        return mr.matmul(left, self.kernel) * scale + right


def two(structure: Callable[[Any, Any], Any], returns: Callable[[Any, Any], Any]) -> mr.Model:
    """Return a model of two inputs and two outputs in some structure."""
    a, b = Input((4,), name="a"), Input((2,), name="b")
    joined = Joined(name="joined")(a, b, scale=2.0)
    return mr.Model(structure(a, b), returns(joined, Dense(3, name="head")(joined)))


def expected(model: mr.Model) -> tuple[np.ndarray, np.ndarray]:
    kernel, head, bias = model.get_weights()
    joined = A @ kernel * 2.0 + B
    return joined, joined @ head + bias


STRUCTURES: dict[str, tuple[Callable[[Any, Any], Any], list[Any]]] = {
    "list": (lambda a, b: [a, b], [[A, B], (A, B), {"a": A, "b": B}, {"b": B, "z": A, "a": A}]),
    "tuple": (lambda a, b: (b, a), [[B, A], (B, A), {"a": A, "b": B}]),
    "dict": (lambda a, b: {"a": a, "b": b}, [{"b": B, "a": A}, [A, B], {"a": A, "c": A, "b": B}]),
    "unsorted dict": (lambda a, b: {"b": b, "a": a}, [{"a": A, "b": B}]),
    "nested": (lambda a, b: [a, {"x": (b,)}], [[A, {"x": (B,)}], (A, {"x": [B]})]),
}


@cases(("structure", "calls"), STRUCTURES.values(), ids=STRUCTURES)
def test_inputs_are_given_as_they_were_made_or_by_name(
    structure: Callable[[Any, Any], Any], calls: list[Any]
) -> None:
    model = two(structure, lambda y, z: {"y": y, "z": [z]})
    assert model.output_shapes == {"y": (None, 2), "z": [(None, 3)]}
    assert model.output_shape == [(None, 2), (None, 3)]
    assert model.output_dtypes == {"y": np.float32, "z": [np.float32]}
    assert model.output_names == ["joined", "head"]
    assert model.get_layer("joined").input_shape == (None, 4)
    joined, head = expected(model)
    copies = [model, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
    for each in copies:
        assert [layer.name for layer in each.layers] == [layer.name for layer in model.layers]
        for given in calls if each is model else calls[:1]:
            for inputs in (given, mr.nest.map_structure(mr.constant, given)):
                outputs = each(inputs)
                np.testing.assert_allclose(outputs["y"].numpy(), joined, rtol=1e-6)
                np.testing.assert_allclose(outputs["z"][0].numpy(), head, rtol=1e-5)


REFUSED: dict[str, tuple[str, Any, str]] = {
    # In Keras' words (3.15.1).
    "missing": ("dict", {"a": A}, 'Missing data for input "b". You passed a data dictionary with'),
    "unknown": ("list", {"a": A, "c": B}, 'Missing data for input "b". You passed a data diction'),
    "one": ("list", A, "expects 2 named input(s) with keys ['a', 'b'], but it received 1 input"),
    "three": ("list", [A, B, B], "with keys ['a', 'b'], but it received 3 input tensors. Pass in"),
    "no input": ("list", [A, None], "The input 'b' is not optional, but None was passed."),
    "in no order": (
        "unsorted dict",
        [A, B],
        "doesn't match the expected structure.\nExpected: {'b",
    ),
    "other form": ("nested", [A, B], "The structure of `inputs` doesn't match the expected struct"),
    "shape": ("list", [A, A], "Input 1 with name 'b' of layer \"functional\" is incompatible with"),
}


@pytest.mark.behaviour("given-inputs")
@cases(("structure", "given", "message"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_fit_is_refused(structure: str, given: Any, message: str) -> None:
    model = two(STRUCTURES[structure][0], lambda y, z: [y, z])
    with pytest.raises(ValueError, match=re.escape(message)):
        model(given)


def test_shapes_are_fitted_in_the_structure_that_they_are_given_in() -> None:
    model = two(lambda a, b: {"a": a, "b": b}, lambda y, z: y)
    assert model.fitted_shape({"b": (3, 2, 1), "a": (3, 4)}) == {"b": (3, 2), "a": (3, 4)}
    assert model.fitted_shape([(3, 4, 1), (3, 2)]) == [(3, 4), (3, 2)]
    assert model({"a": A[..., None], "b": B}).shape == (3, 2)
    model.check_input_shape({"a": (None, 4), "b": (None, 2, 1)})
    with pytest.raises(ValueError, match="Input 1 with name 'b'"):
        model.check_input_shape([(None, 4), (None, 3)])
    assert model.compute_output_shape([(5, 4), (5, 2)]) == (5, 2)


# ------------------------------------------------------------------------------ subclasses


class Towers(mr.Model):
    """A subclass that takes a dict, and something more."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = Dense(3)
        self.table = mr.Variable(np.eye(5, 3, dtype=np.float32))

    def call(self, inputs: Any, extra: Any = None, training: bool = False) -> Any:
        outputs = self.dense(inputs["x"]) + mr.gather(self.table, inputs["ids"])
        return {"sum": outputs if extra is None else outputs + extra, "ids": inputs["ids"]}


IDS = np.array([0, 4, 2])


@cases("how", ["call", "extra", "build_for"])
def test_a_subclass_takes_a_dict(how: str) -> None:
    """Integers stay integers, as in Keras."""
    model = Towers()
    inputs = {"x": A, "ids": IDS}
    if how == "build_for":
        model.build_for({"x": (None, 4), "ids": (None,)}, {"x": np.float32, "ids": np.int64})
        assert model.output_shapes == {"sum": (None, 3), "ids": (None,)}
        assert model.output_dtypes == {"sum": np.float32, "ids": np.int64}
        model.output_shapes_for(
            {"x": (None, 4), "ids": (None,)}, {"x": np.float32, "ids": np.int32}
        )
    extra = np.ones(3, np.float32) if how == "extra" else None
    outputs = model(inputs, extra=extra)
    kernel = model.dense.get_weights()[0]
    wanted = A @ kernel + np.eye(5, 3)[IDS] + (0 if extra is None else extra)
    np.testing.assert_allclose(outputs["sum"].numpy(), wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(outputs["ids"].numpy(), IDS)
    assert model.output_shape == {"sum": (None, 3), "ids": (None,)}
    assert len(model.weights) == 3


class Notes(Layer):
    """Writes down what it is built and called with."""

    def build(self, input_shape: Any) -> None:
        self.shape = input_shape

    def call(self, inputs: Any, *, factor: float = 1.0, training: Any = None) -> Any:
        self.given = inputs
        return mr.nest.map_structure(lambda each: each * factor, inputs)


@cases(
    ("inputs", "shapes"),
    [
        ({"a": A, "b": B}, {"a": (3, 4), "b": (3, 2)}),
        ([A, B], [(3, 4), (3, 2)]),
        ((A, [B, {"z": B}]), ((3, 4), [(3, 2), {"z": (3, 2)}])),
    ],
)
def test_layers_are_built_with_the_shapes_of_nested_inputs(inputs: Any, shapes: Any) -> None:
    layer = Notes()
    outputs = layer(inputs, factor=2.0)
    assert layer.shape == shapes
    assert isinstance(layer.given, type(inputs))
    for output, given in zip(mr.nest.flatten(outputs), mr.nest.flatten(inputs), strict=True):
        np.testing.assert_array_equal(output.numpy(), given * 2)
    symbolic = mr.nest.map_structure(lambda each: Input(each.shape[1:]), inputs)
    drawn = Notes()(symbolic, factor=3.0)
    assert [each.shape for each in mr.nest.flatten(drawn)] == [
        (None, *each.shape[1:]) for each in mr.nest.flatten(inputs)
    ]
    model = mr.Model(symbolic, drawn)
    outputs = mr.nest.flatten(model(inputs))
    for output, given in zip(outputs, mr.nest.flatten(inputs), strict=True):
        np.testing.assert_array_equal(output.numpy(), given * 3)


ARGUMENTS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    # In Keras' words, but for the last.
    "no tensor by position": (
        lambda: Joined()(A, B, 2.0),
        ValueError,
        "Only input tensors may be passed as positional arguments. The following argument value",
    ),
    "missing": (lambda: Joined()(A), TypeError, "missing a required argument: 'right'"),
    "unknown": (
        lambda: Joined()(A, B, foo=1),
        TypeError,
        "got an unexpected keyword argument 'foo'",
    ),
    "mixed": (
        lambda: Notes()({"a": A}, factor=[mr.constant(1.0), 2.0]),
        ValueError,
        "In a nested call() argument, you cannot mix tensors and non-tensors.",
    ),
    "several for one": (
        lambda: Dense(1)([A, B]),
        ValueError,
        "expects 1 input(s), but it received",
    ),
}


@cases(("call", "kind", "message"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_arguments_that_call_does_not_take(
    call: Callable[[], Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        call()


def test_a_build_of_several_shapes_says_which() -> None:
    class Wrong(Joined):
        def build(self, left_shape: Any, other_shape: Any) -> None:
            """Do nothing."""

    with pytest.raises(ValueError, match=r"For a `build\(\)` method with more than one argument"):
        Wrong()(A, B)
    layer = Joined()
    layer(left=A, right=B)
    assert layer.shapes == ((3, 4), (3, 2))


class Table(mr.Model):
    """Looks rows up."""

    def build(self, input_shape: Any) -> None:
        self.rows = self.add_weight(shape=(5, 2))

    def call(self, inputs: Any) -> mr.Tensor:
        return mr.reduce_sum(mr.gather(self.rows, inputs), axis=1)


LARGE = np.array([[2**24 + 1], [7]])  # What float32 has not.


@pytest.mark.parametrize("eager", [True, False])
def test_data_come_in_the_dtypes_of_the_inputs(eager: bool, strategy: mr.MirroredStrategy) -> None:
    with strategy.scope():
        one, other = Input((1,), dtype="int64", name="a"), Input((1,), dtype="float64", name="b")
        digits = mr.Model(one, mr.cast(one % 1000, "float32"))
        both = mr.Model([one, other], mr.cast(one, "float64") - other)
        table = Table()
    for model in (digits, both, table):
        model.compile("sgd", "mse", run_eagerly=eager)
    assert digits.predict(LARGE, verbose=0).tolist() == [[217], [7]]
    given = {"a": LARGE, "b": LARGE.astype(np.float64)}
    assert both.predict(given, verbose=0).tolist() == [[0], [0]]
    table.fit(np.array([[0, 4], [1, 1]]), np.ones((2, 2)), verbose=0)
    np.testing.assert_allclose(
        table.predict(np.array([[3, 2]]), verbose=0)[0], table.get_weights()[0][2:4].sum(axis=0)
    )
