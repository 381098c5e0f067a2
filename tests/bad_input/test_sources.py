"""Sources of batches that break: what they raise reaches the caller, and no thread is left.

The model is as after its last whole step, and trains on from there.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr

X = np.random.default_rng(0).normal(size=(12, 5)).astype(np.float32)
Y = np.random.default_rng(1).integers(0, 3, size=12)


class Broken(Exception):
    """What users' code raises here."""


@pytest.fixture(autouse=True)
def clean_state(shared: Any, clean_names: None) -> None:
    """Let devices and models stay from row to row."""


def generator() -> Iterator[Any]:
    yield X[:6], Y[:6]
    raise Broken("the second")


class Again:
    """Can be iterated over again."""

    def __iter__(self) -> Iterator[Any]:
        return generator()


class Numbered(mr.keras.utils.PyDataset):
    """Cannot make batches from the second on."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Any:
        if index:
            raise Broken("the second")
        return X[:6], Y[:6]


class Rows:
    """Rows in a file that cannot be read to its end."""

    shape, dtype = X.shape, X.dtype

    def __getitem__(self, rows: slice) -> Any:
        if rows.start >= 6:
            raise Broken("the second")
        return X[rows]


class FewerRows(Rows):
    """Rows in a file that has become shorter."""

    def __getitem__(self, rows: slice) -> Any:
        return X[:8][rows]


SOURCES: dict[str, Callable[[], Any]] = {
    "a generator": generator,
    "an iterable": Again,
    "by numbers": Numbered,
    "by threads": lambda: Numbered(workers=3),
    "a dataset of a generator": lambda: mr.data.Dataset.from_generator(generator),
    "prefetched": lambda: mr.data.Dataset.from_generator(generator).prefetch(2),
}


@pytest.mark.behaviour("sources-that-break")
@cases("make", SOURCES.values(), ids=SOURCES, clean=False)
def test_what_raises_in_training(
    make: Callable[[], Any],
    strategy: mr.MirroredStrategy,
    make_model: Callable[..., mr.Model],
    check_refused: Callable[..., BaseException],
) -> None:
    error = check_refused(
        make_model(strategy),
        lambda model: model.fit(make(), verbose=0, shuffle=False),
        Broken,
        "the second",
        steps=1,
    )
    assert "In batch 1 of the data (counted from 0)." in error.__notes__


@cases("make", SOURCES.values(), ids=SOURCES, clean=False)
@cases("method", ["evaluate", "predict"], clean=False)
def test_what_raises_elsewhere(
    make: Callable[[], Any],
    method: str,
    strategy: mr.MirroredStrategy,
    make_model: Callable[..., mr.Model],
    check_refused: Callable[..., BaseException],
) -> None:
    model = make_model(strategy)
    check_refused(model, lambda model: getattr(model, method)(make(), verbose=0), Broken)


ROWS = {"raises": (Rows, Broken, "the second"), "shrinks": (FewerRows, ValueError, "Batch 1 of a")}


@pytest.mark.parametrize(("rows", "error", "message"), ROWS.values(), ids=ROWS)
def test_rows_that_cannot_be_read(
    rows: type[Rows],
    error: type[Exception],
    message: str,
    strategy: mr.MirroredStrategy,
    make_model: Callable[..., mr.Model],
    check_refused: Callable[..., BaseException],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mirrored.data.stored._AT_ONCE", 6 * (20 + 8))

    def act(model: mr.Model) -> None:
        model.fit(rows(), Y, 6, verbose=0, shuffle=False)

    check_refused(make_model(strategy), act, error, message, steps=1)


FRAMES: dict[str, tuple[list[Any], str]] = {
    "strings": (["x"] * 12, "`x` must hold numbers"),
    "missing values": ([1, None] * 6, "6 of them in column 'e', the first in row 1"),
}


@pytest.mark.slow  # They need pandas.
@cases(("column", "message"), FRAMES.values(), ids=FRAMES, clean=False)
@cases("method", ["fit", "evaluate", "predict"], clean=False)
def test_frames(
    column: list[Any],
    message: str,
    method: str,
    strategy: mr.MirroredStrategy,
    make_model: Callable[..., mr.Model],
    check_refused: Callable[..., BaseException],
) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({**{name: X[:, i] for i, name in enumerate("abcd")}, "e": column})
    given = (frame,) if method == "predict" else (frame, pandas.Series(Y))
    check_refused(
        make_model(strategy),
        lambda model: getattr(model, method)(*given, verbose=0),
        ValueError,
        message,
    )


NAMES: dict[str, tuple[Any, str]] = {
    "a name is missing": ({"a": X}, 'Missing data for input "b". You passed a data dictionary'),
    "another name": ({"a": X, "c": X}, 'Missing data for input "b"'),
    "too many": ([X, X, X], "it received 3 input tensors"),
    "too few": ([X], "it received 1 input tensors"),
    "one array": (X, "it received 1 input tensors"),
    "None": ({"a": X, "b": None}, "The input 'b' is not optional, but None was passed"),
    "None in a list": ([None, X], "The input 'a' is not optional, but None was passed"),
    "a shape": ({"a": X, "b": X[:, :2]}, "expected shape=(None, 5), found shape=(None, 2)"),
    "lengths": ({"a": X, "b": X[:7]}, "'x' sizes: 12, 7, 'y' sizes: 12"),
    "strings": ({"a": X, "b": X.astype(str)}, "`x['b']` must hold numbers"),
}


@cases("stream", [False, True], clean=False)
@cases(("x", "message"), NAMES.values(), ids=NAMES, clean=False)
def test_names_of_inputs(x: Any, message: str, stream: bool) -> None:
    """A dict may have more names than the model has inputs; a missing one is an error."""
    a, b = mr.layers.Input(shape=(5,), name="a"), mr.layers.Input(shape=(5,), name="b")
    model = mr.Model([a, b], mr.layers.Dense(3)(mr.layers.Concatenate()([a, b])))
    model.compile("sgd", mr.losses.SparseCategoricalCrossentropy(from_logits=True))
    before = model.get_weights()
    if stream:
        x, message = iter([(x, Y)]), message.replace("'x' sizes: 12, 7, 'y' sizes: 12", "(7, 5)")
    with pytest.raises(ValueError, match=re.escape(message)):
        model.fit(*((x,) if stream else (x, Y)), verbose=0)
    for old, new in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)
    history = model.fit({"a": X, "b": X, "more": Y}, Y, verbose=0).history
    assert np.isfinite(history["loss"]).all()
