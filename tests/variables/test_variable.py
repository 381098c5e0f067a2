"""What all variables have in common: their arguments, values and operators, and their creators."""

import contextvars
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import ops
from mirrored._naming import name_scope
from mirrored.autodiff import GradientTape
from mirrored.variables import (
    Variable,
    VariableAggregation,
    VariableSynchronization,
    set_variable_creators,
    variable_creator_scope,
)
from mirrored.variables.variable import check_modes


def test_attributes() -> None:
    v = Variable([1.0, 2.0], name="q", trainable=False, aggregation=VariableAggregation.SUM)
    assert (v.name, v.shape, v.dtype, v.trainable) == ("q:0", (2,), ops.float32, False)
    assert v.aggregation is VariableAggregation.SUM
    assert v.device == "/job:localhost/replica:0/task:0/device:CPU:0"
    assert isinstance(v, Variable)
    assert Variable(1).name == "Variable:0"
    assert Variable(1).trainable is True
    assert Variable(1).aggregation is VariableAggregation.NONE


@pytest.mark.behaviour("variable-repr")
def test_repr_and_format() -> None:
    v = Variable([1.0, 2.0], name="q")
    text = "<mr.Variable 'q:0' shape=(2,) dtype=float32, numpy=array([1., 2.], dtype=float32)>"
    assert repr(v) == str(v) == f"{v}" == text
    scalar = Variable(3.0)
    assert repr(scalar) == "<mr.Variable 'Variable:0' shape=() dtype=float32, numpy=3.0>"
    assert f"{scalar:.2f}" == "3.00"


