"""Initializers: bounds, moments, seeds and names."""

import inspect
import math
import re
import statistics
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import ops
from mirrored.layers import Dense, initializers
from mirrored.layers.initializers import (
    Constant,
    GlorotNormal,
    GlorotUniform,
    HeNormal,
    HeUniform,
    Identity,
    Initializer,
    LecunNormal,
    LecunUniform,
    Ones,
    Orthogonal,
    RandomNormal,
    RandomUniform,
    TruncatedNormal,
    VarianceScaling,
    Zeros,
)

SHAPE = (400, 600)
CUT = 0.87962566103423978  # The deviation of a standard normal cut at -2 and 2.
INF = float("inf")

# Each one, the mean, the deviation and the bounds that its values should have.
DETERMINISTIC: list[tuple[Any, float]] = [(Zeros(), 0.0), (Ones(), 1.0), (Constant(2.5), 2.5)]
RANDOM: list[tuple[Any, float, float, float, float]] = [
    (RandomUniform(), 0.0, 0.1 / 12**0.5, -0.05, 0.05),
    (RandomUniform(1.0, 3.0), 2.0, 2 / 12**0.5, 1.0, 3.0),
    (RandomNormal(), 0.0, 0.05, -INF, INF),
    (RandomNormal(2.0, 0.5), 2.0, 0.5, -INF, INF),
    (TruncatedNormal(), 0.0, 0.05 * CUT, -0.1, 0.1),
    (TruncatedNormal(2.0, 0.5), 2.0, 0.5 * CUT, 1.0, 3.0),
    (GlorotUniform(), 0.0, (2 / 1000) ** 0.5, -((6 / 1000) ** 0.5), (6 / 1000) ** 0.5),
    (
        GlorotNormal(),
        0.0,
        (2 / 1000) ** 0.5,
        -2 * (2 / 1000) ** 0.5 / CUT,
        2 * (2 / 1000) ** 0.5 / CUT,
    ),
    (HeUniform(), 0.0, (2 / 400) ** 0.5, -((6 / 400) ** 0.5), (6 / 400) ** 0.5),
    (HeNormal(), 0.0, (2 / 400) ** 0.5, -2 * (2 / 400) ** 0.5 / CUT, 2 * (2 / 400) ** 0.5 / CUT),
    (LecunUniform(), 0.0, (1 / 400) ** 0.5, -((3 / 400) ** 0.5), (3 / 400) ** 0.5),
    (LecunNormal(), 0.0, (1 / 400) ** 0.5, -0.1 / CUT, 0.1 / CUT),
    (VarianceScaling(), 0.0, (1 / 400) ** 0.5, -0.1 / CUT, 0.1 / CUT),
    (VarianceScaling(3.0, "fan_out", "untruncated_normal"), 0.0, (3 / 600) ** 0.5, -INF, INF),
]


def test_every_public_initializer_is_in_the_tables() -> None:
    there = {value for _, value in inspect.getmembers(mr.keras.initializers, inspect.isclass)}
    shown = {type(row[0]) for row in [*DETERMINISTIC, *RANDOM]}
    assert there == shown | {Initializer, Identity, Orthogonal}


@cases(("make", "value"), DETERMINISTIC)
@cases("dtype", ["float32", "float64", "int32"])
def test_constants_fill(make: Any, value: float, dtype: str) -> None:
    tensor = make((2, 3), dtype=dtype)
    assert tensor.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(tensor.numpy(), np.full((2, 3), value).astype(dtype))


def test_a_constant_array_broadcasts() -> None:
    values = Constant([1.0, 2.0])((3, 2)).numpy()
    np.testing.assert_array_equal(values, [[1, 2]] * 3)


@cases("shape", [(2, 2), (3, 2), (2, 3), (0, 2)])
def test_identities(shape: tuple[int, int]) -> None:
    values = Identity(2.5)(shape, "float64").numpy()
    np.testing.assert_array_equal(values, 2.5 * np.eye(*shape))
    np.testing.assert_array_equal(Identity(2)(shape, "int32").numpy(), 2 * np.eye(*shape))


