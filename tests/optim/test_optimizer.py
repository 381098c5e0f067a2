"""What all optimizers share: settings, the learning rate, and rules of one's own."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import ops
from mirrored.distribute import MirroredStrategy, MirroredVariable
from mirrored.optim import SGD, Optimizer

Simulate = Callable[..., list[mr.config.LogicalDevice]]


# Settings


@cases(
    ("settings", "match"),
    [
        (
            {"learning_rate": -0.1},
            r"`learning_rate` must be a finite number of 0 or more\. Received: learning_rate=-0\.1",
        ),
        ({"learning_rate": float("nan")}, "`learning_rate` must be a finite number"),
        ({"learning_rate": float("inf")}, "`learning_rate` must be a finite number"),
        ({"learning_rate": "0.1"}, "Received: learning_rate='0.1'"),
        ({"learning_rate": None}, "Received: learning_rate=None"),
        ({"learning_rate": True}, "Received: learning_rate=True"),
        ({"weight_decay": -1}, "`weight_decay` must be a finite number of 0 or more"),
        ({"clipnorm": 0}, r"`clipnorm` must be a finite number above 0\. Received: clipnorm=0"),
        ({"clipvalue": -1.0}, "`clipvalue` must be a finite number above 0"),
        ({"global_clipnorm": "1"}, "`global_clipnorm` must be a finite number above 0"),
        (
            {"clipnorm": 1.0, "clipvalue": 2.0},
            "Only one of `clipnorm`, `clipvalue` and `global_clipnorm` can be set. Received: "
            "clipnorm=1.0, clipvalue=2.0, global_clipnorm=None",
        ),
    ],
)
def test_settings_out_of_range(
    kind: Callable[..., Optimizer], settings: dict[str, Any], match: str
) -> None:
    with pytest.raises(ValueError, match=match):
        kind(**settings)


@cases(("settings", "name"), [({}, "sgd"), ({"name": "mine"}, "mine"), ({"name": ""}, "sgd")])
def test_name(settings: dict[str, Any], name: str) -> None:
    assert SGD(**settings).name == name


def test_settings_are_numbers() -> None:
    optimizer = SGD(weight_decay=np.float32(0.5), global_clipnorm=2)
    found = (optimizer.weight_decay, optimizer.clipnorm, optimizer.global_clipnorm)
    assert found == (0.5, None, 2.0)
    assert type(optimizer.weight_decay) is float


# The learning rate


def test_the_learning_rate_is_set_between_steps() -> None:
    v = mr.Variable(1.0)
    optimizer = SGD(0.5)
    for rate, expected in [(None, 0.5), (0.25, 0.25), (0, 0.25), (np.float64(0.125), 0.125)]:
        if rate is not None:
            optimizer.learning_rate = rate
            assert float(optimizer.learning_rate) == rate
        optimizer.apply_gradients([(mr.constant(1.0), v)])
        assert float(v) == expected


@cases("rate", [-1.0, float("nan"), float("inf"), "fast", None, False])
def test_a_refused_learning_rate_changes_nothing(rate: Any) -> None:
    optimizer = SGD(0.5)
    with pytest.raises(ValueError, match="`learning_rate` must be a finite number of 0 or more"):
        optimizer.learning_rate = rate
    assert float(optimizer.learning_rate) == 0.5


def test_the_learning_rate_is_mirrored(
    strategy: MirroredStrategy, everywhere: Callable[[list[Any]], list[Any]]
) -> None:
    with strategy.scope():
        optimizer = SGD(0.5)
    optimizer.learning_rate = 0.25
    assert isinstance(optimizer.learning_rate, MirroredVariable)
    assert everywhere([optimizer.learning_rate]) == [0.25, 0.25]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_learning_rate_has_the_default_dtype(dtype: str) -> None:
    mr.keras.backend.set_floatx(dtype)
    assert SGD(0.1).learning_rate.dtype.name == dtype
    assert float(SGD(0.1).learning_rate) == float(np.dtype(dtype).type(0.1))


# Rules of one's own


class Halve(Optimizer):
    """Halves each weight, whatever the gradient."""

    def update(
        self,
        gradient: ops.Tensor,
        value: ops.Tensor,
        slots: tuple[ops.Tensor, ...],
        learning_rate: ops.Tensor,
        step: ops.Tensor,
    ) -> tuple[ops.Tensor, tuple[ops.Tensor, ...]]:
        return value * 0.5, ()


class Shrink(Halve):
    """Gets the shape wrong."""

    def update(self, *args: Any) -> tuple[ops.Tensor, tuple[ops.Tensor, ...]]:
        return args[1][:1], ()


class Forgetful(Halve):
    """Names a slot and does not return it."""

    @property
    def slot_names(self) -> tuple[str, ...]:
        return ("memory",)


def test_a_rule_of_ones_own() -> None:
    v = mr.Variable([4.0, 8.0])
    optimizer = Halve(0.1)
    optimizer.apply_gradients([(mr.zeros((2,)), v)])
    assert (v.numpy().tolist(), optimizer.name) == ([2.0, 4.0], "halve")


@cases(
    ("kind", "error", "match"),
    [
        (Optimizer, NotImplementedError, "The optimizer Optimizer has no `update`. Define"),
        (
            Shrink,
            ValueError,
            r"update must return the new value and 0 new slots, each of the shape and dtype of "
            r"the old one\. For v:0, with the old ones .*\(2,\).*, received: .*\(1,\)",
        ),
        (Forgetful, ValueError, "Forgetful.update must return the new value and 1 new slots"),
    ],
)
def test_rules_that_are_wrong(
    kind: Callable[..., Optimizer], error: type[Exception], match: str
) -> None:
    v = mr.Variable([4.0, 8.0], name="v")
    optimizer = kind(0.1)
    with pytest.raises(error, match=match):
        optimizer.apply_gradients([(mr.zeros((2,)), v)])
    assert v.numpy().tolist() == [4.0, 8.0]
    assert int(optimizer.iterations) == 0


def test_names_are_numbered() -> None:
    mr.keras.backend.clear_session()
    first, second, named = mr.optim.SGD(), mr.optim.SGD(), mr.optim.SGD(name="own")
    assert (first.name, second.name, named.name) == ("sgd", "sgd_1", "own")
    variable = mr.Variable([1.0], name="v")
    momentum = mr.optim.SGD(momentum=0.5, name="s")
    momentum.build([variable])
    paths = [each.path for each in momentum.variables]
    assert paths == ["s/iteration", "s/learning_rate", "s/v_momentum"]


@cases(
    "gradient",
    [lambda: np.ones(2, "int64"), lambda: np.ones(2, "float64"), lambda: mr.ones(2, "float64")],
)
def test_gradients_take_the_dtype_of_the_variable(gradient: Any) -> None:
    variable = mr.Variable([1.0, 2.0])
    mr.optim.SGD(1.0).apply_gradients([(gradient(), variable)])
    assert variable.numpy().tolist() == [0.0, 1.0]


def test_values_of_variables_are_rates() -> None:
    optimizer = mr.optim.SGD(mr.optim.SGD(0.5).learning_rate.value)
    assert optimizer.get_config()["learning_rate"] == 0.5
    optimizer.learning_rate = mr.Variable(0.25).value
    assert float(optimizer.learning_rate.value) == float(optimizer.learning_rate.value()) == 0.25
    assert int(optimizer.iterations.value) == 0
    with pytest.warns(UserWarning, match="`decay` is no longer supported and will") as warned:
        mr.optim.Adam(decay=0.1)  # type: ignore[call-arg]
    assert warned[0].filename == __file__


OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "SGD": lambda: SGD(0.1),
    "scaled": lambda: SGD(0.1, loss_scale_factor=8.0),
    "LossScaleOptimizer": lambda: mr.optim.LossScaleOptimizer(SGD(0.1), 4.0),
}


@cases("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
@cases("replicas", [1, 3])
def test_minimize_equals_apply_gradients(
    make: Callable[[], Any], replicas: int, simulate: Simulate
) -> None:
    simulate(replicas)
    strategy = MirroredStrategy()

    def values(step: Callable[[Any, mr.Variable, Callable[[], Any]], Any]) -> list[Any]:
        with strategy.scope():
            v, optimizer = mr.Variable([3.0, 1.0]), make()
        for _ in range(2):
            strategy.run(step, (optimizer, v, lambda: v * v * 0.5))
        assert int(optimizer.iterations) == 2
        return v.numpy().tolist()  # type: ignore[no-any-return]

    def applied(optimizer: Any, v: mr.Variable, loss: Callable[[], Any]) -> Any:
        with mr.GradientTape() as tape:
            scaled = optimizer.scale_loss(loss())
        return optimizer.apply_gradients([(tape.gradient(scaled, v), v)])

    def of_tensor(optimizer: Any, v: mr.Variable, loss: Callable[[], Any]) -> Any:
        with mr.GradientTape() as tape:
            value = loss()
        return optimizer.minimize(value, [v], tape=tape)

    def of_function(optimizer: Any, v: mr.Variable, loss: Callable[[], Any]) -> Any:
        return optimizer.minimize(loss, lambda: [v])

    expected = values(applied)
    assert expected == values(of_tensor) == values(of_function)
    assert expected[0] != 3.0


def test_minimize_needs_a_tape_for_a_tensor() -> None:
    v, optimizer = mr.Variable(1.0), SGD(0.5)
    with pytest.raises(ValueError, match="`tape` is required when a `Tensor` loss is passed"):
        optimizer.minimize(v * v, [v])
    with pytest.raises(ValueError, match="No gradients provided for any variable"):
        optimizer.minimize(lambda: mr.constant(1.0), [v])
    assert (float(v), int(optimizer.iterations)) == (1.0, 0)
    frozen = mr.Variable(1.0, trainable=False)
    optimizer.minimize(lambda: frozen * 2.0, [frozen])
    assert float(frozen) == 0.0
