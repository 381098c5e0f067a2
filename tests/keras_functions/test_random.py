"""`keras.random`: Keras 3.15's numbers for a seed, on any number of replicas."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr

R = mr.keras.random


def taken(draw: Callable[[Any], Any]) -> list[Any]:
    """Return what three draws of one stream give."""
    seeds = R.SeedGenerator(5)
    return [draw(seeds).numpy().tolist() for _ in range(3)]


# As Keras 3.15.1 on TensorFlow 2.21 has them.
NUMBERS: dict[str, tuple[Callable[[], Any], list[Any]]] = {
    "normal": (
        lambda: R.normal((2, 2), 2.0, 0.5, seed=1),
        [[2.0633252, 1.7534918], [2.3155954, 1.6055768]],
    ),
    "a seed below 0": (lambda: R.normal((2,), seed=-1), [-0.7411761, -1.5356339]),
    "truncated normal": (
        lambda: R.truncated_normal((4,), 1.0, 0.5, seed=11),
        [1.2787985, 1.0340353, 0.9579607, 1.1559944],
    ),
    "uniform": (
        lambda: R.uniform((4,), -2.0, 2.0, seed=1337),
        [0.2395339, -0.3817191, 1.767055, 1.3826218],
    ),
    "randint": (lambda: R.randint((6,), -5, 5, dtype="int64", seed=1), [-2, 1, 0, 1, -5, 4]),
    "randint of uint8": (
        lambda: R.randint((6,), 0, 10, dtype="uint8", seed=1),
        [3, 6, 5, 6, 0, 9],
    ),
    "categorical": (
        lambda: R.categorical([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]], 5, seed=1),
        [[0, 2, 0, 2, 2], [0, 2, 0, 1, 0]],
    ),
    "dropout of all": (lambda: R.dropout(mr.ones((2,)), 1.0), [0.0, 0.0]),
    "dropout of none": (lambda: R.dropout([1.0, 2.0], 0), [1.0, 2.0]),
    "a stream of uniform": (
        lambda: mr.constant(taken(lambda s: R.uniform((2,), seed=s))),
        [[0.06185329, 0.8316691], [0.6156385, 0.95097268], [0.08748806, 0.94307947]],
    ),
    "a stream of integers": (
        lambda: mr.constant(taken(lambda s: R.randint((3,), 0, 100, seed=s))),
        [[83, 10, 57], [66, 49, 49], [43, 32, 27]],
    ),
    "a stream of masks": (
        lambda: mr.constant(taken(lambda s: R.dropout(mr.ones((6,)), 0.5, seed=s))),
        [[0, 2, 2, 0, 2, 0], [2, 2, 0, 2, 2, 0], [0, 2, 0, 2, 2, 0]],
    ),
    "seeds": (lambda: mr.constant(taken(lambda s: s.next())), [[5, 0], [5, 1], [5, 2]]),
    "seeds that mix": (
        lambda: mr.constant(taken(lambda s: s.next(ordered=False))),
        [[5, 0], [32322, 5387], [548987, 95987]],
    ),
}


@cases(("draw", "expected"), NUMBERS.values(), ids=NUMBERS)
def test_the_numbers_are_keras(draw: Callable[[], Any], expected: list[Any]) -> None:
    np.testing.assert_allclose(draw().numpy(), expected, rtol=1e-6)


@cases(
    ("call", "error", "text"),
    [
        (lambda: R.normal((2,), seed="a"), ValueError, "an instance of `SeedGenerator`"),
        (lambda: R.normal((2,), dtype="int32", seed=1), TypeError, "floats"),
        (lambda: R.uniform((2,), dtype="int32"), ValueError, "requires a floating point"),
        (lambda: R.randint((2,), 0, 2, dtype="float32"), ValueError, "requires an integer"),
        (lambda: R.randint((2,), 3, 3), mr.errors.InvalidArgumentError, "minval < maxval"),
        (lambda: R.categorical([0.0, 1.0], 5), ValueError, "2-D tensor"),
        (lambda: R.dropout(mr.ones((2,)), 1.5), ValueError, r"in the range \[0, 1\)"),
        (lambda: R.SeedGenerator(1.5), ValueError, "must be an integer"),
    ],
)
def test_errors(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_without_a_seed_the_global_stream_goes_on() -> None:
    def draws() -> list[Any]:
        mr.random.set_seed(3)
        ones = mr.ones((3, 4))
        drawn = [R.normal((3,)), R.uniform((3,)), R.randint((3,), 0, 99), R.dropout(ones, 0.5)]
        drawn += [R.truncated_normal((3,)), R.categorical([[0.0, 1.0]], 9), R.normal((3,))]
        return [each.numpy().tolist() for each in (*drawn, R.SeedGenerator().next())]

    first = draws()
    assert first == draws()
    assert first[0] != first[-2]


class Noisy(mr.keras.layers.Layer):
    """Adds noise, and counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.seeds = R.SeedGenerator(5)
        self.count = self.add_weight(shape=(), initializer="zeros", trainable=False)

    def call(self, inputs: mr.Tensor) -> mr.Tensor:
        self.count.assign_add(1.0)
        return inputs + R.normal(mr.shape(inputs), seed=self.seeds)


