"""Data and numbers that `fit`, `evaluate` and `predict` refuse: nothing is trained on them.

Each row says what is wrong and the text that tells so; training goes on as if it had not been.
"""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr

CLASSES = 3
# The training data of the shared fixtures, here for the tables.
X = np.random.default_rng(0).normal(size=(12, 5)).astype(np.float32)
Y = np.random.default_rng(1).integers(0, CLASSES, size=12)

AMBIGUOUS = "Data cardinality is ambiguous. Make sure all arrays contain the same number of samples"
ONE_INPUT = "`x` must be one array, because the model has one input. Received: a "
NUMBERS = "must hold numbers (bool, integer or floating-point). Received: "
FITS_NOT = 'Input 0 of layer "sequential" is incompatible with the layer: expected shape=(None, 5)'
DATA: dict[str, tuple[dict[str, Any], str]] = {
    "lengths of x and y": ({"y": Y[:7]}, f"{AMBIGUOUS}. Received: 'x' sizes: 12, 'y' sizes: 7"),
    "length of the weights": ({"sample_weight": np.ones(7)}, "'sample_weight' sizes: 7"),
    "lengths for validation": ({"validation_data": (X, Y[:7])}, AMBIGUOUS),
    "lengths of validation's weights": ({"validation_data": (X, Y, np.ones(7))}, AMBIGUOUS),
    "rank of x": ({"x": X[:, :, None, None]}, f"{FITS_NOT}, found shape=(None, 5, 1, 1)"),
    "rank 1": ({"x": X[:, 0]}, f"{FITS_NOT}, found shape=(None,)"),
    "rank 0": ({"x": 3.0}, "`x` must have at least one dimension, the examples"),
    "rank of y": ({"y": np.zeros((12, 2))}, "needs one integer label for each"),
    "rank of the weights": (
        {"sample_weight": np.ones((12, 2))},
        "`sample_weight` must have one weight an example",
    ),
    "shape of x": ({"x": X[:, :4]}, f"{FITS_NOT}, found shape=(None, 4)"),
    "no features": ({"x": X[:, :0]}, f"{FITS_NOT}, found shape=(None, 0)"),
    "shape of validation's x": ({"validation_data": (X[:, :4], Y)}, FITS_NOT),
    "rows of different lengths": (
        {"x": [[1.0], [1.0, 2.0]]},
        "Can't convert non-rectangular Python sequence to Tensor",
    ),
    "columns in a dict": (
        {"x": {"a": X[:, 0], "b": X[:, 1]}},
        "columns, join them with `numpy.column_stack(list(x.values()))`",
    ),
    "objects": ({"x": X.astype(object)}, f"`x` {NUMBERS}x with dtype object"),
    "strings": ({"x": X.astype(str)}, f"`x` {NUMBERS}x with dtype <U"),
    "complex numbers": ({"x": X.astype(complex)}, f"`x` {NUMBERS}x with dtype complex128"),
    "dates": ({"x": X.astype("datetime64[s]")}, f"`x` {NUMBERS}x with dtype datetime64"),
    "objects as labels": ({"y": Y.astype(object)}, f"`y` {NUMBERS}y with dtype object"),
    "strings as labels": ({"y": Y.astype(str)}, f"`y` {NUMBERS}y with dtype <U"),
    "complex labels": ({"y": Y.astype(complex)}, f"`y` {NUMBERS}y with dtype complex128"),
    "strings for validation": ({"validation_data": (X, Y.astype(str))}, f"`y` {NUMBERS}"),
    "strings as weights": ({"sample_weight": ["a"] * 12}, f"`sample_weight` {NUMBERS}"),
    "several inputs": ({"x": [X, X]}, ONE_INPUT),
    "inputs by name": ({"x": {"a": X}}, ONE_INPUT),
    "several targets": ({"y": [Y, Y]}, "y_true and y_pred have different structures"),
    "no x": ({"x": None}, "`fit` needs input data. Received: x=None"),
    "no y": ({"y": None}, "`fit` needs targets to compute the loss. Received: y=None"),
    "no y for validation": ({"validation_data": (X, None)}, "`validation` needs targets"),
    "an iterator with targets": ({"x": iter(X)}, "When providing `x` as an iterator, `y` should"),
    "targets that are an iterator": ({"y": iter(Y)}, "`y` must be an array. Received: an iterator"),
    "empty": ({"x": X[:0], "y": Y[:0]}, "`fit` needs at least one example. Received: empty data"),
    "empty lists": ({"x": [], "y": []}, "`fit` needs at least one example. Received: empty data"),
    "empty validation": ({"validation_data": (X[:0], Y[:0])}, "`validation` needs at least one"),
    "label too large": (
        {"y": np.where(np.arange(12) == 5, 9, Y)},
        "Received a label value of 9 which is outside the valid range of [0, 3).",
    ),
    "label negative": (
        {"y": np.where(np.arange(12) == 5, -1, Y)},
        "Received a label value of -1 which is outside the valid range of [0, 3).",
    ),
    "label between": ({"y": Y + 0.5}, "needs integer labels. Received: a label value of "),
    "label NaN": (
        {"y": np.full(12, np.nan)},
        "needs integer labels. Received: a label value of nan",
    ),
    "label for validation": (
        {"validation_data": (X, Y + 1)},
        "Received a label value of 3 which is outside the valid range of [0, 3).",
    ),
    "weight NaN": ({"sample_weight": np.full(12, np.nan)}, "`sample_weight` must be finite"),
}
NUMBERS_OUT_OF_RANGE: dict[str, tuple[dict[str, Any], str]] = {
    **{
        f"{name}={value!r}": ({name: value}, f"Received: {name}={value!r}")
        for name, values in {
            "batch_size": (0, -1, 2.5, 6.0, True, "6", np.float32(6), [6]),
            "validation_batch_size": (0, -1, 2.5),
            "epochs": (-1, 1.5, "2"),
            "initial_epoch": (-1, 0.5),
            "steps_per_epoch": (0, -1, 1.5),
            "validation_steps": (0, -1, 1.5),
            "validation_freq": (0, -1, 1.5),
            "validation_split": (-0.1, 1.0, 1.5, "0.2"),
            "verbose": (3, "loud"),
        }.items()
        for value in values
    },
    "shuffle as a word": (
        {"shuffle": "batch"},
        "`shuffle` must be True or False. Received: shuffle=",
    ),
    "validation_freq of epoch 0": ({"validation_freq": [0, 2]}, "Received: validation_freq=0"),
    "validation_split that leaves nothing": (
        {"validation_split": 0.99},
        "Training data contains 12 samples, which is not sufficient to split it",
    ),
    "validation_data of one": (
        {"validation_data": (X,)},
        "`validation_data` must be a tuple (x, y)",
    ),
    "validation_data of no tuple": (
        {"validation_data": X},
        "`validation_data` must be a tuple (x, y)",
    ),
    "two kinds of weights": (
        {"class_weight": {0: 1.0}, "sample_weight": np.ones(12)},
        "`class_weight` and `sample_weight` cannot be given at the same time",
    ),
    "class weights of no dict": ({"class_weight": [1.0]}, "`class_weight` must be a dict"),
}


