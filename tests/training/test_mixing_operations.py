"""Which operations of a model let one example influence the result of another."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr

ops = mr.keras.ops
X = np.random.default_rng(0).random((6, 3))


class Function(mr.layers.Layer):
    """Computes a function of its inputs."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__(name="function")
        self.function = function

    def call(self, inputs: Any) -> Any:
        return self.function(inputs)


def model_of(*layers: mr.layers.Layer) -> mr.Model:
    return mr.Sequential([mr.layers.Input((3,)), mr.layers.Dense(3), *layers])


MIXING: dict[str, tuple[Callable[[], mr.layers.Layer], list[str]]] = {
    "Softmax": (lambda: mr.layers.Softmax(axis=0, name="function"), ["Softmax"]),
    "softmax": (lambda: Function(lambda x: mr.keras.activations.softmax(x, axis=0)), ["Softmax"]),
    "mean": (lambda: Function(lambda x: x - ops.mean(x, axis=0)), ["Mean"]),
    "cumsum": (lambda: Function(lambda x: ops.cumsum(x, axis=0)), ["Cumsum"]),
    "sort": (lambda: Function(lambda x: ops.sort(x, axis=0)), ["GatherV2", "TopKV2"]),
    "flip": (lambda: Function(lambda x: ops.flip(x, axis=0)), ["StridedSlice"]),
    "max": (lambda: Function(lambda x: x / ops.max(x)), ["Max"]),
    "roll": (lambda: Function(lambda x: ops.roll(x, 1, axis=0)), ["StridedSlice"]),
    "two batches": (lambda: Function(lambda x: mr.concat([x, -x], axis=0)), ["ConcatV2"]),
    "features first": (lambda: Function(mr.transpose), ["Transpose"]),
    "drawn for two batches": (
        lambda: Function(lambda x: x + mr.random.normal((2 * mr.shape(x)[0], 3))[: x.shape[0]]),
        ["RandomStandardNormal"],
    ),
    "drawn by a seed": (
        lambda: Function(lambda x: x + 2 * mr.random.stateless_normal(mr.shape(x), (1, 2))),
        ["StatelessRandomNormalV2"],
    ),
    "a number": (lambda: Function(lambda x: ops.sum(x)), ["Sum"]),
    "statistics of shards": (
        lambda: mr.layers.BatchNormalization(synchronized=False, name="function"),
        ["Mean", "Rsqrt"],
    ),
}
APART: dict[str, Callable[[], mr.layers.Layer]] = {
    "synchronized": lambda: mr.layers.BatchNormalization(synchronized=True),
    "dropout": lambda: mr.layers.Dropout(0.5),
    "noise": lambda: Function(lambda x: x + 2 * mr.keras.random.normal(mr.shape(x), seed=1)),
    "noise of features": lambda: Function(lambda x: x + mr.keras.random.normal((1, 3), seed=1)),
    "categories": lambda: Function(lambda x: mr.random.categorical(x, 2)),
    "16 bits": lambda: mr.layers.Dense(2, "sigmoid", dtype="mixed_bfloat16"),
    "rows by a function": lambda: Function(lambda x: mr.vectorized_map(mr.reduce_max, x)),
    "along features": lambda: Function(lambda x: ops.softmax(x) + ops.cumsum(x, axis=1)),
    "all-reduced": lambda: Function(all_reduced),
    "attention": lambda: Function(lambda x: mr.layers.Attention()([x[:, None], x[:, None]])[:, 0]),
}


def all_reduced(x: Any) -> Any:
    context = mr.distribute.get_replica_context()
    if context is None:
        return x
    return x / context.all_reduce("sum", mr.reduce_sum(x, axis=0))


@pytest.mark.behaviour("mixing")
@cases(("layer", "names"), MIXING.values(), ids=MIXING)
def test_what_mixes_is_listed(layer: Any, names: list[str]) -> None:
    found = mr.debugging.mixing_operations(model_of(layer()), X)
    assert [(each.layer, each.operation) for each in found] == [("function", n) for n in names]
    of_draws = "first axis" if "Random" in names[0] else "`all_gather`"
    advice = "synchronized=True" if "Rsqrt" in names else of_draws
    assert all(advice in each.advice for each in found)


@pytest.mark.behaviour("mixing")
@cases("layer", APART.values(), ids=APART)
def test_what_does_not_mix_is_not(layer: Any) -> None:
    assert mr.debugging.mixing_operations(model_of(layer()), X) == []


@pytest.mark.behaviour("mixing")
def test_training_logs_it_once(caplog: pytest.LogCaptureFixture) -> None:
    mr.config.experimental.set_simulated_gpus(2)
    for count in (1, 2):
        with mr.MirroredStrategy([f"GPU:{i}" for i in range(count)]).scope():
            model = model_of(mr.layers.Softmax(axis=0, name="across"))
            model.compile("sgd", "mse")
        for _ in range(2):
            model.fit(X, X, verbose=0)
            model.evaluate(X, X, verbose=0)
            model.predict(X, verbose=0)
        warned = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
        assert len(warned) == count - 1
    assert "depends on the number of replicas: Softmax in the layer 'across'" in warned[0]


@pytest.mark.behaviour("mixing")
@pytest.mark.parametrize("reduced", [False, True])
def test_a_loss_that_looks_at_the_whole_shard(
    caplog: pytest.LogCaptureFixture, reduced: bool
) -> None:
    """With a value for each example it is logged, as one number it is refused."""

    def spread(y_true: Any, y_pred: Any) -> Any:
        values = mr.square(y_pred - mr.reduce_mean(y_pred, axis=0, keepdims=True))
        return mr.reduce_mean(values) if reduced else values

    mr.config.experimental.set_simulated_gpus(2)
    with mr.MirroredStrategy().scope():
        model = model_of()
        model.compile("sgd", spread)
    if reduced:
        with pytest.raises(
            ValueError, match="Received: a value computed by Mean in the loss 'spread'"
        ):
            model.fit(X, X, verbose=0)
        assert int(model.optimizer.iterations) == 0
        return
    model.fit(X, X, verbose=0)
    (warned,) = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert "Mean in the loss 'spread' combines the examples" in warned


@pytest.mark.behaviour("mixing")
def test_what_is_no_model_or_no_input_of_it() -> None:
    model = mr.Sequential([mr.layers.Dense(3)])
    with pytest.raises(ValueError, match=r"takes a built model\. Received: <Sequential"):
        mr.debugging.mixing_operations(model, X)
    for given in (X[:, :2], [X, X], {"a": X}):
        with pytest.raises(ValueError, match=r"expected|expects|structure|input"):
            mr.debugging.mixing_operations(model_of(), given)

    class Sized(mr.layers.Layer):
        def call(self, inputs: Any) -> Any:
            return mr.reshape(inputs, (6, 3))

        def compute_output_shape(self, input_shape: Any) -> Any:
            return input_shape

    text = re.escape("could not be recorded for another batch size. Received: Invalid")
    with pytest.raises(ValueError, match=text):
        mr.debugging.mixing_operations(model_of(Sized()), X)
