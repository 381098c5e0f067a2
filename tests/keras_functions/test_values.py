"""`keras.ops` beside Keras: values, dtypes and gradients, from the table of keras_op_values.py."""

import json
from collections.abc import Callable
from typing import Any

import keras_op_values as table
import numpy as np
import pytest
from case_table import cases

import mirrored as mr

KERAS: dict[str, dict[str, Any]] = json.loads(table.FILE.read_text())
# By the function that is called, which is the first one that a call names.
CALLS: dict[str, list[str]] = {}
for call in KERAS:
    CALLS.setdefault(call.partition("(")[0], []).append(call)


@cases("name", CALLS)
def test_results_and_gradients_are_those_of_keras(name: str) -> None:
    given = {name: mr.constant(each) for name, each in table.GIVEN.items()}
    for call in CALLS[name]:
        expected = KERAS[call]
        with mr.GradientTape() as tape:
            tape.watch(given["x"])
            results = table.flattened(table.called(call, mr.keras.ops, given))
            total = sum(
                mr.reduce_sum(table.weighed(mr, each)) for each in results if is_float(each)
            )
        assert list(map(kind, results)) == list(map(kind, expected["results"])), call
        for result, numbers in zip(results, expected["results"], strict=True):
            if isinstance(numbers, list):
                precision = (2e-3, 2e-3) if numbers[0] == "float16" else (1e-5, 2e-6)
                found = np.asarray(result, np.float64)
                np.testing.assert_allclose(found, numbers[1], *precision, err_msg=call)
        if expected["slope"] is not None:
            slope = tape.gradient(total, given["x"]).numpy()
            np.testing.assert_allclose(slope, expected["slope"], 1e-4, 1e-5, err_msg=call)


KEPT = {call: each["kept"] for call, each in KERAS.items() if "kept" in each}


@pytest.mark.slow
@pytest.mark.parametrize("call", KEPT)
def test_files_say_what_those_of_keras_say(call: str) -> None:
    assert table.kept(mr.keras, call) == {"kept": KEPT[call]}


def is_float(result: Any) -> bool:
    return isinstance(result, mr.Tensor) and result.dtype.kind == "f"


def kind(result: Any) -> Any:
    if isinstance(result, mr.Tensor):
        return result.dtype.name
    return result[0] if isinstance(result, list) else result


# What Keras on TensorFlow gives for these is not what NumPy and Keras' page say.
AS_NUMPY: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "prod": (lambda k: k.prod([2, 3], dtype="float32"), np.float32(6)),
    "rot90": (lambda k: k.rot90([[1, 2, 3], [4, 5, 6]], 2), [[6, 5, 4], [3, 2, 1]]),
    "vstack": (lambda k: k.vstack([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
    "isclose": (
        lambda k: k.isclose(np.float32([np.inf, 1]), np.float32([np.inf, 2])),
        [True, False],
    ),
    "unravel_index": (lambda k: k.stack(k.unravel_index(-2, (2, 3))), [1, 1]),
    "correlate": (lambda k: k.correlate([1.0, 2.0], [3.0, 4.0, 6.0]), [16.0, 11.0]),
    "correlate same": (
        lambda k: k.correlate([1.0, 2.0], [3.0, 4.0, 6.0], "same"),
        [16.0, 11.0, 6.0],
    ),
    "pad": (lambda k: k.pad([[1]], (1, 0)), [[0, 0], [0, 1]]),
    "searchsorted": (lambda k: k.searchsorted([1, 3], [[0, 2], [3, 4]]), [[0, 1], [1, 2]]),
}


@cases("name", AS_NUMPY)
def test_results_are_those_of_numpy(name: str) -> None:
    call, expected = AS_NUMPY[name]
    np.testing.assert_array_equal(call(mr.keras.ops).numpy(), expected)


MORE = 2**32
WRAPPING: dict[str, Callable[[], Any]] = {
    "keras.ops.tile": lambda: mr.keras.ops.tile(np.ones((2, 3)), [1, MORE + 2]),
    "keras.ops.pad": lambda: mr.keras.ops.pad(np.ones((2, 3)), [[0, 0], [0, MORE + 1]]),
    "numpy.tile": lambda: mr.experimental.numpy.tile(np.ones((2, 3)), [1, MORE + 2]),
    "keras.ops.take": lambda: mr.keras.ops.take(np.ones((2, 3)), np.uint64(MORE + 1)),
}


@cases("call", WRAPPING.values(), ids=WRAPPING)
def test_sizes_do_not_wrap_around(call: Callable[[], Any]) -> None:
    mr.config.experimental.set_simulated_gpus(1, memory_limit=1)
    with pytest.raises((MemoryError, mr.errors.InvalidArgumentError), match="42949672"):
        call()


def test_signs_of_zeros_and_medians_beside_infinities() -> None:
    """With Keras' results."""
    ops = mr.keras.ops
    assert ops.signbit([0.0, -0.0, -2.0, np.inf]).numpy().tolist() == [False, True, True, False]
    assert float(ops.nanmedian([5.0, np.nan])) == 5.0
    assert float(ops.nanmedian([1.0, np.inf, np.nan])) == np.inf
