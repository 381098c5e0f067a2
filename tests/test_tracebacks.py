"""Tracebacks end at a line of the user's, whatever of the library was called."""

import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mirrored as mr
import mirrored.compat.v1 as v1
from mirrored.keras import callbacks, layers, losses, metrics

HERE = Path(__file__).name


@pytest.fixture(autouse=True)
def _filtered() -> Iterator[None]:
    mr.debugging.enable_traceback_filtering()
    yield
    mr.debugging.disable_traceback_filtering()


def names(error: BaseException) -> list[str]:
    """Return the functions of the frames of an error, all of which are in this file."""
    frames = traceback.extract_tb(error.__traceback__)
    assert {Path(frame.filename).name for frame in frames} == {HERE}
    return [frame.name for frame in frames]


def fitted(loss: Any = "mse", y: Any = None, **options: Any) -> None:
    with mr.MirroredStrategy().scope():
        model = mr.Sequential([layers.Input((2,)), layers.Dense(1)])
        model.compile("sgd", loss)
    model.fit(np.ones((4, 2)), np.ones((4, 1)) if y is None else y, verbose=0, **options)


def failing(*_: Any) -> Any:
    raise ZeroDivisionError("here")


def multiplied(x: Any) -> Any:
    return mr.matmul(x, mr.ones((3, 3)))


class Multiplied(layers.Layer):
    """Calls an operation that fails."""

    def call(self, inputs: Any) -> Any:
        return multiplied(inputs)


def drawn() -> None:
    with mr.Graph().as_default():
        mr.matmul(TWO, mr.ones((3, 3)))


TWO = np.ones((2, 2), np.float32)
# What users call, and the functions of theirs that it is called from or calls.
CALLS: list[tuple[Callable[[], object], list[str]]] = [
    (lambda: mr.matmul(TWO, mr.ones((3, 3))), []),
    (lambda: mr.constant(TWO) + mr.ones((3, 3)), []),
    (lambda: TWO @ mr.ones((3, 3)), []),
    (lambda: mr.constant(TWO)[5], []),
    (lambda: drawn(), ["drawn"]),
    (lambda: float(mr.constant(TWO)), []),
    (lambda: mr.matmul(layers.Input((2,)), mr.ones((3, 3))), []),
    (lambda: mr.nothing, []),
    (lambda: mr.Variable(TWO).assign([1.0]), []),
    (lambda: mr.optim.SGD(lr=0.1), []),
    (lambda: layers.Dense(-1), []),
    (lambda: layers.Dense(2)(layers.Dense(2)), []),
    (lambda: losses.MeanSquaredError()(TWO, np.ones((5, 7))), []),
    (lambda: metrics.Mean().update_state("no number"), []),
    (lambda: fitted(y=np.ones(3)), ["fitted"]),
    (lambda: fitted(failing), ["fitted", "failing"]),
    (
        lambda: fitted(callbacks=[callbacks.LambdaCallback(on_epoch_end=failing)]),
        ["fitted", "failing"],
    ),
    (lambda: Multiplied()(TWO), ["call", "multiplied"]),
    (lambda: mr.function(multiplied)(TWO), ["multiplied"]),
    (lambda: mr.MirroredStrategy().run(multiplied, args=(TWO,)), ["multiplied"]),
    (lambda: list(mr.data.Dataset.range(3).map(failing)), ["failing"]),
    (lambda: mr.data.Dataset.range(3).take("all"), []),
    (lambda: mr.data.Dataset.from_tensor_slices(([1, 2], [1])), []),
    (lambda: mr.optim.SGD().apply_gradients([(TWO[0], mr.Variable(TWO))]), []),
    (lambda: mr.Variable("text", dtype="float32"), []),
    (lambda: mr.Variable(TWO)[0].assign([1.0] * 3), []),
    (lambda: mr.train.Checkpoint().restore("/nowhere"), []),
    (lambda: v1.Session().run(v1.placeholder("float32", ())), []),
]


@pytest.mark.behaviour("tracebacks")
@pytest.mark.parametrize(("call", "called"), CALLS)
def test_they_end_at_the_users_line(
    simulate: Callable[..., Any], call: Callable[[], object], called: list[str]
) -> None:
    simulate(2)
    with pytest.raises(Exception) as caught:  # noqa: PT011
        call()
    assert names(caught.value) == ["test_they_end_at_the_users_line", "<lambda>", *called]


def test_all_frames_are_there_if_asked_for() -> None:
    mr.debugging.disable_traceback_filtering()
    assert not mr.debugging.is_traceback_filtering_enabled()
    with pytest.raises(ValueError, match="incompatible") as caught:
        multiplied(TWO)
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert any("mirrored" in Path(frame.filename).parts for frame in frames[2:])


@pytest.mark.behaviour("tracebacks")
def test_errors_keep_what_they_were_raised_from() -> None:
    def loss(y_true: Any, y_pred: Any) -> Any:
        try:
            return multiplied(TWO)
        except ValueError as error:
            raise TypeError("of the loss") from error

    with pytest.raises(TypeError, match="of the loss") as caught:
        fitted(loss)
    cause = caught.value.__cause__
    assert isinstance(cause, ValueError)
    assert names(cause) == ["loss", "multiplied"]