@pytest.fixture(autouse=True)
def clean_state(shared: Any, clean_names: None) -> None:
    """Let devices and models stay from row to row."""


@pytest.mark.behaviour("empty-data", "batch-size-zero", "cardinality", "label-values")
@cases(
    ("change", "message"),
    [*DATA.values(), *NUMBERS_OUT_OF_RANGE.values()],
    ids=[*DATA, *NUMBERS_OUT_OF_RANGE],
    clean=False,
)
def test_fit(
    change: dict[str, Any],
    message: str,
    strategy: mr.MirroredStrategy,
    make_model: Callable[..., mr.Model],
    train: Callable[..., mr.callbacks.History],
    check_refused: Callable[..., BaseException],
) -> None:
    if "validation_freq" in change or "validation_steps" in change:
        change = {"validation_data": (X, Y), **change}

    def act(model: mr.Model) -> None:
        history = model.history
        try:
            train(model, **change)
        finally:
            assert model.history is history

    check_refused(make_model(strategy), act, ValueError, message)


def test_what_is_refused_draws_no_random_numbers(
    strategy: mr.MirroredStrategy,
    make_model: Callable[..., mr.Model],
    train: Callable[..., mr.callbacks.History],
) -> None:
    model = make_model(strategy)
    mr.random.set_seed(7)
    expected = mr.random.uniform((3,)).numpy().tolist()
    mr.random.set_seed(7)
    refused = 0
    for change, _ in (*DATA.values(), *NUMBERS_OUT_OF_RANGE.values()):
        try:
            train(model, **{"shuffle": True, **change})
        except ValueError:
            refused += 1
    assert refused > 60
    assert mr.random.uniform((3,)).numpy().tolist() == expected