def test_identities_are_matrices_of_one_kind() -> None:
    text = "can only be used for 2D matrices. Received: shape=(2, 2, 2) of rank 3."
    with pytest.raises(ValueError, match=re.escape(text)):
        Identity()((2, 2, 2))
    with pytest.raises(mr.errors.InvalidArgumentError, match="float tensor"):
        Identity()((2, 2), "int32")


@cases("shape", [(5, 5), (7, 3), (3, 7), (2, 3, 4), (2, 2, 6), (0, 3), (3, 0)])
@cases("dtype", ["float32", "float64", "float16"])
def test_orthogonal_matrices(shape: tuple[int, ...], dtype: str) -> None:
    tensor = Orthogonal(2.0, seed=3)(shape, dtype)
    assert (tensor.shape, tensor.dtype) == (shape, np.dtype(dtype))
    rows, columns = math.prod(shape[:-1]), shape[-1]
    q = tensor.numpy().astype(float).reshape(rows, columns) / 2.0
    q = q if rows >= columns else q.T
    unit = np.eye(min(rows, columns))
    np.testing.assert_allclose(q.T @ q, unit, atol=16 * np.finfo(dtype).eps)
    # As in Keras, R = Q'A has a positive diagonal, where A are the normal numbers.
    drawn = "float64" if dtype == "float64" else "float32"
    normal = ops.SeedGenerator(3).normal(q.shape, dtype=drawn).numpy()
    r = q.T @ normal
    assert (np.diag(r) > 0).all()
    np.testing.assert_allclose(r, np.triu(r), atol=64 * np.finfo(dtype).eps)


@pytest.mark.parametrize("shape", [(), (3,)])
def test_orthogonal_values_have_two_axes(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=f"at least two-dimensional.* rank {len(shape)}"):
        Orthogonal()(shape)


@cases(
    ("made", "config"),
    [  # What Keras 3.15.1 says; but its Identity forgets the gain.
        (Zeros(), {}),
        (Ones(), {}),
        (Constant(3.0), {"value": 3.0}),
        (Identity(3.0), {"gain": 3.0}),
        (RandomNormal(1.0, 2.0, seed=5), {"seed": 5, "mean": 1.0, "stddev": 2.0}),
        (TruncatedNormal(1.0, 2.0), {"seed": None, "mean": 1.0, "stddev": 2.0}),
        (RandomUniform(1.0, 2.0, seed=5), {"seed": 5, "minval": 1.0, "maxval": 2.0}),
        (Orthogonal(2.0, 3), {"seed": 3, "gain": 2.0}),
        (
            VarianceScaling(2.0, "fan_out", "normal", 7, output_axes=[1]),
            {
                "seed": 7,
                "scale": 2.0,
                "mode": "fan_out",
                "distribution": "truncated_normal",
                "input_axes": None,
                "output_axes": [1],
            },
        ),
        *[
            (kind(4, [0], [1]), {"seed": 4, "input_axes": [0], "output_axes": [1]})
            for kind in (GlorotNormal, GlorotUniform, HeNormal, HeUniform, LecunNormal)
        ],
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Initializer) else "",
)
def test_configurations(made: Any, config: dict[str, Any]) -> None:
    assert made.get_config() == config
    given = {"class_name": type(made).__name__, "config": config}
    for other in (type(made).from_config(config), made.clone(), initializers.get(given)):
        assert type(other) is type(made)
        assert vars(other) == vars(made)


@cases("given", [{}, {"config": {}}, {"class_name": "nothing", "config": {}}])
def test_configurations_of_no_class(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"Could not interpret initializer ident|Unknown `config`"):
        initializers.get(given)


@cases("make", [np.asarray, ops.constant, np.float32])
def test_values_themselves(make: Any) -> None:
    values = make(3.0 if make is np.float32 else [4.0, 5.0])
    found: Any = initializers.get(values)
    assert found(values.shape).dtype == np.float32
    np.testing.assert_array_equal(found(list(values.shape), "float64").numpy(), values)
    with pytest.raises(ValueError, match=r"Expected `shape` to be .* Received shape=\(3, 2\)"):
        found((3, 2))


