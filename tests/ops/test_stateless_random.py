"""Random numbers that follow from a seed: TensorFlow's, wherever they are drawn."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases
from tensorflow_random import check_drawn

import mirrored as mr
from mirrored.errors import InvalidArgumentError

# What TensorFlow 2.21 gives on a CPU.
TENSORFLOW: list[tuple[Callable[[Any], mr.Tensor], Any]] = [
    (
        lambda r: r.stateless_uniform([3], [1, 2]),
        [0.8440604209899902, 0.19204533100128174, 0.9962232112884521],
    ),
    (
        lambda r: r.stateless_uniform([2, 2], [0, -7], -1.0, 3.0),
        [[1.0134310722351074, 2.379915714263916], [0.2162332534790039, 2.416283130645752]],
    ),
    (
        lambda r: r.stateless_uniform([2], [2**40, -1], dtype="float64"),
        [0.314486193947324, 0.8660372434246368],
    ),
    (lambda r: r.stateless_uniform([4], [1, 2], -5, 1000, "int32"), [710, 819, 829, 169]),
    (
        lambda r: r.stateless_uniform([3], [1, 2], None, None, "int32"),
        [1105988140, 1738052849, -335576002],
    ),
    (
        lambda r: r.stateless_uniform([2], [5, 6], None, None, "int64"),
        [-8166752306318964373, -6335611874240545088],
    ),
    (
        lambda r: r.stateless_uniform([2], [5, 6], -(2**63), 2**63 - 1, "int64"),
        [1056619730535811435, 2887760162614230720],
    ),
    (
        lambda r: r.stateless_normal([3], [1, 2]),
        [0.544110119342804, 0.20738030970096588, 0.0735643208026886],
    ),
    (
        lambda r: r.stateless_normal([3], [3, 4], 2.0, 3.0, "float64"),
        [1.0067463208533658, 2.083437198994945, -2.4677205193019915],
    ),
    (
        lambda r: r.stateless_normal([2], [3, 4], [0.0, 10.0], [1.0, 2.0]),
        [-0.17393383383750916, 13.344709396362305],
    ),
    (
        lambda r: r.stateless_truncated_normal([5], [1, 2]),
        [
            0.544110119342804,
            0.20738030970096588,
            0.0735643208026886,
            0.04643455147743225,
            0.16820591688156128,
        ],
    ),
    (
        lambda r: r.stateless_truncated_normal([3], [1, 2], 1.0, 2.0, "float64"),
        [0.7153763799621575, 2.4812144923170183, -0.10477551248969008],
    ),
    (
        lambda r: r.stateless_gamma([2, 3], [1, 2], [0.5, 1.0, 20.0]),
        [
            [0.0669536143541336, 2.248735189437866, 21.565387725830078],
            [0.6282354593276978, 1.8935091495513916, 19.062042236328125],
        ],
    ),
    (
        lambda r: r.stateless_gamma([2], [1, 2], 2.0, 4.0, "float64"),
        [0.704318390109634, 0.4810341422691516],
    ),
    (
        lambda r: r.stateless_gamma([3], [1, 2], 0.0),
        [1.1754943508222875e-38, 1.1754943508222875e-38, 1.1754943508222875e-38],
    ),
    (
        lambda r: r.stateless_poisson([3, 3], [1, 2], [0.5, 9.0, 1000.0]),
        [[3, 11, 1002], [2, 11, 997], [1, 13, 961]],
    ),
    (lambda r: r.stateless_poisson([3], [1, 2], 12.5, "float64"), [17.0, 15.0, 18.0]),
    (lambda r: r.stateless_poisson([1], [1, 2], math.inf, "float32"), [math.inf]),
    (
        lambda r: r.stateless_categorical([[0.0, 1.0, 2.0], [3.0, 0.0, 0.0]], 6, [1, 2]),
        [[2, 2, 1, 2, 2, 2], [0, 0, 0, 0, 0, 0]],
    ),
    (
        lambda r: r.stateless_categorical([[math.nan, 0.0, 1.0, -math.inf]], 5, [1, 2], "int32"),
        [[2, 2, 1, 2, 2]],
    ),
    (
        lambda r: r.experimental.stateless_shuffle([0, 1, 2, 3, 4, 5, 6], [1, 2]),
        [5, 6, 1, 2, 0, 3, 4],
    ),
    (
        lambda r: r.experimental.stateless_shuffle([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [3, 4]),
        [[3.0, 4.0], [5.0, 6.0], [1.0, 2.0]],
    ),
    (lambda r: r.split([1, 2], 2), [[1105988140, 1738052849], [-335576002, 370444179]]),
    (lambda r: r.fold_in([1, 2], 7), [1105988140, 7]),
]


def test_the_numbers_are_those_of_tensorflow() -> None:
    for draw, expected in TENSORFLOW:
        check_drawn(draw(mr.random), expected)


def test_uniform_numbers_have_the_very_bits_of_tensorflow() -> None:
    drawn = mr.random.stateless_uniform([3], [1, 2]).numpy().tolist()
    assert drawn == [0.8440604209899902, 0.19204533100128174, 0.9962232112884521]


def test_recorded_functions_and_simulated_gpus_draw_the_same(simulate: Any) -> None:
    simulate(2)
    recorded = mr.function(lambda: [draw(mr.random) for draw, _ in TENSORFLOW])
    for _ in range(2):
        for drawn, (draw, _) in zip(recorded(), TENSORFLOW, strict=True):
            assert drawn.device.endswith("GPU:0")
            np.testing.assert_array_equal(drawn.numpy(), draw(mr.random).numpy())


def test_a_seed_of_a_recorded_function_may_change_from_call_to_call() -> None:
    @mr.function
    def drawn(seed: mr.Tensor) -> list[mr.Tensor]:
        first, second = mr.unstack(mr.random.split(seed))
        return [
            mr.random.stateless_normal([3], first),
            mr.random.stateless_gamma([2], second, 3.0),
            mr.random.experimental.stateless_shuffle([1, 2, 3, 4], mr.random.fold_in(seed, 5)),
        ]

    for number in (1, 2):
        seed = mr.constant([number, 7])
        first, second = mr.random.split(seed).numpy()
        got = drawn(seed)
        np.testing.assert_array_equal(got[0], mr.random.stateless_normal([3], first))
        np.testing.assert_array_equal(got[1], mr.random.stateless_gamma([2], second, 3.0))
        assert sorted(got[2].numpy()) == [1, 2, 3, 4]


def test_every_replica_draws_the_same(simulate: Any) -> None:
    simulate(2)
    strategy = mr.MirroredStrategy()
    drawn = strategy.run(lambda: mr.random.stateless_normal([4], [1, 2]))
    parts = strategy.experimental_local_results(drawn)
    np.testing.assert_array_equal(parts[0], parts[1])


def test_no_gradient_flows_to_gamma_shapes_but_one_to_rates() -> None:
    alpha, beta = mr.Variable(2.0), mr.Variable(4.0)
    with mr.GradientTape() as tape:
        drawn = mr.random.stateless_gamma([3], [1, 2], alpha, beta)
    slopes = tape.gradient(drawn, [alpha, beta])
    assert slopes[0] is None
    np.testing.assert_allclose(slopes[1], -np.sum(drawn.numpy()) / 4.0, rtol=1e-6)


@cases(
    ("call", "error", "text"),
    [
        (lambda r: r.stateless_uniform([3], [1]), InvalidArgumentError, r"shape \[2\], not \[1\]"),
        (lambda r: r.stateless_uniform([3], [1.0, 2.0]), InvalidArgumentError, "attr 'T' of float"),
        (lambda r: r.stateless_uniform(3, [1, 2]), InvalidArgumentError, "must be a vector"),
        (lambda r: r.stateless_uniform([-1], [1, 2]), InvalidArgumentError, ">= 0"),
        (lambda r: r.stateless_uniform([1], [1, 2], 5, 5, "int32"), InvalidArgumentError, "5 >= 5"),
        (lambda r: r.stateless_uniform([1], [1, 2], dtype="int32"), ValueError, "both None"),
        (lambda r: r.stateless_uniform([1], [1, 2], 0, 9, "bool"), ValueError, "value bool"),
        (lambda r: r.stateless_uniform([1], [1, 2], 0, 2**31, "int32"), ValueError, "not fit"),
        (lambda r: r.stateless_uniform([1], [1, 2], [0], 5, "int32"), ValueError, "scalars"),
        (lambda r: r.stateless_uniform([1], [1, 2], alg="threefry"), ValueError, "by Philox"),
        (lambda r: r.stateless_uniform([1], [1, 2], alg=7), ValueError, "Unsupported algorithm"),
        (lambda r: r.stateless_normal([1], [1, 2], dtype="int32"), TypeError, "dtype=int32"),
        (lambda r: r.stateless_gamma([2], [1, 2], [1.0] * 3), InvalidArgumentError, "must end"),
        (lambda r: r.stateless_poisson([1], [1, 2], 1.0, "bool"), InvalidArgumentError, "bool"),
        (lambda r: r.stateless_categorical([1.0], 1, [1, 2]), InvalidArgumentError, "a matrix"),
        (lambda r: r.stateless_categorical([[1.0]], -1, [1, 2]), InvalidArgumentError, "got -1"),
        (lambda r: r.stateless_categorical([[1.0]], 2.5, [1, 2]), TypeError, "an integer"),
        (lambda r: r.stateless_categorical([[]], 1, [1, 2]), InvalidArgumentError, "num_classes"),
        (lambda r: r.stateless_categorical([[1.0]], 1, [1, 2], "bool"), ValueError, "value bool"),
    ],
)
def test_what_is_refused(
    call: Callable[[Any], mr.Tensor], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        call(mr.random)


def test_parameters_that_no_number_fits_give_nan() -> None:
    alphas = [-2.0, math.nan]
    assert np.isnan(mr.random.stateless_gamma([3, 2], [1, 2], alphas).numpy()).all()
    assert np.isnan(mr.random.stateless_poisson([3], [1, 2], math.nan, "float32").numpy()).all()