Dataset = mr.data.Dataset


def rows(*arrays: Any) -> mr.data.Dataset:
    return Dataset.from_tensor_slices(arrays or (X, Y))


def batches(*arrays: Any) -> mr.data.Dataset:
    return rows(*arrays).batch(6)


UNBATCHED = "needs batches: the first axis of every array must be the axis of examples"
# What is given instead of arrays, other arguments, and what the error says.
STREAMS: dict[str, tuple[Callable[[], Any], dict[str, Any], str]] = {
    "targets beside": (batches, {"y": Y}, "as a Dataset, `y` should not be passed. Instead, the"),
    "weights beside": (batches, {"sample_weight": Y}, "`sample_weight` should not be passed"),
    "part to validate on": (
        batches,
        {"validation_split": 0.5},
        "Argument `validation_split` is only supported for tensors or NumPy arrays",
    ),
    "single examples": (rows, {}, f"Batch 0 of the data (counted from 0): `fit` {UNBATCHED}"),
    "single examples and targets of rank 1": (
        lambda: rows(X, np.eye(5)[np.arange(12) % 5]),
        {},
        UNBATCHED,
    ),
    "single examples for validation": (batches, {"validation_data": rows()}, UNBATCHED),
    "other numbers of examples": (lambda: iter([(X, Y[:5])]), {}, UNBATCHED),
    "no batch": (lambda: batches().take(0), {}, "`fit` needs at least one batch. Received: a Data"),
    "no batch of a generator": (lambda: iter([]), {}, "at least one batch. Received: a list_it"),
    "an empty batch": (lambda: iter([(X[:0], Y[:0])]), {}, "`fit` needs at least one example"),
    "no batch for validation": (
        batches,
        {"validation_data": batches().skip(9)},
        "`validation` needs at least one batch",
    ),
    "no end": (lambda: batches().repeat(), {}, "`fit` needs `steps_per_epoch` for a dataset that"),
    "no end of a cycle": (
        lambda: itertools.cycle([(X, Y)]),
        {},
        "`fit` needs `steps_per_epoch` for a dataset that",
    ),
    "no end of validation": (
        batches,
        {"validation_data": batches().repeat()},
        "`validation` needs `validation_steps` for a dataset that never ends",
    ),
    "no targets": (lambda: batches(X), {}, "`fit` needs batches of (x, y) or (x, y, sample_weig"),
    "a dict": (lambda: iter([{"x": X, "y": Y}]), {}, "`fit` needs batches of (x, y) or"),
    "a tuple of one": (lambda: iter([(X,)]), {}, "The loss needs targets. Received: a batch"),
    "no targets for validation": (
        batches,
        {"validation_data": batches(X)},
        "`validation` needs batches of (x, y)",
    ),
    "shapes": (lambda: batches(X[:, :4], Y), {}, FITS_NOT),
    "shapes for validation": (
        batches,
        {"validation_data": batches(X[:, :4], Y)},
        f"Batch 0 of the data (counted from 0): {FITS_NOT}",
    ),
    "labels": (
        lambda: batches(X, Y + 1),
        {},
        "Batch 0 of the data (counted from 0): Received a la",
    ),
    "labels for validation": (
        batches,
        {"validation_data": batches(X, Y + 1)},
        "Received a label value of 3",
    ),
    "strings": (lambda: iter([(X, Y.astype(str))]), {}, f"`y` {NUMBERS}y with dtype <U"),
    "weights that are not finite": (
        lambda: batches(X, Y, np.full(12, np.nan)),
        {},
        "`sample_weight` must be finite",
    ),
    "two kinds of weights": (
        lambda: batches(X, Y, np.ones(12)),
        {"class_weight": {0: 1.0}},
        "`class_weight` and `sample_weight` cannot be given at the same time",
    ),
    "steps": (batches, {"steps_per_epoch": 0}, "Received: steps_per_epoch=0"),
    "ragged rows": (
        lambda: iter([([[1.0] * 5, [1.0] * 4], Y[:2])]),
        {},
        "Batch 0 of the data (counted from 0): `x` is not an array. Can't convert non-rectangular",
    ),
}