def test_the_base_says_nothing() -> None:
    with pytest.raises(NotImplementedError, match="must implement the `__call__"):
        Initializer()((2,))
    with pytest.raises(ValueError, match="value=None"):
        Constant(None)((2,))


@pytest.mark.parametrize(("make", "mean", "deviation", "low", "high"), RANDOM)
@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
def test_moments_and_bounds(
    make: Any, mean: float, deviation: float, low: float, high: float, dtype: str
) -> None:
    tensor = make(SHAPE, dtype=dtype)
    values = tensor.numpy()
    assert (tensor.dtype, tensor.shape) == (np.dtype(dtype), SHAPE)
    # Five standard errors; a fourth central moment of at most 3 bounds the variance's.
    assert abs(values.mean() - mean) < 5 * deviation / values.size**0.5
    assert abs(values.std() / deviation - 1) < 5 * (0.5 / values.size) ** 0.5
    slack = 1e-6 * max(abs(low), abs(high)) if high < INF else 0.0
    assert low - slack <= values.min()
    assert values.max() <= high + slack
    if high < INF:  # The bounds are reached, nearly.
        assert values.min() < low + 0.01 * (high - low)
        assert values.max() > high - 0.01 * (high - low)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_truncated_normals_are_the_exact_quantiles_of_their_uniforms(dtype: str) -> None:
    values = TruncatedNormal(stddev=1.0, seed=4)((1000,), dtype=dtype).numpy()
    fractions = ops.SeedGenerator(4).uniform((1000,), dtype=dtype).numpy().astype(float)
    normal = statistics.NormalDist()
    low, high = normal.cdf(-2.0), normal.cdf(2.0)
    exact = [normal.inv_cdf(low + each * (high - low)) for each in fractions.tolist()]
    np.testing.assert_allclose(values, exact, rtol=0, atol=2e-8 if dtype == "float64" else 2e-7)


@cases("row", RANDOM)
def test_seeds(row: Any) -> None:
    kind = type(row[0])
    np.testing.assert_array_equal(kind(seed=3)((4, 5)).numpy(), kind(seed=3)((4, 5)).numpy())
    seeded = kind(seed=3)
    np.testing.assert_array_equal(seeded((4, 5)).numpy(), seeded((4, 5)).numpy())
    assert not np.array_equal(kind(seed=4)((4, 5)).numpy(), seeded((4, 5)).numpy())

    unseeded = kind()
    ops.set_seed(9)
    first, second = unseeded((4, 5)).numpy(), unseeded((4, 5)).numpy()
    assert not np.array_equal(first, second)
    ops.set_seed(9)
    np.testing.assert_array_equal(unseeded((4, 5)).numpy(), first)

    for generator in (ops.SeedGenerator(3), mr.keras.random.SeedGenerator(3)):
        moving = kind(seed=generator)
        assert not np.array_equal(moving((4, 5)).numpy(), moving((4, 5)).numpy())
    drawn = [kind(seed=mr.keras.random.SeedGenerator(3))((4, 5)).numpy() for _ in range(2)]
    np.testing.assert_array_equal(*drawn)


@cases(
    ("shape", "axes", "fan_in", "fan_out"),
    [
        ((), (), 1, 1),
        ((7,), (), 7, 7),
        ((2, 3), (), 2, 3),
        ((3, 3, 4, 5), (), 36, 45),
        ((3, 4, 5), ([0, -1], [1]), 15, 4),
        ((3, 4, 5), ([], [1]), 1, 4),
        ((3, 4, 5), ([0], None), 12, 15),
        ((3, 4, 5), (None, [0]), 12, 15),
    ],
)
@cases("kind", [VarianceScaling, GlorotUniform])
def test_fans_are_kerass(
    kind: Any, shape: tuple[int, ...], axes: tuple[Any, ...], fan_in: int, fan_out: int
) -> None:
    names = dict(zip(("input_axes", "output_axes"), axes, strict=False))
    made = VarianceScaling(mode="fan_avg", distribution="uniform", seed=2, **names)
    if kind is GlorotUniform:
        made = GlorotUniform(2, **names)
    limit = (6 / max(2.0, fan_in + fan_out)) ** 0.5
    expected = ops.SeedGenerator(2).uniform(shape, -limit, limit).numpy()
    np.testing.assert_allclose(made(shape).numpy(), expected, rtol=1e-6)