@cases(
    ("arguments", "error", "text"),
    [
        ({}, ValueError, "The `initial_value` arg to `mr.Variable` is required"),
        ({"initial_value": "a"}, TypeError, "Received: 'a'"),
        ({"initial_value": 1.5, "dtype": "int32"}, TypeError, "Cannot convert 1.5"),
        ({"initial_value": 1.0, "dtype": "complex64"}, TypeError, "Received: 'complex64'"),
        (
            {"initial_value": 1.0, "name": "v", "aggregation": "sum"},
            ValueError,
            "Invalid variable aggregation mode: sum for variable: v",
        ),
    ],
)
def test_bad_arguments(arguments: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        Variable(**arguments)


def test_assign() -> None:
    v = Variable([1.0, 2.0])
    assert v.assign([3.0, 4.0]) is v
    assert v.assign_add([1.0, 1.0]) is v
    assert v.assign_sub(np.float64([0.5, 0.5])) is v
    np.testing.assert_array_equal(v.numpy(), [3.5, 4.5])
    v.assign(v * 2.0)
    v.assign_add(v)
    np.testing.assert_array_equal(v.numpy(), [14.0, 18.0])
    counter = Variable(1, dtype="int64")
    counter.assign_add(1)
    assert counter.dtype == ops.int64
    assert int(counter) == 2


@pytest.mark.behaviour("read-is-a-snapshot")
def test_a_read_is_a_snapshot() -> None:
    v = Variable([1.0, 2.0])
    reads = (v.read_value, v.value, lambda: ops.convert_to_tensor(v), lambda: ops.identity(v))
    for read in reads:
        before = read()
        v.assign_add([1.0, 1.0])
        np.testing.assert_array_equal(before.numpy() + 1.0, v.numpy())


def test_it_computes_as_a_tensor() -> None:
    v = Variable([1.0, 2.0])
    np.testing.assert_array_equal((v + v).numpy(), [2.0, 4.0])
    np.testing.assert_array_equal((2.0 * v - np.ones(2)).numpy(), [1.0, 3.0])
    np.testing.assert_array_equal(ops.reduce_sum(v).numpy(), 3.0)
    np.testing.assert_array_equal(np.asarray(v), [1.0, 2.0])
    assert len(v) == 2
    assert float(v[1]) == 2.0
    assert [float(each) for each in v] == [1.0, 2.0]
    assert (v.ndim, v.size) == (1, 2)


@cases("symbol", ["+", "-", "*", "/", "**", "@"])
def test_assignment_operators_are_errors(symbol: str) -> None:
    names = {"v": Variable([[1.0]], name="w")}
    with pytest.raises(RuntimeError, match=r"Use `variable.assign_add\(value\)`.*variable 'w:0'"):
        exec(f"v {symbol}= 1.0", names)
    assert isinstance(names["v"], Variable)


def test_assigning_a_tensor_that_a_tape_follows() -> None:
    """A variable's value is a constant to the tape; only reads of the variable are followed."""
    x, v = ops.constant([2.0]), Variable([1.0])
    with GradientTape() as tape:
        tape.watch(x)
        v.assign(x * x)
        y = v * 3.0
    by_x, by_v = tape.gradient(y, [x, v])
    assert by_x is None
    assert float(by_v[0]) == 3.0


def test_creators() -> None:
    calls: list[Any] = []

    def creator(name: str) -> Any:
        def create(next_creator: Any, **kwargs: Any) -> Variable:
            calls.append((name, kwargs["name"], kwargs["synchronization"]))
            return next_creator(**{**kwargs, "name": f"{name}/{kwargs['name']}"})

        return create

    with variable_creator_scope(creator("outer")), variable_creator_scope(creator("inner")):
        v = Variable(1.0, name="v", synchronization=VariableSynchronization.ON_READ)
    assert [call[:2] for call in calls] == [("inner", "v"), ("outer", "inner/v")]
    assert calls[0][2] is VariableSynchronization.ON_READ
    assert v.name == "outer/inner/v:0"
    with name_scope("scope"), variable_creator_scope(creator("made")):
        assert Variable(1.0, name="v").name == "scope/made/v:0"
    assert calls[-1][1] == "v"  # The scope is added to what creators make of a name.
    assert Variable(1.0).name == "Variable:0"


def test_creators_are_forgotten_after_an_error() -> None:
    def failing(next_creator: Any, **kwargs: Any) -> Variable:
        raise KeyError(kwargs["name"])

    with pytest.raises(KeyError), variable_creator_scope(failing):
        Variable(1.0)
    assert Variable(2.0).numpy() == 2.0


def test_creators_that_last() -> None:
    """Those of a strategy that is put in force without a `with` block."""

    def creator(next_creator: Any, **kwargs: Any) -> Variable:
        return next_creator(**{**kwargs, "name": f"made/{kwargs['name']}"})

    def make() -> list[str]:
        set_variable_creators(creator)
        with variable_creator_scope(creator):
            names = [Variable(1.0, name="v").name]
        names.append(Variable(1.0, name="v").name)
        set_variable_creators()
        return [*names, Variable(1.0, name="v").name]

    # In a context of its own: what a failure would leave there ends with it.
    assert contextvars.copy_context().run(make) == ["made/made/v:0", "made/v:0", "v:0"]


# When copies are brought together and how: what is accepted, and what follows.

SYNCHRONIZATIONS = list(VariableSynchronization)


@pytest.mark.behaviour("aggregation")
def test_names_and_numbers_are_tensorflows() -> None:
    assert [(each.name, each.value) for each in VariableSynchronization] == [
        ("AUTO", 0),
        ("NONE", 1),
        ("ON_WRITE", 2),
        ("ON_READ", 3),
    ]
    assert [(each.name, each.value) for each in VariableAggregation] == [
        ("NONE", 0),
        ("SUM", 1),
        ("MEAN", 2),
        ("ONLY_FIRST_REPLICA", 3),
    ]


@cases("synchronization", SYNCHRONIZATIONS)
@cases("aggregation", list(VariableAggregation))
@cases("trainable", [None, True, False])
def test_trainable_follows_from_the_modes(
    synchronization: VariableSynchronization,
    aggregation: VariableAggregation,
    trainable: bool | None,
) -> None:
    by_default = synchronization is not VariableSynchronization.ON_READ
    expected = by_default if trainable is None else trainable
    assert check_modes(synchronization, aggregation, trainable, "v") is expected


@pytest.mark.behaviour("aggregation")
@cases("value", ["sum", "SUM", None, 1, VariableSynchronization.ON_READ])
def test_an_aggregation_that_there_is_not(value: Any) -> None:
    with pytest.raises(ValueError, match=r"Invalid variable aggregation mode: .* variable: v") as e:
        check_modes(VariableSynchronization.AUTO, value, None, "v")
    assert all(str(each) in str(e.value) for each in VariableAggregation)


@cases("value", ["on_read", None, 3, VariableAggregation.SUM])
def test_a_synchronization_that_there_is_not(value: Any) -> None:
    with pytest.raises(ValueError, match=r"Invalid variable synchronization mode: .*: v") as e:
        check_modes(value, VariableAggregation.NONE, None, "v")
    assert all(str(each) in str(e.value) for each in SYNCHRONIZATIONS)


@cases("method", ["assign", "assign_add", "assign_sub"])
def test_a_write_may_return_nothing(method: str) -> None:
    variable = Variable(2.0)
    assert getattr(variable, method)(2.0, read_value=False) is None
    assert variable.numpy() == {"assign": 2.0, "assign_add": 4.0, "assign_sub": 0.0}[method]


def test_set_shape_checks_the_shape() -> None:
    variable = Variable([1.0, 2.0])
    for shape in ([2], [None], None):
        variable.set_shape(shape)
    with pytest.raises(ValueError, match=r"shape \[2\] is not compatible with supplied shape \[3"):
        variable.set_shape([3])


def test_the_value_is_an_attribute_and_a_method() -> None:
    v = Variable([1.0, 2.0])
    before = v.value
    v.assign([3.0, 4.0])
    assert isinstance(before, ops.Tensor)
    assert (before + 1.0).numpy().tolist() == [2.0, 3.0]
    assert v.value.numpy().tolist() == v.value().numpy().tolist() == before().numpy().tolist()

    @mr.function
    def both() -> Any:
        return v.value * 2.0, v.value() + 1.0

    assert [each.numpy().tolist() for each in both()] == [[6.0, 8.0], [4.0, 5.0]]
    with mr.GradientTape() as tape:
        y = ops.reduce_sum(v.value * v.value())
    assert tape.gradient(y, v).numpy().tolist() == [6.0, 8.0]


@pytest.mark.parametrize("name", ["constraint", "regularizer"])
def test_functions_of_a_variable_can_be_set(name: str) -> None:
    v = Variable([-1.0])
    setattr(v, name, abs)
    assert getattr(v, name) is abs
    with pytest.raises(ValueError, match=f"Invalid value for attribute `{name}`"):
        setattr(v, name, 3)
    setattr(v, name, None)
    with pytest.raises(TypeError, match="must be a boolean"):
        v.overwrite_with_gradient = 3  # type: ignore[assignment]
    with pytest.raises(ValueError, match="float8"):
        v.overwrite_with_gradient = True
    assert (v.overwrite_with_gradient, v.autocast) == (False, True)


def test_a_variable_has_no_initializer(simulate: Any) -> None:
    simulate(2)
    with mr.MirroredStrategy().scope():
        mirrored = mr.Variable(1.0)
    assert (mr.Variable(1.0).initializer, mirrored.initializer) == (None, None)