@pytest.mark.behaviour("unbatched-dataset", "label-values")
@cases(("data", "change", "message"), STREAMS.values(), ids=STREAMS, clean=False)
def test_fit_on_streams(
    data: Callable[[], Any],
    change: dict[str, Any],
    message: str,
    strategy: mr.MirroredStrategy,
    make_model: Callable[..., mr.Model],
    check_refused: Callable[..., BaseException],
) -> None:
    def act(model: mr.Model) -> None:
        history = model.history
        try:
            model.fit(data(), verbose=0, **change)
        finally:
            assert model.history is history

    check_refused(make_model(strategy), act, ValueError, message)


# The second batch of an epoch, and what the error says of it.
SECOND: dict[str, tuple[tuple[Any, ...], str]] = {
    "label": ((X[6:], Y[6:] + 3), "Received a label value of"),
    "shape": ((X[6:, :4], Y[6:]), FITS_NOT),
    "numbers of examples": ((X[6:], Y[7:]), UNBATCHED),
    "strings": ((X[6:].astype(str), Y[6:]), f"`x` {NUMBERS}"),
    "targets": ((X[6:],), "needs batches of (x, y)"),
    "weights": ((X[6:], Y[6:], np.full(6, np.inf)), "`sample_weight` must be finite"),
    "no examples": ((X[:0], Y[:0]), "needs at least one example"),
    "inputs in a dict": (({"a": X[6:]}, Y[6:]), "Its x has a structure different from the fir"),
    "targets in a list": ((X[6:], [Y[6:]]), "Its y has a structure different from the first"),
    "ragged rows": (([[1.0] * 5, [1.0] * 4], Y[6:8]), "Can't convert non-rectangular"),
    "missing values": (([[1.0, None, 1.0, 1.0, 1.0]], Y[6:7]), f"`x` {NUMBERS}x with dtype object"),
}


@cases(("second", "message"), SECOND.values(), ids=SECOND, clean=False)
def test_a_batch_that_does_not_fit(
    second: tuple[Any, ...],
    message: str,
    strategy: mr.MirroredStrategy,
    make_model: Callable[..., mr.Model],
    check_refused: Callable[..., BaseException],
) -> None:
    """The batches before it are trained on; then the error tells which one it is."""

    def act(model: mr.Model) -> None:
        model.fit(iter([(X[:6], Y[:6]), second, (X[6:], Y[6:])]), verbose=0)

    check_refused(make_model(strategy), act, ValueError, "Batch 1 of the data", message, steps=1)