@cases("shape", [(), (0, 3), (3, 0), (0,)])
@cases("row", RANDOM)
def test_scalars_and_empty_shapes(row: Any, shape: tuple[int, ...]) -> None:
    values = row[0](shape)
    assert values.shape == shape
    assert np.isfinite(values.numpy()).all()


@cases(
    ("name", "kind"),
    [
        ("constant", Constant),
        ("glorot_normal", GlorotNormal),
        ("glorot_uniform", GlorotUniform),
        ("he_normal", HeNormal),
        ("he_uniform", HeUniform),
        ("identity", Identity),
        ("IdentityInitializer", Identity),
        ("initializer", Initializer),
        ("lecun_normal", LecunNormal),
        ("lecun_uniform", LecunUniform),
        ("normal", RandomNormal),
        ("one", Ones),
        ("ones", Ones),
        ("orthogonal", Orthogonal),
        ("OrthogonalInitializer", Orthogonal),
        ("random_normal", RandomNormal),
        ("random_uniform", RandomUniform),
        ("truncated_normal", TruncatedNormal),
        ("uniform", RandomUniform),
        ("variance_scaling", VarianceScaling),
        ("zero", Zeros),
        ("zeros", Zeros),
    ],
)
def test_names_are_kerass_and_those_of_the_classes(name: str, kind: type) -> None:
    assert type(initializers.get(name)) is kind
    assert type(initializers.get(kind.__name__)) is kind
    assert type(initializers.get(kind)) is kind


def test_none_is_the_default_of_weights() -> None:
    """As in Keras 3.15: Glorot's, for the bias with the limit sqrt(6 / (200 + 200))."""
    assert initializers.get(None) is None
    layer = Dense(200, kernel_initializer=None, bias_initializer=None)
    layer.build((None, 300))
    assert layer.kernel_initializer is None
    kernel, bias = (np.abs(weight).max() for weight in layer.get_weights())
    assert 0.1094 < kernel <= 0.10954451150103323
    assert 0.115 < bias <= 0.1224744871391589


def test_instances_and_functions_are_accepted() -> None:
    zeros = Zeros()
    assert initializers.get(zeros) is zeros

    def arange(shape: tuple[int, ...], dtype: Any = None) -> Any:
        return np.arange(np.prod(shape), dtype=dtype).reshape(shape)

    layer = Dense(2, kernel_initializer=arange)
    layer.build((None, 2))
    np.testing.assert_array_equal(layer.get_weights()[0], [[0, 1], [2, 3]])


@cases("row", RANDOM)
@cases("dtype", ["int32", "bool"])
def test_random_values_are_floats(row: Any, dtype: str) -> None:
    text = f"{type(row[0]).__name__} expected a floating point dtype. Received: dtype={dtype}"
    with pytest.raises(ValueError, match=text):
        row[0]((2,), dtype=dtype)


@cases("row", RANDOM)
@cases("seed", ["x", 1.5, True])
def test_other_seeds_are_refused(row: Any, seed: object) -> None:
    text = (
        "`seed` argument should be an instance of `SeedGenerator` or an integer. "
        f"Received: seed={seed!r}"
    )
    with pytest.raises(ValueError, match=re.escape(text)):
        type(row[0])(seed=seed)


@cases(
    ("kwargs", "text"),
    [
        ({"scale": 0.0}, "`scale` must be positive float. Received: scale=0.0"),
        ({"scale": "a"}, "`scale` must be positive float. Received: scale='a'"),
        ({"mode": "fan"}, "Invalid `mode` argument: fan. Please use one of fan_in, fan_out"),
        ({"distribution": "x"}, "Invalid `distribution` argument: x. Please use one of uniform"),
    ],
)
def test_bad_arguments_of_variance_scaling(kwargs: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        VarianceScaling(**kwargs)
