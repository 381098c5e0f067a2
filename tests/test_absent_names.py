"""Names that TensorFlow has and this library does not: what the error says, and when it says it."""

import importlib
import inspect
import re
import subprocess
import sys
from types import ModuleType

import numpy as np
import pytest

import mirrored as mr
from mirrored._absent.advice import ABSENT, GENERAL, OLDER
from mirrored._absent.tensorflow_names import NAMES

ROWS = [*ABSENT, *OLDER]
X = np.array([0.5, 1.0, 2.0], np.float32)


def ours(module: str) -> ModuleType:
    """Return the module that has a module of TensorFlow's names."""
    return importlib.import_module("mirrored" + module.removeprefix("tf"))


@pytest.mark.parametrize("module", NAMES)
def test_every_absent_name_says_so(module: str) -> None:
    there = vars(ours(module)).keys() | inspect.get_annotations(ours(module)).keys()
    absent = [name for name in NAMES[module].split() if name not in there]
    assert absent
    for name in absent:
        assert not hasattr(ours(module), name)
        start = re.escape(f"mirrored has no `{module}.{name}`: not provided here. ")
        with pytest.raises(AttributeError, match=f"^{start}[A-Z`].*[.]$"):
            getattr(ours(module), name)


@pytest.mark.parametrize(("modules", "names", "advice"), ROWS)
def test_advice_is_given(modules: str, names: str, advice: str) -> None:
    for module in modules.split():
        known = NAMES[module].split() if (modules, names, advice) in ABSENT else names.split()
        for name in set(names.split()) & set(known):
            with pytest.raises(AttributeError) as caught:
                getattr(ours(module), name)
            assert str(caught.value).endswith(f": not provided here. {advice}")


def test_rows_are_about_names_that_tensorflow_has() -> None:
    for modules, names, _ in ABSENT:
        known = {name for module in modules.split() for name in NAMES[module].split()}
        assert set(names.split()) <= known
    for modules, names, _ in OLDER:
        for module in modules.split():
            assert not set(names.split()) & set(NAMES[module].split())


def test_no_name_has_two_rows() -> None:
    named = [(m, n) for modules, names, _ in ROWS for m in modules.split() for n in names.split()]
    assert len(named) == len(set(named))


def test_every_module_has_general_advice() -> None:
    assert set(GENERAL) == set(NAMES)


@pytest.mark.parametrize(
    ("name", "expression", "expected"),
    [
        ("reduce_min", "-reduce_max(-x)", X.min()),
        ("argmin", "argmax(-x)", X.argmin()),
        ("reduce_prod", "exp(reduce_sum(log(x)))", X.prod()),
        ("reduce_logsumexp", "log(reduce_sum(exp(x)))", np.log(np.exp(X).sum())),
        ("reduce_variance", "reduce_mean(square(x - reduce_mean(x)))", X.var()),
        ("rsqrt", "1.0 / sqrt(x)", X**-0.5),
        ("log1p", "log(1.0 + x)", np.log1p(X)),
        ("expm1", "exp(x) - 1.0", np.expm1(X)),
        (
            "softplus",
            "nn.sigmoid_cross_entropy_with_logits(zeros_like(x), x)",
            np.log1p(np.exp(X)),
        ),
        ("log_softmax", "log(nn.softmax(x))", X - np.log(np.exp(X).sum())),
        ("l2_normalize", "x / sqrt(reduce_sum(square(x)))", X / np.linalg.norm(X)),
        ("norm", "sqrt(reduce_sum(square(x)))", np.linalg.norm(X)),
        ("l2_loss", "reduce_sum(square(x)) / 2.0", (X**2).sum() / 2),
        ("leaky_relu", "maximum(x, 0.2 * x)", X),
        ("relu6", "minimum(nn.relu(x), 6.0)", X),
        ("reduce_all", "reduce_sum(cast(x, int32))", 3),
        ("range", "constant(np.arange(4))", np.arange(4)),
        ("truncated_normal", "keras.initializers.TruncatedNormal()(shape)", None),
    ],
)
def test_what_the_advice_says_is_so(name: str, expression: str, expected: object) -> None:
    (advice,) = {advice for _, names, advice in ROWS if name in names.split()}
    assert f"`{expression}`" in advice
    scope = {**vars(mr), "x": mr.constant(X), "shape": (2,), "np": np}
    result = eval(expression, scope)
    if expected is not None:
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("name", ["reduce_men", "no_such_name", "_private", "__wrapped__"])
def test_what_tensorflow_has_not_either_is_an_ordinary_error(name: str) -> None:
    with pytest.raises(AttributeError, match=f"^module 'mirrored' has no attribute '{name}'$") as e:
        getattr(mr, name)
    # From these Python finds the nearest name that there is, and says it.
    assert (e.value.name, e.value.obj) == (name, mr)


def test_python_adds_no_guess_to_the_advice() -> None:
    code = "import mirrored; mirrored.reduce_min"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.endswith("not provided here. Use `-reduce_max(-x)`.\n")


def test_importing_an_absent_name_is_an_import_error() -> None:
    with pytest.raises(ImportError, match="cannot import name 'Conv2D'"):
        exec("from mirrored.keras.layers import Conv2D")


def test_lists_are_loaded_when_a_name_is_missing() -> None:
    code = (
        "import sys, mirrored, mirrored.keras.layers\n"
        "from mirrored import keras\n"
        "for look in (lambda: mirrored.add, lambda: hasattr(mirrored, '__wrapped__')):\n"
        "    look()\n"
        "    assert 'mirrored._absent.advice' not in sys.modules\n"
        "hasattr(mirrored, 'compat')\n"
        "assert 'mirrored._absent.advice' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_lists_are_whole() -> None:
    """Guard against a list that was cut: no error would tell of what is missing in it."""
    assert all(names.split() == sorted(set(names.split())) for names in NAMES.values())
    assert len(NAMES["tf"].split()) > 300
    assert {"Conv2D", "Dense"} <= set(NAMES["tf.keras.layers"].split())
