"""N replicas equal one replica: the promise that everything else is built around.

Sizes, options and seeds are drawn at random.
"""

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from parts import one_of, others_of
from replica_cases import IMAGE, Case, begin, check_alike, convolved, train

import mirrored as mr

SHARDS = ((2, 7, 7), (8, 2, 1), (3, 16, 8), (8, 21, 8), (2, 1, 32))
STEPS = 6  # An epoch at most: 12 updates, for float32 allows no more than 20.


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw a case."""
    batch_size = draw(st.integers(1, 24), label="batch_size")
    return Case(
        replicas=draw(st.integers(1, 8), label="replicas"),
        examples=draw(st.integers(1, STEPS * batch_size), label="examples"),
        batch_size=batch_size,
        optimizer=draw(st.sampled_from(["sgd", "momentum", "nesterov", "decay", "adam"])),
        clipping=draw(st.sampled_from([None, "clipnorm", "clipvalue", "global_clipnorm"])),
        loss=draw(st.sampled_from(["mse", "sparse", "categorical", "binary", "function"])),
        weighted=draw(st.booleans()),
        regularized=draw(st.booleans()),
        dropout=draw(st.sampled_from([0.0, 0.3])),
        activation=draw(st.sampled_from(["tanh", "relu", "sigmoid"])),
        validate=draw(st.booleans()),
        shuffle=draw(st.booleans()),
        seed=draw(st.integers(0, 2**20)),
    )


@functools.cache
def train_on_one(case: Case, floatx: str) -> dict[str, Any]:
    """Return what one replica leaves, computed once for all numbers of them."""
    return train(case, 1, floatx)


def check_parity(case: Case, floatx: str, tolerance: float) -> None:
    one, many = train_on_one(replace(case, replicas=1), floatx), train(case, case.replicas, floatx)
    check_alike(one, many, tolerance)


def tries(count: int) -> Any:
    return settings(max_examples=count, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.behaviour("replica-count")
@pytest.mark.parametrize(
    "is_mine",
    [one_of(8), pytest.param(others_of(8), marks=pytest.mark.slow)],
    ids=["an eighth", "the others"],
)
@tries(20)
@given(case=cases())
def test_replicas_equal_one_in_float64(case: Case, is_mine: Callable[[Case], bool]) -> None:
    if is_mine(case):
        check_parity(case, "float64", 1e-12)


@pytest.mark.behaviour("replica-count")
@pytest.mark.parametrize(
    "is_mine",
    [one_of(6), pytest.param(others_of(6), marks=pytest.mark.slow)],
    ids=["a sixth", "the others"],
)
@tries(8)  # Where float64 agrees to 1e-12, less is to be found.
@given(case=cases())
def test_replicas_equal_one_in_float32(case: Case, is_mine: Callable[[Case], bool]) -> None:
    if is_mine(case):
        check_parity(case, "float32", 1e-5)


@pytest.mark.behaviour("uneven-shards", "replica-count")
@pytest.mark.parametrize(
    ("replicas", "examples", "batch_size", "images"),
    [
        *((3, 21, 8, False), (3, 1, 32, False), (3, 9, 7, True)),
        *(
            pytest.param(*case, images, marks=pytest.mark.slow)
            for images in (False, True)
            for case in SHARDS
        ),
    ],
)
def test_every_kind_of_shard(replicas: int, examples: int, batch_size: int, images: bool) -> None:
    """Uneven, tiny and empty shards, each for certain, with everything switched on."""
    case = Case(
        replicas=replicas,
        examples=examples,
        batch_size=batch_size,
        optimizer="momentum",
        clipping="global_clipnorm",
        loss="sparse",
        weighted=True,
        regularized=True,
        dropout=0.3,
        activation="tanh",
        validate=True,
        shuffle=True,
        seed=7,
        images=images,
    )
    check_parity(case, "float64", 1e-12)


def loop_over_images(replicas: int, batch_size: int, *, eager: bool = False) -> dict[str, Any]:
    """Return what a custom loop over seven images leaves."""
    begin(replicas, "float64", seed=5)
    strategy = mr.MirroredStrategy()
    draws = np.random.default_rng(6)
    x, y = draws.normal(size=(7, *IMAGE)), draws.normal(size=(7, 2))
    with strategy.scope():
        inputs = mr.layers.Input(IMAGE)
        model = mr.Model(inputs, mr.layers.Dense(2)(convolved(inputs, "tanh")))
        optimizer = mr.optim.SGD(0.05, momentum=0.9)

    def step(x: Any, y: Any) -> mr.Tensor:
        with mr.GradientTape() as tape:
            errors = mr.reduce_sum((model(x, training=True) - y) ** 2, axis=1)
            loss = mr.nn.compute_average_loss(errors, global_batch_size=batch_size)
        optimizer.apply(tape.gradient(loss, model.trainable_weights), model.trainable_weights)
        return loss

    def train_step(x: Any, y: Any) -> mr.Tensor:
        return strategy.reduce("SUM", strategy.run(step, args=(x, y)), axis=None)

    data = mr.data.Dataset.from_tensor_slices((x, y)).batch(batch_size).repeat(2)
    run = train_step if eager else mr.function(train_step)
    losses = [float(run(*b)) for b in strategy.experimental_distribute_dataset(data)]
    values = {variable.path: variable.numpy() for variable in model.variables}
    return {"losses": np.array(losses), "outputs": model(x).numpy(), **values}


@pytest.mark.behaviour("uneven-shards", "replica-count")
@pytest.mark.parametrize(
    ("batch_size", "eager"),
    [
        (5, False),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in ((2, False), (5, True))),
    ],
    ids=["uneven", "empty", "eager"],
)
def test_a_custom_loop_over_images(batch_size: int, eager: bool) -> None:
    one, three = (loop_over_images(count, batch_size, eager=eager) for count in (1, 3))
    check_alike(one, three, 1e-12)
    again = loop_over_images(3, batch_size)  # The same bits: a second time, recorded and eager.
    for name, values in three.items():
        np.testing.assert_array_equal(again[name], values, err_msg=name)


def test_the_check_sees_a_difference() -> None:
    """The comparison is no formality: another seed does not pass it."""
    case = Case(2, 9, 4, "sgd", None, "mse", False, False, 0.0, "tanh", False, True, 3)
    one = train(case, 1, "float64")
    other = train(
        Case(2, 9, 4, "sgd", None, "mse", False, False, 0.0, "tanh", False, True, 4), 2, "float64"
    )
    assert any(np.abs(one[name] - other[name]).max() > 1e-6 for name in one)
