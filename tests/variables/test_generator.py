"""Generators of random numbers: TensorFlow's numbers, in functions, on replicas, in checkpoints."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_table import cases
from tensorflow_random import check_drawn

import mirrored as mr
from mirrored.errors import InvalidArgumentError

Generator = mr.random.Generator

# What TensorFlow 2.21 gives on a CPU, one call after the other, and the state at the end.
TENSORFLOW: list[tuple[Callable[[Any], Any], Any]] = [
    (lambda g: g.normal([3]), [0.9356608986854553, 1.0854305028915405, -0.937883734703064]),
    (
        lambda g: g.uniform([2, 2], -1.0, 3.0),
        [[0.2429366111755371, 0.4727292060852051], [2.847318172454834, 0.2538313865661621]],
    ),
    (
        lambda g: g.truncated_normal([3], 1.0, 2.0, "float64"),
        [0.21660434473493806, 1.3331675190740375, 2.4046199916324604],
    ),
    (lambda g: g.uniform([4], -5, 1000, "int32"), [907, 320, 652, 131]),
    (lambda g: g.uniform_full_int([2], "int64"), [-7460811823839448953, 8989441819010609658]),
    (lambda g: g.uniform([2], None, None, "int32"), [-1425411014, -1865383020]),
    (lambda g: g.make_seeds(2), [[-1723169384922343483, 2721854723098062781], [0, 0]]),
    (lambda g: g.normal([]), -0.08083531260490417),
    (lambda g: g.skip(5), [6610, 0, 0]),
    (lambda g: g.split(2)[1].uniform([2]), [0.7833061218261719, 0.6433387994766235]),
    (lambda g: g.key, 0),
    (lambda g: g.state, [8402, 0, 0]),
]


def generator() -> mr.random.Generator:
    return Generator.from_seed(1234)


def state_of(each: mr.random.Generator) -> list[int]:
    return each.state.numpy().tolist()


def test_the_numbers_are_those_of_tensorflow() -> None:
    drawing = generator()
    for draw, expected in TENSORFLOW:
        check_drawn(draw(drawing), expected)


def test_recorded_functions_move_the_state_on(simulate: Any) -> None:
    simulate(1)
    recorded, drawing = generator(), generator()
    step = mr.function(lambda: [recorded.normal([3]), recorded.uniform([2], 0, 9, "int64")])
    for _ in range(3):
        first, second = step()
        np.testing.assert_array_equal(first, drawing.normal([3]))
        np.testing.assert_array_equal(second, drawing.uniform([2], 0, 9, "int64"))
    assert state_of(recorded) == state_of(drawing)


def batches(strategy: mr.distribute.Strategy) -> Any:
    data = mr.data.Dataset.from_tensor_slices(np.zeros((10, 2), np.float32)).batch(5)
    return strategy.experimental_distribute_dataset(data)


@pytest.mark.behaviour("random-in-replicas")
@pytest.mark.parametrize("recorded", [False, True])
def test_any_number_of_replicas_draws_what_one_does(simulate: Any, recorded: bool) -> None:
    simulate(3)

    def drawn(devices: list[str]) -> list[Any]:
        mr.random.set_seed(3)
        strategy = mr.MirroredStrategy(devices)
        with strategy.scope():
            own = generator()

        def replica(x: mr.Tensor) -> list[mr.Tensor]:
            rows = x.shape[0]
            return [
                own.normal([rows, 3]),
                own.truncated_normal([rows], dtype="float64"),
                mr.random.uniform([rows, 2]),
                mr.random.gamma([rows], 2.0),
                mr.random.gamma([6], [0.5] * rows),
                mr.random.poisson([rows], [3.0, 4.0]),
                mr.random.categorical(mr.zeros([rows, 4]), 3),
                mr.random.truncated_normal([rows], seed=4),
                own.normal([7]),
                mr.random.normal([7]),
                mr.random.shuffle([1, 2, 3, 4]),
            ]

        step = lambda x: strategy.run(replica, (x,))  # noqa: E731
        run = mr.function(step) if recorded else step
        results = []
        for batch in batches(strategy):
            parts = [strategy.experimental_local_results(each) for each in run(batch)]
            for number, each in enumerate(parts):
                if number < 8:  # Led by the batch, or of parameters that are.
                    axis = 1 if number == 4 else 0
                    results.append(np.concatenate([np.asarray(part) for part in each], axis))
                else:
                    for part in each:
                        np.testing.assert_array_equal(part, each[0])
                    results.append(np.asarray(each[0]))
        results.append(own.state.numpy())
        return results

    one = drawn(["GPU:0"])
    for got, expected in zip(drawn(["GPU:0", "GPU:1", "GPU:2"]), one, strict=True):
        np.testing.assert_array_equal(got, expected)
    assert not np.array_equal(one[0], one[11])


def test_replicas_need_a_generator_of_their_strategy(simulate: Any) -> None:
    simulate(2)
    outside, strategy = generator(), mr.MirroredStrategy()
    with pytest.raises(ValueError, match=r"Create it in `with strategy\.scope\(\):`"):
        strategy.run(lambda: outside.normal([2]))
    assert state_of(outside) == [1234, 0, 0]
    with strategy.scope():
        inside = Generator(copy_from=outside)
    strategy.run(lambda: inside.normal([2]))
    inside.normal([2])  # Outside replicas it moves all copies on.
    strategy.run(lambda: inside.normal([2]))
    assert state_of(inside) == [1234 + 6 * 256, 0, 0]


class Noise(mr.layers.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.generator = generator()

    def call(self, x: mr.Tensor) -> mr.Tensor:
        return x + self.generator.normal(x.shape)


def test_checkpoints_and_copies_go_on_from_the_state(tmp_path: Path) -> None:
    layer, held, module = Noise(), generator(), mr.Module()
    module.generator = generator()
    kept = {"layer": layer, "own": held, "module": module}
    layer(mr.zeros([1, 2]))
    for each in (held, module.generator):
        each.skip(3)
    saved = mr.train.Checkpoint(**kept).save(str(tmp_path / "saved"))
    copies = [copy.deepcopy(held), pickle.loads(pickle.dumps(held))]
    expected = [layer(mr.zeros([1, 2])), held.normal([2]), module.generator.normal([2])]
    for each in (layer.generator, held, module.generator):
        each.reset_from_seed(9)
    mr.train.Checkpoint(**kept).restore(saved).assert_consumed()
    got = [layer(mr.zeros([1, 2])), held.normal([2]), module.generator.normal([2])]
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    for each in copies:
        np.testing.assert_array_equal(each.normal([2]), expected[1])


def test_the_global_generator() -> None:
    assert mr.random.get_global_generator() is mr.random.get_global_generator()
    mine = generator()
    mr.random.set_global_generator(mine)
    assert mr.random.get_global_generator() is mine
    mr.config.experimental.reset_devices()
    assert mr.random.get_global_generator() is not mine
    first, second = (Generator.from_non_deterministic_state() for _ in range(2))
    assert state_of(first) != state_of(second)


@cases(
    ("made", "state"),
    [
        (lambda: Generator.from_seed(2**64 + 5), [5, 1, 0]),
        (lambda: Generator.from_seed(-5), [-5, -1, -1]),
        (lambda: Generator.from_seed([7, 8]), [0, 7, 8]),
        (lambda: Generator.from_seed(mr.constant([1, 2, 3, 4])), [1, 2, 3]),
        (lambda: Generator.from_state([1, 2, 2**64 - 1], "philox"), [1, 2, -1]),
        (lambda: Generator.from_key_counter(1, [2, 3], "auto_select"), [2, 3, 1]),
        (lambda: Generator(state=mr.Variable([1, 2, 3], dtype="int64"), alg=1), [1, 2, 3]),
        (lambda: Generator(copy_from=generator()), [1234, 0, 0]),
    ],
)
def test_states(made: Callable[[], mr.random.Generator], state: list[int]) -> None:
    assert state_of(made()) == state


def test_resets() -> None:
    each = generator()
    each.reset([1, 2, 3])
    assert state_of(each) == [1, 2, 3]
    assert int(each.key) == 3
    each.reset_from_key_counter(5, [6, 7])
    assert state_of(each) == [6, 7, 5]
    each.reset_from_seed(1234)
    check_drawn(each.skip(2), [1234, 0, 0])
    assert each.algorithm == Generator.from_seed(1, " Philox").algorithm == 1
    assert Generator.from_seed(1, "auto-select").algorithm == 3


@cases(
    ("call", "error", "text"),
    [
        (lambda g: Generator(), AssertionError, "either `copy_from`"),
        (lambda g: Generator(copy_from=g, alg=1), AssertionError, "either `copy_from`"),
        (lambda g: Generator.from_state([1, 2], "philox"), ValueError, "incompatible"),
        (lambda g: Generator.from_key_counter([1], [2, 3], 1), ValueError, "incompatible"),
        (lambda g: Generator.from_seed(1, "foo"), ValueError, "Unsupported algorithm"),
        (lambda g: Generator.from_seed(1, 1.5), TypeError, "its number or its name"),
        (lambda g: Generator.from_seed(1, "ThreeFry"), InvalidArgumentError, "by Philox"),
        (lambda g: g.reset([1]), ValueError, "incompatible"),
        (lambda g: g.skip(2.5), TypeError, "`delta` must be an integer"),
        (lambda g: g.normal([-1]), InvalidArgumentError, ">= 0"),
        (lambda g: g.normal([1], dtype="int32"), TypeError, "dtype=int32"),
        (lambda g: g.uniform([1], 3, 3, "int32"), InvalidArgumentError, "3 >= 3"),
        (lambda g: g.uniform([1], 3, None, "int32"), ValueError, "both `None`"),
        (lambda g: g.uniform([1], dtype="bool"), TypeError, "dtype=bool"),
        (lambda g: g.uniform_full_int([1], "float32"), InvalidArgumentError, "of float"),
    ],
)
def test_what_is_refused_moves_nothing_on(
    call: Callable[[Any], Any], error: type[Exception], text: str
) -> None:
    each = generator()
    with pytest.raises(error, match=text):
        call(each)
    assert state_of(each) == [1234, 0, 0]