@cases("case", ["shape", "inputs in a dict", "ragged rows"], clean=False)
@cases("method", ["evaluate", "predict"], clean=False)
def test_a_batch_that_does_not_fit_elsewhere(
    method: str,
    case: str,
    strategy: mr.MirroredStrategy,
    make_model: Callable[..., mr.Model],
    check_refused: Callable[..., BaseException],
) -> None:
    second, message = SECOND[case]

    def act(model: mr.Model) -> None:
        getattr(model, method)(iter([(X[:6], Y[:6]), second]), verbose=0)

    check_refused(make_model(strategy), act, ValueError, "Batch 1 of the data", message)


RUNS: dict[str, tuple[dict[str, Any], str]] = {
    "targets": ({"x": batches(), "y": Y}, "`y` should not be passed"),
    "single examples": ({"x": rows()}, "needs batches"),
    "no end": ({"x": batches().repeat()}, "needs `steps` for a dataset that never ends"),
    "no batch": ({"x": batches().take(0)}, "needs at least one batch"),
    "shapes": ({"x": batches(X[:, :4], Y)}, FITS_NOT),
}


@pytest.mark.behaviour("unbatched-dataset")
@cases(
    ("method", "case"),
    [*(("evaluate", case) for case in RUNS), *(("predict", case) for case in [*RUNS][1:])],
    clean=False,
)
def test_evaluate_and_predict_on_streams(
    method: str,
    case: str,
    strategy: mr.MirroredStrategy,
    make_model: Callable[..., mr.Model],
    check_refused: Callable[..., BaseException],
) -> None:
    change, message = RUNS[case]
    check_refused(
        make_model(strategy),
        lambda model: getattr(model, method)(verbose=0, **change),
        ValueError,
        message,
    )


@pytest.mark.behaviour("empty-data", "batch-size-zero")
@cases("method", ["evaluate", "predict"], clean=False)
@cases(
    ("change", "message"),
    [
        ({"x": X[:, :4]}, FITS_NOT),
        ({"x": X.astype(str)}, NUMBERS),
        ({"x": X[:0], "y": Y[:0]}, "needs at least one example"),
        ({"batch_size": 0}, "Received: batch_size=0"),
        ({"batch_size": 1.5}, "Received: batch_size=1.5"),
        ({"steps": 0}, "Received: steps=0"),
        ({"steps": -1}, "Received: steps=-1"),
        ({"verbose": 5}, "Received: verbose=5"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
    clean=False,
)
def test_evaluate_and_predict(
    method: str,
    change: dict[str, Any],
    message: str,
    strategy: mr.MirroredStrategy,
    make_model: Callable[..., mr.Model],
    check_refused: Callable[..., BaseException],
) -> None:
    def act(model: mr.Model) -> None:
        options = {"x": X, "y": Y, "verbose": 0, **change}
        if method == "predict":
            del options["y"]
        getattr(model, method)(**options)

    check_refused(make_model(strategy), act, ValueError, message)


@cases(
    ("change", "message"),
    [
        ({"y": Y + 7}, "outside the valid range"),
        ({"y": np.zeros((12, 2))}, "needs one integer label"),
        ({"validation_data": (X[:, :4], Y)}, "incompatible"),
        ({"steps_per_epoch": 0}, "Received: steps_per_epoch=0"),
        ({"x": batches(X, Y + 7), "y": None, "batch_size": None}, "outside the valid range"),
        ({"x": rows(), "y": None, "batch_size": None}, "needs batches"),
    ],
    ids=["labels", "rank", "validation", "steps", "labels of a dataset", "single examples"],
    clean=False,
)
def test_a_model_that_is_not_built_stays_so(
    change: dict[str, Any],
    message: str,
    strategy: mr.MirroredStrategy,
    train: Callable[..., mr.callbacks.History],
) -> None:
    """The data that were refused do not fix the model's shapes."""
    with strategy.scope():
        model = mr.Sequential([mr.layers.Dense(4, "relu"), mr.layers.Dense(3, "softmax")])
        model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
    with pytest.raises(ValueError, match=message):
        train(model, **change)
    assert (model.built, model.weights, model.metrics[1].metrics) == (False, [], [])
    assert train(model, x=X[:, :2]).epoch == [0]
