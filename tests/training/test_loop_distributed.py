"""`fit`, `evaluate` and `predict` on datasets that a strategy distributes already.

They cut global batches themselves, so that the result is that of the dataset given as it is.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from case_table import cases

import mirrored as mr

X = np.random.default_rng(0).normal(size=(21, 3)).astype("float32")
Y = X.sum(axis=1, keepdims=True)


def model_of(strategy: mr.MirroredStrategy) -> mr.Model:
    with strategy.scope():
        model = mr.Sequential([mr.layers.Input((3,)), mr.layers.Dense(1)])
        model.compile(mr.optim.SGD(0.1, momentum=0.9), "mse", metrics=["mse"])
    model.set_weights([np.full((3, 1), 0.5), np.zeros(1)])
    return model


def trained(model: mr.Model, data: Any) -> list[np.ndarray]:
    history = model.fit(data, epochs=2, verbose=0, validation_data=data)
    evaluated = model.evaluate(data, verbose=0)
    return [*model.get_weights(), history.history["val_loss"], evaluated, model.predict(data)]


def batches_of_replicas(context: mr.distribute.InputContext) -> Any:
    size = context.get_per_replica_batch_size(6)
    return mr.data.Dataset.from_tensor_slices((X, Y)).batch(size)


@cases(
    "distribute",
    [
        lambda s: s.experimental_distribute_dataset(
            mr.data.Dataset.from_tensor_slices((X, Y)).batch(6)
        ),
        lambda s: s.experimental_distribute_dataset(
            [(X[i : i + 6], Y[i : i + 6]) for i in range(0, 21, 6)]
        ),
        lambda s: s.distribute_datasets_from_function(batches_of_replicas),
    ],
    ids=["dataset", "list of batches", "from function"],
)
def test_the_result_is_that_of_the_global_batches(
    simulate: Callable[..., Any], distribute: Callable[[mr.MirroredStrategy], Any]
) -> None:
    simulate(3)
    strategy = mr.MirroredStrategy()
    plain = mr.data.Dataset.from_tensor_slices((X, Y)).batch(6)
    expected = trained(model_of(strategy), plain)
    for a, b in zip(trained(model_of(strategy), distribute(strategy)), expected, strict=True):
        np.testing.assert_array_equal(a, b)
