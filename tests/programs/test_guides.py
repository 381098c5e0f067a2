"""Programs in our own words for guides and tutorials of TensorFlow, Keras and TensorFlow 1."""

import sys
from collections.abc import Callable
from itertools import product
from typing import Any

import guides
import numpy as np
import pytest
from case_table import cases

import mirrored as mr

TOLERANCES = {"float16": 1e-3, "float32": 2e-5, "float64": 1e-12}
ON_REPLICAS = {"float32": 1e-6}
SLOW = pytest.mark.slow


def check(value: Any, expected: Any, where: str, tolerances: dict[str, float]) -> None:
    """Compare what is told of a value with what TensorFlow's program told."""
    if isinstance(expected, dict) and expected.keys() == {"dtype", "shape", "values"}:
        assert (value["dtype"], value["shape"]) == (expected["dtype"], expected["shape"]), where
        tolerance = tolerances.get(expected["dtype"], 0.0)
        numbers, theirs = (np.array(each["values"], np.float64) for each in (value, expected))
        np.testing.assert_allclose(numbers, theirs, rtol=tolerance, atol=tolerance, err_msg=where)
    elif isinstance(expected, dict) and expected.keys() == {"error"}:
        assert expected["error"][0] in value["error"], where  # Ours may be others' subclasses.
    elif isinstance(expected, dict):
        assert value.keys() == expected.keys(), where
        for key in expected:
            check(value[key], expected[key], f"{where}, {key}", tolerances)
    elif isinstance(expected, list):
        assert len(value) == len(expected), where
        for i, (mine, its) in enumerate(zip(value, expected, strict=True)):
            check(mine, its, f"{where}, {i}", tolerances)
    else:
        assert value == expected, where


@cases("folder", guides.FOLDERS)
def test_every_part_has_its_numbers(folder: str) -> None:
    assert guides.parts(folder).keys() == guides.expected(folder).keys()


def check_guide(name: str) -> None:
    expected = guides.expected("guides")[name]
    check(guides.told(guides.parts("guides")[name](mr)), expected, name, TOLERANCES)


def check_tensorflow_1(name: str) -> None:
    part, expected = (of("tensorflow1")[name] for of in (guides.parts, guides.expected))
    check(guides.told(guides.as_run(part, mr, "tensorflow1")), expected, name, TOLERANCES)


# A third of both is run each time, and the others among the slow tests.


@cases("name", list(guides.expected("guides"))[::3])
def test_guides(name: str) -> None:
    check_guide(name)


@SLOW
@cases("name", [each for i, each in enumerate(guides.expected("guides")) if i % 3])
def test_more_guides(name: str) -> None:
    check_guide(name)


@cases("name", list(guides.expected("tensorflow1"))[::3])
def test_tensorflow_1(name: str) -> None:
    check_tensorflow_1(name)


@SLOW
@cases("name", [each for i, each in enumerate(guides.expected("tensorflow1")) if i % 3])
def test_more_of_tensorflow_1(name: str) -> None:
    check_tensorflow_1(name)


# Every fourth part is run on one device, and the others on three: a quarter of them in every run.
@pytest.mark.parametrize(
    ("name", "replicas"),
    [
        pytest.param(
            *(name, 1 if number % 4 == 2 else 3), marks=[] if number % 8 in (0, 2) else SLOW
        )
        for number, name in enumerate(guides.expected("keras_guides"))
    ],
)
def test_keras_guides(name: str, replicas: int) -> None:
    mr.config.experimental.set_simulated_gpus(replicas)
    with mr.MirroredStrategy().scope():
        found = guides.told(guides.parts("keras_guides")[name](mr))
    check(found, guides.expected("keras_guides")[name], name, ON_REPLICAS)


# Every tutorial on three devices and on one; every thirteenth run of these is not slow.
@pytest.mark.parametrize(
    ("name", "replicas"),
    [
        pytest.param(name, replicas, marks=[] if number % 13 == 6 else SLOW)
        for number, (name, replicas) in enumerate(product(guides.expected("tutorials"), (3, 1)))
    ],
)
@pytest.mark.filterwarnings("ignore:Argument `input_shape` is deprecated")  # As tutorials have it.
def test_tutorials(name: str, replicas: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, library in (("tensorflow", mr), ("keras", mr.keras)):
        monkeypatch.setitem(sys.modules, module, library)
    mr.config.experimental.set_simulated_gpus(replicas)
    found = guides.told(guides.parts("tutorials")[name](mr))
    check(found, guides.expected("tutorials")[name], name, ON_REPLICAS)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(guides.expected("keras_guides"))[1::12])
def test_keras_guides_on_cards(name: str, emulated_cuda: Callable[..., Any]) -> None:
    emulated_cuda(cards=2)
    mr.config.experimental.enable_tensor_float_32_execution(False)
    with mr.MirroredStrategy().scope():
        found = guides.told(guides.parts("keras_guides")[name](mr))
    check(found, guides.expected("keras_guides")[name], name, TOLERANCES)
