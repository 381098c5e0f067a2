"""The methods of models as callers meet them: the order of arguments, and what fits with what."""

import inspect
from collections.abc import Callable

import numpy as np
import pytest
from case_table import cases

import mirrored as mr

# The parameters of Keras 3.15.1's methods, in their order, as far as ours have them.
SIGNATURES: dict[str, tuple[Callable[..., object], str]] = {
    "Model": (mr.Model.__init__, "inputs outputs name"),
    "Sequential": (mr.Sequential.__init__, "layers trainable name"),
    "compile": (
        mr.Model.compile,
        "optimizer loss loss_weights metrics weighted_metrics run_eagerly steps_per_execution "
        "jit_compile auto_scale_loss",
    ),
    "fit": (
        mr.Model.fit,
        "x y batch_size epochs verbose callbacks validation_split validation_data shuffle "
        "class_weight sample_weight initial_epoch steps_per_epoch validation_steps "
        "validation_batch_size validation_freq",
    ),
    "evaluate": (
        mr.Model.evaluate,
        "x y batch_size verbose sample_weight steps callbacks return_dict",
    ),
    "predict": (mr.Model.predict, "x batch_size verbose steps callbacks"),
    "get_layer": (mr.Model.get_layer, "name index"),
    "save_weights": (mr.Model.save_weights, "filepath overwrite max_shard_size"),
    "load_weights": (mr.Model.load_weights, "filepath skip_mismatch"),
}


@pytest.mark.behaviour("fit-arguments")
@cases(("method", "names"), SIGNATURES.values(), ids=SIGNATURES)
def test_arguments_stand_as_in_keras(method: Callable[..., object], names: str) -> None:
    parameters = inspect.signature(method).parameters.values()
    positional = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    assert positional == ["self", *names.split()]


def test_names_are_counted() -> None:
    class LineNet(mr.Model):
        pass

    assert [LineNet().name, LineNet().name, mr.Sequential().name] == [
        "line_net",
        "line_net_1",
        "sequential",
    ]


def test_a_model_knows_its_strategy(strategy: mr.MirroredStrategy) -> None:
    with strategy.scope():
        inside = mr.Sequential()
    assert inside.distribute_strategy is strategy
    assert mr.Sequential().distribute_strategy is mr.distribute.get_strategy()


@pytest.mark.behaviour("own-scope")
def test_a_strategy_scope_may_be_open_or_not(strategy: mr.MirroredStrategy) -> None:
    """`fit`, `evaluate` and `predict` enter the model's own scope wherever they are called."""
    with strategy.scope():
        model = mr.Sequential([mr.layers.Dense(1)])
        model.compile("sgd", "mse")
        model.fit([[1.0]], [1.0], verbose=0)
        inside = model.evaluate([[1.0]], [1.0], verbose=0)
        model.predict([[1.0]], verbose=0)
    assert model.evaluate([[1.0]], [1.0], verbose=0) == inside
    assert not mr.distribute.has_strategy()


@pytest.mark.parametrize("method", ["fit", "evaluate", "predict"])
def test_another_strategy_is_in_force(method: str, strategy: mr.MirroredStrategy) -> None:
    with strategy.scope():
        model = mr.Sequential([mr.layers.Dense(1)])
        model.compile("sgd", "mse")
    data = ([[1.0]],) if method == "predict" else ([[1.0]], [1.0])
    with (
        mr.MirroredStrategy(["CPU:0"]).scope(),
        pytest.raises(RuntimeError, match="Mixing different"),
    ):
        getattr(model, method)(*data, verbose=0)
    assert not model.built
    getattr(model, method)(*data, verbose=0)


def test_what_compile_keeps_is_read_and_set_as_in_keras() -> None:
    runs: list[int] = []

    class Count(mr.layers.Layer):
        def call(self, inputs: mr.Tensor) -> mr.Tensor:
            runs.append(1)
            return inputs

    model = mr.Sequential([mr.layers.Dense(1, input_shape=(1,)), Count()])
    assert (model.compiled, model.run_eagerly, model.steps_per_execution) == (False, False, "auto")
    with pytest.raises(ValueError, match="You must call `compile"):
        model.steps_per_execution = 1
    model.compile("sgd", "mse", steps_per_execution=2)
    assert (model.compiled, model.run_eagerly, model.steps_per_execution) == (True, False, 2)
    with pytest.raises(ValueError, match="Received: steps_per_execution=0"):
        model.steps_per_execution = 0
    model.steps_per_execution = 3
    batches: list[int] = []

    class Batches(mr.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: object = None) -> None:
            batches.append(batch)

    data = ([[float(i)] for i in range(6)], [0.0] * 6)
    model.fit(*data, batch_size=1, verbose=0, callbacks=Batches())
    assert batches == [2, 5]
    runs.clear()
    model.fit(*data, batch_size=1, verbose=0)
    assert runs == []
    model.run_eagerly = True
    model.fit(*data, batch_size=1, verbose=0)
    assert len(runs) == 6


def test_an_optimizer_is_set_in_place_of_another() -> None:
    model = mr.Sequential([mr.layers.Input((2,)), mr.layers.Dense(1)])
    model.optimizer = None
    model.compile("sgd", "mse")
    x, y = np.ones((4, 2)), np.zeros((4, 1))
    model.fit(x, y, verbose=0)
    model.optimizer = mr.optim.SGD(0.0)
    before = model.get_weights()
    model.fit(x, y, verbose=0)
    assert all((old == new).all() for old, new in zip(before, model.get_weights(), strict=True))
    model.optimizer = "adam"
    assert isinstance(model.optimizer, mr.optim.Adam)


def test_eager_steps_before_compile() -> None:
    model = mr.Sequential([mr.layers.Dense(1)])
    model.run_eagerly = True
    assert model.run_eagerly
    model.compile("sgd", "mse")
    assert not model.run_eagerly


class Sum(mr.Model):
    """Takes arguments by position alone, and by name alone."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = mr.layers.Dense(3, kernel_initializer="ones")

    def call(self, x: mr.Tensor, y: mr.Tensor, /, *, factor: mr.Tensor) -> mr.Tensor:
        return self.dense(x) * factor + y


def test_a_call_builds_layers_whatever_the_kinds_of_its_arguments() -> None:
    ones = mr.ones((2, 3))
    assert (Sum()(ones, ones, factor=ones) == 4).numpy().all()
