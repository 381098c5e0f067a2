"""Constraints: Keras' numbers, names, the layers that take them, and steps that fail.

tests/optim/test_rules.py has what optimizers make of them.
"""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.layers import constraints
from mirrored.layers.constraints import Constraint, MaxNorm, MinMaxNorm, NonNeg, UnitNorm

W = [[3.0, -0.25], [-4.0, 0.5], [0.0, 0.1]]
# What Keras 3.15.1 on TensorFlow 2.21.0 returns for W.
KERAS: list[tuple[Any, list[list[float]]]] = [
    (Constraint(), W),
    (NonNeg(), [[3, 0], [0, 0.5], [0, 0.1]]),
    (MaxNorm(), [[1.2, -0.25], [-1.6, 0.5], [0, 0.1]]),
    (MaxNorm(0.5, axis=1), [[0.498273, -0.041523], [-0.496139, 0.062017], [0, 0.1]]),
    (MaxNorm(0.5, axis=[0, 1]), [[0.298084, -0.02484], [-0.397445, 0.049681], [0, 0.009936]]),
    (MaxNorm(0.5, axis=None), [[0.298084, -0.02484], [-0.397445, 0.049681], [0, 0.009936]]),
    (MaxNorm(-1.0), [[0, 0], [0, 0], [0, 0]]),
    (UnitNorm(), [[0.6, -0.440225], [-0.8, 0.880451], [0, 0.17609]]),
    (UnitNorm(-1), [[0.996546, -0.083045], [-0.992278, 0.124035], [0, 0.999999]]),
    (MinMaxNorm(2, 3), [[1.8, -0.880451], [-2.4, 1.760901], [0, 0.35218]]),
    (MinMaxNorm(2, 3, 0.25, 1), [[2.997409, -0.249784], [-3.744208, 0.468026], [0, 0.574999]]),
    (MinMaxNorm(3, 2), [[1.8, -1.320676], [-2.4, 2.641352], [0, 0.52827]]),
    (MinMaxNorm(rate=0), W),
]


@cases(("constraint", "values"), KERAS)
@cases("dtype", ["float32", "float64"])
def test_numbers_are_kerass(constraint: Any, values: Any, dtype: str) -> None:
    found = constraint(mr.constant(W, dtype))
    assert found.dtype == np.dtype(dtype)
    np.testing.assert_allclose(found.numpy(), values, rtol=0, atol=2e-6)


@cases("constraint", [MaxNorm(), MinMaxNorm(0.5), UnitNorm()])
def test_zeros_stay_zeros_and_what_is_not_finite_is_no_number(constraint: Any) -> None:
    zeros, infinities = np.zeros((2, 3), np.float32), np.full((2, 3), np.inf, np.float32)
    np.testing.assert_array_equal(constraint(zeros).numpy(), zeros)
    assert np.isnan(constraint(infinities).numpy()).all()


@cases("kind", [Constraint, MaxNorm, MinMaxNorm, NonNeg, UnitNorm])
def test_names_and_configurations(kind: Any) -> None:
    snake = "".join(f"_{each.lower()}" if each.isupper() else each for each in kind.__name__)[1:]
    for identifier in (kind.__name__, snake, kind, {"class_name": snake}):
        assert type(constraints.get(identifier)) is kind
    made = kind()
    assert constraints.get(made) is made
    assert made.get_config() == vars(made)
    changed = dict.fromkeys(made.get_config(), 7)
    given = {"class_name": kind.__name__, "config": changed}
    assert vars(kind.from_config(changed)) == vars(constraints.get(given)) == changed


@cases("identifier", ["maxnorm", "", 3, [1], {}, {"class_name": "nothing"}])
def test_what_is_no_constraint(identifier: Any) -> None:
    with pytest.raises(ValueError, match=r"Could not interpret constraint ident|Unknown `config`"):
        mr.keras.layers.Dense(2, bias_constraint=identifier)


def positive(w: Any) -> Any:
    return mr.nn.relu(w)


def test_a_variable_keeps_its_constraint(simulate: Callable[..., Any]) -> None:
    simulate(2)
    assert mr.Variable(1.0).constraint is None
    with mr.MirroredStrategy().scope():
        mirrored = mr.Variable([1.0, -1.0], constraint=positive)
    for variable in (mirrored, mr.Variable(-1.0, constraint=positive)):
        assert variable.constraint is positive
        assert copy.deepcopy(variable).constraint is positive
        assert pickle.loads(pickle.dumps(variable)).constraint is positive
    mirrored.assign([-2.0, 2.0])  # It is for steps of optimizers alone.
    assert mirrored.numpy().tolist() == [-2.0, 2.0]
    with pytest.raises(ValueError, match="`constraint` must be None or a callable"):
        mr.Variable(1.0, constraint="max_norm")  # type: ignore[arg-type]


FAILING: list[tuple[Any, type[Exception], str]] = [
    (lambda w: w[:1], ValueError, r"variable's shape.*shape \(1,\) for last:0, which .* \(2,\)"),
    (lambda w: None, TypeError, "dtype object"),
    (lambda w: 1 / 0, ZeroDivisionError, "division"),
]


