"""Attributes that TensorFlow's objects have and this library's have not: what the error says."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest
from case_table import cases

import mirrored as mr
from mirrored._absent import tables

MEMBERS = tables().classes
ROWS = [row for row in (*tables().absent, *tables().older) if row.homes[0] in MEMBERS]


def model() -> mr.Model:
    """Return a model of one layer."""
    return mr.Sequential([mr.layers.Input((3,)), mr.layers.Dense(1)])


def replica_context() -> Any:
    """Return the context of a replica."""
    return mr.distribute.get_strategy().run(mr.distribute.get_replica_context)


def manager() -> mr.train.CheckpointManager:
    """Return a manager of a folder that it does not make yet."""
    return mr.train.CheckpointManager(mr.train.Checkpoint(), "never_made", 1)


MAKERS: dict[str, list[Callable[[], Any]]] = {
    "tf.Tensor": [lambda: mr.constant(1.0)],
    "tf.Variable": [lambda: mr.Variable(1.0), lambda: mr.Variable],
    "tf.TensorShape": [lambda: mr.zeros((2, 3)).shape, lambda: mr.layers.Input((3,)).shape],
    "tf.data.Dataset": [lambda: mr.data.Dataset.range(3), lambda: mr.data.Dataset],
    "tf.function": [lambda: mr.function(lambda: 1)],
    "tf.types.experimental.ConcreteFunction": [
        lambda: mr.function(lambda: 1).get_concrete_function()
    ],
    "tf.distribute.Strategy": [mr.distribute.get_strategy, mr.MirroredStrategy],
    "tf.distribute.ReplicaContext": [replica_context],
    "tf.keras.Model": [model],
    "tf.keras.layers.Layer": [lambda: mr.layers.Dense(3), lambda: mr.layers.Flatten()],
    "tf.keras.optimizers.Optimizer": [mr.optim.SGD, mr.optim.Adam],
    "tf.keras.losses.Loss": [mr.losses.MeanSquaredError],
    "tf.keras.metrics.Metric": [mr.metrics.Mean],
    "tf.random.Generator": [lambda: mr.random.Generator.from_seed(1)],
    "tf.train.Checkpoint": [mr.train.Checkpoint],
    "tf.train.CheckpointManager": [manager],
}


COMPLETE = {  # They have them all.
    "tf.keras.losses.Loss",
    "tf.keras.optimizers.Optimizer",
    "tf.train.Checkpoint",
}


@pytest.mark.behaviour("absent-names")
@cases("home", MEMBERS)
def test_every_absent_attribute_says_so(home: str) -> None:
    for make in MAKERS[home]:
        value = make()
        absent = [name for name in MEMBERS[home] if is_absent(value, name)]
        assert bool(absent) != (home in COMPLETE)
        for name in absent:
            with pytest.raises(AttributeError) as caught:
                getattr(value, name)
            text = str(caught.value)
            # What the class itself refuses it refuses for the classes below it.
            owner = home if f"`{home}." in text else "tf.keras.layers.Layer"
            start = re.escape(f"mirrored has no `{owner}.{name}`: not provided here. ")
            assert re.match(f"^{start}[A-Z`].*[.]$", text)


@pytest.mark.behaviour("absent-names")
@cases("home", MEMBERS)
def test_what_is_refused_is_not_listed(home: str) -> None:
    """`dir` is what tab completion shows."""
    for value in (make() for make in MAKERS[home]):
        if isinstance(value, type):
            continue
        members = {name: inspect.getattr_static(value, name, None) for name in dir(type(value))}
        refused = {name for name, it in members.items() if type(it).__name__ == "_Refused"}
        shown = members.keys() - refused
        if isinstance(value, mr.distribute.Strategy):  # Which lists TensorFlow's names alone.
            shown = {name for name in shown if name.startswith("_") or name in MEMBERS[home]}
            assert {name for name in dir(value) if not name.startswith("_")} <= shown
        assert shown <= {*dir(value)}
        assert refused.isdisjoint(dir(value))


def is_absent(value: Any, name: str) -> bool:
    """Say whether a value has no such attribute: one that it does not list, or that is refused."""
    classes = value.__mro__ if isinstance(value, type) else type(value).__mro__
    found = next((vars(each)[name] for each in classes if name in vars(each)), None)
    return name not in dir(value) or type(found).__name__ == "_Refused"


@cases("home", MAKERS)
def test_advice_is_given(home: str) -> None:
    value = MAKERS[home][0]()
    for row, name in [(r, name) for r in ROWS if home in r.homes for name in r.names]:
        with pytest.raises(AttributeError) as caught:
            getattr(value, name)
        assert str(caught.value).endswith(f": not provided here. {row.advice}")
        # Without an object Python adds no guess, which would name another attribute.
        assert caught.value.obj is None


def test_every_class_is_made_here() -> None:
    assert set(MAKERS) == set(MEMBERS)


@cases(
    ("make", "name"),
    [
        *((makers[0], "no_such") for makers in MAKERS.values()),
        (lambda: mr.data.Dataset, "no_such"),
        (model, "_private"),
        (model, "__array__"),
    ],
)
def test_what_nobody_has_is_pythons_own_error(make: Callable[[], Any], name: str) -> None:
    value = make()
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'$") as caught:
        getattr(value, name)
    # From these Python finds the nearest attribute that there is, and says it.
    assert caught.value.name == name
    assert caught.value.obj is value


def test_the_error_of_a_property_is_not_taken_for_a_missing_attribute() -> None:
    with pytest.raises(AttributeError, match="has never been called and thus has no defined"):
        mr.layers.Dense(3).output_shape  # noqa: B018


def test_attributes_of_ones_own_are_as_ever() -> None:
    class Loss(mr.losses.Loss):
        def call(self, y_true: Any, y_pred: Any) -> Any:
            return y_true - y_pred

        def get_config(self) -> dict[str, Any]:
            return {}

    loss, layer = Loss(), mr.layers.Dense(3)
    layer.loss = 5
    assert (loss.get_config(), layer.loss) == ({}, 5)


def test_shapes_are_tuples_to_all_else() -> None:
    shape = mr.zeros((2, 3)).shape
    assert shape == (2, 3)
    assert isinstance(shape, tuple)
    assert {shape: 1}[2, 3] == 1
    assert (repr(shape), f"{shape}") == ("(2, 3)", "(2, 3)")