class Net(mr.keras.Model):
    """Has such a layer, and is built by its first call."""

    def __init__(self) -> None:
        super().__init__()
        self.noisy = Noisy()
        self.dense = mr.keras.layers.Dense(1)

    def call(self, inputs: mr.Tensor) -> mr.Tensor:
        return self.dense(self.noisy(inputs))


def test_building_moves_no_state() -> None:
    """Keras 3.15.1 has these counts."""
    model = Net()
    model.build((None, 3))
    assert (float(model.noisy.count), model.noisy.seeds.state.numpy().tolist()) == (0.0, [5, 0])
    model.compile("sgd", "mse")
    x, y = np.ones((4, 3)), np.ones((4, 1))
    model.fit(x, y, batch_size=2, verbose=0)
    model.fit(x, y, batch_size=3, verbose=0)
    model.predict(x, verbose=0)
    assert (float(model.noisy.count), model.noisy.seeds.state.numpy().tolist()) == (5.0, [5, 5])
    assert [weight.shape for weight in model.weights] == [(), (3, 1), (1,)]


def test_a_stream_travels_and_is_in_checkpoints(tmp_path: Path) -> None:
    model = Net()
    model(mr.ones((1, 3)))
    kept = mr.train.Checkpoint(model=model).save(str(tmp_path / "ckpt"))
    twin = copy.deepcopy(model)
    expected = model(mr.ones((1, 3))).numpy()
    assert (twin(mr.ones((1, 3))).numpy() == expected).all()
    mr.train.Checkpoint(model=model).restore(kept)
    assert (model(mr.ones((1, 3))).numpy() == expected).all()


class Scaled(mr.keras.layers.Layer):
    """Scales by what two streams give."""

    def __init__(self) -> None:
        super().__init__()
        self.seeds, self.generator = R.SeedGenerator(5), mr.random.Generator.from_seed(1)

    def call(self, inputs: mr.Tensor) -> mr.Tensor:
        shape = mr.shape(inputs)
        return inputs * R.normal(shape, seed=self.seeds) * self.generator.normal(shape)


def test_replicas_without_examples_move_on_too() -> None:
    """The last batch has fewer examples than there are replicas, and the next epoch goes on."""
    found = []
    for replicas in (1, 7):
        mr.config.experimental.reset_devices()
        mr.config.experimental.set_simulated_gpus(replicas)
        with mr.MirroredStrategy().scope():
            one = mr.keras.layers.Dense(1, kernel_initializer="ones")
            model = mr.Sequential([mr.layers.Input((3,)), Scaled(), one])
            model.compile(mr.keras.optimizers.SGD(0.1), "mse")
        x = np.linspace(-1, 1, 33).reshape(11, 3)
        model.fit(x, x[:, :1], batch_size=8, epochs=3, shuffle=False, verbose=0)
        found.append(one.kernel.numpy())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5)


def test_replicas_need_a_stream_of_their_scope() -> None:
    mr.config.experimental.set_simulated_gpus(2)
    seeds, strategy = R.SeedGenerator(1), mr.MirroredStrategy()
    with pytest.raises(ValueError, match=r"Create it in `with strategy\.scope"):
        strategy.run(lambda: R.normal((2,), seed=seeds))