@pytest.mark.behaviour("constraints")
@cases(("constraint", "kind", "text"), FAILING)
@cases("recorded", [False, True])
def test_a_constraint_that_fails_changes_nothing(
    constraint: Any, kind: Any, text: str, recorded: bool, simulate: Callable[..., Any]
) -> None:
    simulate(2)
    strategy = mr.MirroredStrategy()
    with strategy.scope():
        variables = [
            mr.Variable([1.0, 2.0], name="first", constraint=NonNeg()),
            mr.Variable([3.0, 4.0], name="last", constraint=constraint),
        ]
        optimizer = mr.optim.SGD(0.5, momentum=0.9)

    def step() -> None:
        pairs = [(mr.constant([1.0, 1.0]), each) for each in variables]
        strategy.run(lambda: optimizer.apply_gradients(pairs))

    with pytest.raises(kind, match=text):
        (mr.function(step) if recorded else step)()
    assert [each.numpy().tolist() for each in variables] == [[1.0, 2.0], [3.0, 4.0]]
    assert int(optimizer.iterations) == 0


@cases("returned", [[1.0, 2.0], np.array([1, 2]), mr.float64], ids=["list", "integers", "float64"])
def test_what_a_constraint_returns_becomes_of_the_variables_dtype(returned: Any) -> None:
    def constraint(w: Any) -> Any:
        return mr.cast(w, returned) if returned is mr.float64 else returned

    v = mr.Variable([1.0, 2.0], constraint=constraint)
    mr.optim.SGD(1.0).apply_gradients([(mr.constant([0.0, 0.0]), v)])
    assert v.dtype == mr.float32
    assert v.numpy().tolist() == [1.0, 2.0]


def constrained_model() -> Any:
    layers = mr.keras.layers
    short = MaxNorm(0.2)
    model = mr.keras.Sequential(
        [
            layers.Embedding(9, 4, embeddings_constraint=UnitNorm(axis=1)),
            layers.Flatten(),
            layers.Dense(6, kernel_constraint="unit_norm", bias_constraint=NonNeg),
            layers.LayerNormalization(beta_constraint="non_neg", gamma_constraint=short),
            layers.PReLU("ones", None, short),
            layers.BatchNormalization(
                synchronized=True, beta_constraint=short, gamma_constraint=short
            ),
            layers.GroupNormalization(2, beta_constraint=short, gamma_constraint=short),
            layers.Dense(1, kernel_constraint=positive),
        ]
    )
    model.compile(mr.optim.Adam(0.05), "mse")
    return model


def fitted(replicas: int) -> Any:
    devices = mr.config.list_logical_devices("GPU")[:replicas]
    mr.random.set_seed(3)
    with mr.MirroredStrategy([each.name for each in devices]).scope():
        model = constrained_model()
    draws = np.random.default_rng(0)
    x, y = draws.integers(9, size=(24, 3)), draws.normal(size=(24, 1))
    model.fit(x, y, batch_size=12, epochs=2, shuffle=False, verbose=0)
    return model


def test_layers_pass_constraints_on_and_replicas_train_as_one(simulate: Callable[..., Any]) -> None:
    simulate(3)
    mr.keras.backend.set_floatx("float64")
    one, three = fitted(1), fitted(3)
    for here, there in zip(one.weights, three.weights, strict=True):
        np.testing.assert_allclose(here.numpy(), there.numpy(), rtol=1e-8, atol=1e-9)
    held = [each for each in three.weights if each.constraint is not None]
    names = [each.name.split("/")[1].removesuffix(":0") for each in held]
    scaled = ["gamma", "beta"]
    first = ["embeddings", "kernel", "bias", *scaled, "alpha"]
    assert names == [*first, *scaled, *scaled, "kernel"]
    for each in held:
        np.testing.assert_allclose(each.constraint(each).numpy(), each.numpy(), atol=1e-6)


def test_keras_order_of_arguments() -> None:
    layers, taken = mr.keras.layers, [MaxNorm(1), MaxNorm(2)]
    made: list[tuple[Any, str]] = [
        (layers.Dense(2, None, True, "ones", "ones", None, None, None, *taken), "kernel bias"),
        (layers.Embedding(2, 3, "ones", None, taken[0]), "embeddings"),
        (layers.PReLU("ones", None, taken[0], [1]), "alpha"),
        (
            layers.LayerNormalization(-1, 1e-3, True, True, "ones", "ones", None, None, *taken),
            "beta gamma",
        ),
        (
            layers.GroupNormalization(2, -1, 1e-3, True, True, "ones", "ones", None, None, *taken),
            "beta gamma",
        ),
        (
            layers.BatchNormalization(
                -1, 0.9, 1e-3, True, True, "ones", "ones", "ones", "ones", None, None, *taken
            ),
            "beta gamma",
        ),
    ]
    for layer, names in made:
        found = [getattr(layer, f"{name}_constraint") for name in names.split()]
        assert found == taken[: len(found)]
