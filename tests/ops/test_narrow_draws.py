"""Random floats of 16 bits: TensorFlow's to the bit where it says which, else evenly below 1."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.errors import InvalidArgumentError


def of_generator(generator: Any, dtype: Any) -> Any:
    parts = [
        generator.uniform([3], dtype=dtype),
        generator.normal([3], dtype=dtype),
        generator.truncated_normal([2], 1.0, 2.0, dtype=dtype),
        generator.uniform([2], 2, 3, dtype=dtype),
    ]
    return mr.concat(parts, 0)


# What TensorFlow 2.21 gives on a CPU, in float16 and in bfloat16; None: it has no such draw.
TENSORFLOW: dict[str, tuple[Callable[[Any, Any], Any], Any, Any]] = {
    "uniform": (
        lambda r, d: r.stateless_uniform([5], [1, 2], dtype=d),
        [0.54296875, 0.2353515625, 0.060546875, 0.8935546875, 0.1435546875],
        [0.34375, 0.8828125, 0.484375, 0.1484375, 0.1484375],
    ),
    "uniform in a range": (
        lambda r, d: r.stateless_uniform([2, 2], [3, 4], -3.0, 7.0, dtype=d),
        [[-2.892578125, 5.8359375], [3.58203125, -0.978515625]],
        [[-2.140625, -2.296875], [-0.34375, 3.1875]],
    ),
    "normal": (
        lambda r, d: r.stateless_normal([5], [1, 2], dtype=d),
        [0.5439453125, 0.2073974609375, 0.07354736328125, 0.04644775390625, -1.3017578125],
        [0.54296875, 0.20703125, 0.07373046875, 0.04638671875, -1.3046875],
    ),
    "normal, scaled": (
        lambda r, d: r.stateless_normal([3], [3, 4], 3.0, 7.0, dtype=d),
        [1.7822265625, 14.703125, 5.4375],
        [1.78125, 14.6875, 5.4375],
    ),
    "truncated": (
        lambda r, d: r.stateless_truncated_normal([5], [1, 2], dtype=d),
        [0.5439453125, 0.2073974609375, 0.07354736328125, 0.04644775390625, 0.168212890625],
        [0.54296875, 0.20703125, 0.07373046875, 0.04638671875, 0.16796875],
    ),
    "a generator": (
        lambda r, d: of_generator(r.Generator.from_seed(5), d),
        [
            0.9951171875,
            0.548828125,
            0.900390625,
            -1.6572265625,
            0.98388671875,
            1.1904296875,
            -0.0712890625,
            0.00390625,
            2.572265625,
            2.47265625,
        ],
        [
            0.9609375,
            0.390625,
            0.203125,
            -1.65625,
            0.984375,
            1.1875,
            -0.0703125,
            0.00390625,
            2.578125,
            2.78125,
        ],
    ),
    "gamma": (
        lambda r, d: r.stateless_gamma(
            [2, 3], [1, 2], mr.constant([0.5, 1.0, 20.0], d), 3.0, dtype=d
        ),
        [[0.0223236083984375, 0.74951171875, 7.1875], [0.20947265625, 0.63134765625, 6.35546875]],
        None,
    ),
    "gamma of nothing": (
        lambda r, d: r.stateless_gamma([2], [1, 2], mr.constant(0.0, d), dtype=d),
        [6.103515625e-05, 6.103515625e-05],
        None,
    ),
    "poisson": (
        lambda r, d: r.stateless_poisson([6], [1, 2], mr.constant(3.0, d), dtype=d),
        [5.0, 5.0, 4.0, 6.0, 3.0, 6.0],
        None,
    ),
    "dropout": (
        lambda r, d: mr.nn.experimental.stateless_dropout(mr.ones([8], d), 0.3, [1, 2]),
        [1.4287109375, 0.0, 0.0, 1.4287109375, 0.0, 1.4287109375, 0.0, 1.4287109375],
        [1.4296875, 1.4296875, 1.4296875, 0.0, 0.0, 1.4296875, 1.4296875, 1.4296875],
    ),
}
ROWS = [
    (draw, dtype, each)
    for draw, *expected in TENSORFLOW.values()
    for dtype, each in zip(("float16", "bfloat16"), expected, strict=True)
]


@cases(("draw", "dtype", "expected"), ROWS)
def test_numbers_that_follow_from_a_seed(
    draw: Callable[..., Any], dtype: str, expected: Any
) -> None:
    kind = getattr(mr, dtype)
    if expected is None:
        with pytest.raises(InvalidArgumentError, match="of bfloat16 is not in the list"):
            draw(mr.random, kind)
        return
    drawn = draw(mr.random, kind)
    assert (drawn.dtype.name, drawn.numpy().astype(float).tolist()) == (dtype, expected)
    if drawn.shape != (10,):  # A generator's state is a variable, of which there is one.
        recorded = mr.function(lambda: draw(mr.random, kind))
        np.testing.assert_array_equal(recorded().numpy(), drawn.numpy())


GLOBAL: dict[str, Callable[[Any, int], Any]] = {
    "uniform": lambda d, n: mr.random.uniform([n, 3], dtype=d),
    "normal": lambda d, n: mr.random.normal([n, 3], 2.0, 3.0, dtype=d),
    "truncated": lambda d, n: mr.random.truncated_normal([n, 3], dtype=d),
    "initializer": lambda d, n: mr.keras.initializers.RandomNormal(seed=3)([n, 3], d),
}


@cases("draw", GLOBAL.values(), ids=GLOBAL)
@cases("dtype", ["float16", "bfloat16"])
def test_others_are_float32_rounded(draw: Callable[[Any, int], Any], dtype: str) -> None:
    """But for even ones, which would reach 1."""
    results = []
    for kind in (getattr(mr, dtype), mr.float32):
        mr.random.set_seed(4)
        results.append(draw(kind, 2000).numpy().astype(float))
    ulp = 2.0**-10 if dtype == "float16" else 2.0**-7
    if draw is GLOBAL["uniform"]:
        steps = np.unique(results[0] / ulp)
        assert (steps == np.round(steps)).all()
        assert (steps.min(), steps.max()) == (0, 1 / ulp - 1)
        assert abs(results[0].mean() - (0.5 - ulp / 2)) < 0.01
    else:
        np.testing.assert_allclose(*results, rtol=2 * ulp, atol=2 * ulp)


@pytest.mark.parametrize("replicas", [1, 3])
def test_replicas_draw_what_one_would(replicas: int, simulate: Any) -> None:
    simulate(3)
    strategy = mr.MirroredStrategy([f"GPU:{i}" for i in range(replicas)])
    mr.random.set_seed(4)
    whole = mr.random.uniform([6], dtype=mr.float16).numpy()
    mr.random.set_seed(4)
    dataset = mr.data.Dataset.from_tensor_slices(np.zeros(6, np.float32)).batch(6)
    (batch,) = strategy.experimental_distribute_dataset(dataset)
    drawn = strategy.run(lambda x: mr.random.uniform([len(x)], dtype=mr.float16), (batch,))
    parts = strategy.experimental_local_results(drawn)
    np.testing.assert_array_equal(np.concatenate([each.numpy() for each in parts]), whole)


@pytest.mark.slow
def test_on_a_card(emulated_cuda: Callable[..., Any]) -> None:
    emulated_cuda()
    for draw, expected, _ in TENSORFLOW.values():
        result = draw(mr.random, mr.float16)
        np.testing.assert_allclose(result.numpy().astype(float), expected, rtol=2e-3, atol=1e-6)
