"""`fit`, `evaluate` and `predict` on datasets and generators: as on arrays of the same batches."""

import itertools
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr

Dataset = mr.data.Dataset
pytestmark = pytest.mark.usefixtures("one_blas_thread")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(14, 3))
Y = RNG.normal(size=(14, 2)).astype(np.float32)
W = RNG.random(size=14)
BATCH = 4  # The last batch of a pass has two examples: fewer than there are replicas.
# Either way to run steps; how both do on any number of replicas is in `test_recorded_parity.py`.
EITHER = pytest.mark.parametrize(
    ("eager", "strategy"),
    [(True, 1), (False, 3)],
    ids=["eager", "recorded"],
    indirect=["strategy"],
)


@pytest.fixture
def make(strategy: mr.MirroredStrategy) -> Callable[..., mr.Model]:
    """Return ``make(eager)``: a compiled model, the same each time."""

    def make(eager: bool = False, **compile: Any) -> mr.Model:
        mr.random.set_seed(1)
        with strategy.scope():
            model = mr.Sequential([mr.layers.Input((3,)), mr.layers.Dense(4, "tanh")])
            model.add(mr.layers.Dropout(0.2))
            model.add(mr.layers.Dense(2))
            optimizer = mr.optim.SGD(0.1, momentum=0.9)
            options: dict[str, Any] = {"optimizer": optimizer, "loss": "mse"}
            options["metrics"] = ["mse"]
            model.compile(**{**options, **compile}, run_eagerly=eager)
        mr.random.set_seed(2)
        return model

    return make


@pytest.fixture(scope="module")
def once() -> Callable[..., Any]:
    """Return ``once(key, compute)``: what several rows are compared with is computed for one."""
    computed: dict[Any, Any] = {}

    def once(key: Any, compute: Callable[[], Any]) -> Any:
        if key not in computed:
            computed[key] = compute()
        return computed[key]

    return once


def state(model: mr.Model) -> list[bytes]:
    local = model.distribute_strategy.experimental_local_results
    variables = [*model.variables, *model.optimizer.variables]
    return [copy.numpy().tobytes() for variable in variables for copy in local(variable)]


def rows(*arrays: Any) -> mr.data.Dataset:
    return Dataset.from_tensor_slices(arrays or (X, Y)).batch(BATCH)


def generator(passes: int = 1) -> Iterator[Any]:
    """Yield the batches, all of one size in the same memory."""
    memory = np.empty((BATCH, 3)), np.empty((BATCH, 2), np.float32)
    for _ in range(passes):
        for begin in range(0, len(X), BATCH):
            count = min(BATCH, len(X) - begin)
            for part, array in zip(memory, (X, Y), strict=True):
                part[:count] = array[begin : begin + count]
            yield tuple(part[:count] for part in memory)


class Iterable:
    """Gives the batches again each time."""

    def __iter__(self) -> Iterator[Any]:
        for x, y in generator():
            yield [mr.constant(x), y]  # A list of arrays is a batch too.


# What is given, other arguments, and those of `fit` on arrays that come to the same.
SAME: dict[str, tuple[Callable[[], Any], dict[str, Any], dict[str, Any]]] = {
    "rows": (rows, {}, {}),
    "one by one": (lambda: rows().map(lambda x, y: (x, y)).prefetch(2).cache(), {}, {}),
    "a generator": (lambda: generator(2), {"steps_per_epoch": 4}, {}),
    "an iterable": (Iterable, {}, {}),
    "weights": (lambda: rows(X, Y, W), {}, {"sample_weight": W}),
    "repeated": (lambda: rows().repeat(), {"steps_per_epoch": 4}, {}),
    "fewer steps": (lambda: rows().repeat(), {"steps_per_epoch": 2}, {"steps_per_epoch": 2}),
    "an epoch ends with the data": (rows, {"steps_per_epoch": 2}, {"steps_per_epoch": 2}),
    "validation arrays": (
        rows,
        {"validation_data": (X, Y), "validation_batch_size": 5},
        {"validation_data": (X, Y), "validation_batch_size": 5},
    ),
    "a dataset for validation": (
        rows,
        {"validation_data": rows(X, Y, W)},
        {"validation_data": (X, Y, W)},
    ),
    "a generator for validation": (
        rows,
        {"validation_data": generator(2), "validation_steps": 4},
        {"validation_data": (X, Y)},
    ),
    "steps for validation": (
        rows,
        {"validation_data": rows().repeat(), "validation_steps": 2},
        {"validation_data": (X, Y), "validation_steps": 2},
    ),
}


@pytest.mark.behaviour("generators")
@EITHER
def test_the_bits_are_those_of_arrays(eager: bool, make: Callable[..., mr.Model]) -> None:
    """Fit after fit, of a model that is given one thing after the other, and of one on arrays."""
    model, reference = make(eager), make(eager)
    # Eager steps are given their batches by the same code, whatever these are made of.
    for name, (data, options, like) in list(SAME.items())[:: 3 if eager else 1]:
        if isinstance(options.get("validation_data"), Iterator):
            options = {**options, "validation_data": generator(2)}  # Each is read once.
        mr.random.set_seed(3)
        history = model.fit(data(), epochs=2, verbose=0, **options)
        mr.random.set_seed(3)
        expected = reference.fit(X, Y, BATCH, epochs=2, verbose=0, shuffle=False, **like)
        assert history.history == expected.history, name
        assert state(model) == state(reference), name
        assert history.epoch == [0, 1], name


@EITHER
def test_class_weights(eager: bool, make: Callable[..., mr.Model]) -> None:
    labels = RNG.integers(0, 2, size=len(X))
    models = [make(eager, loss="sparse_categorical_crossentropy", metrics=[]) for _ in range(2)]
    models[0].fit(rows(X, labels), class_weight={0: 3.0}, verbose=0)
    models[1].fit(X, labels, BATCH, class_weight={0: 3.0}, shuffle=False, verbose=0)
    assert state(models[0]) == state(models[1])


@pytest.mark.parametrize("steps_per_execution", [1, 3, "auto"])
def test_batches_of_changing_shapes(
    steps_per_execution: Any, make: Callable[..., mr.Model], once: Callable[..., Any]
) -> None:
    """In any order and number: each is its own step."""
    sizes = [2, 2, 3, 1, 1, 1, 2, 2]
    cuts = np.cumsum([0, *sizes])
    batches = [(X[a:b], Y[a:b]) for a, b in itertools.pairwise(cuts)]
    model = make(steps_per_execution=steps_per_execution)
    history = model.fit(iter(batches), verbose=0)

    def one_by_one() -> tuple[float, list[bytes]]:
        reference, total = make(), 0.0
        for x, y in batches:
            total += reference.fit(x, y, shuffle=False, verbose=0).history["loss"][0] * len(x)
        return total / sum(sizes), state(reference)

    loss, expected = once("changing shapes", one_by_one)
    assert history.history["loss"][0] == pytest.approx(loss)
    assert state(model)[: len(model.weights)] == expected[: len(model.weights)]


@EITHER
def test_evaluate_and_predict(eager: bool, make: Callable[..., mr.Model]) -> None:
    model = make(eager)
    expected = model.evaluate(X, Y, BATCH, verbose=0)
    outputs = model.predict(X, BATCH, verbose=0)
    for data in (rows(), generator(), Iterable(), rows().prefetch(1)):
        assert model.evaluate(data, verbose=0) == expected
    for data in (rows(), generator(), rows(X).map(lambda x: x), (x for x, _ in generator())):
        np.testing.assert_array_equal(model.predict(data, verbose=0), outputs)
    np.testing.assert_array_equal(model.predict(rows(), steps=2, verbose=0), outputs[: 2 * BATCH])
    two = model.evaluate(rows().repeat(), steps=2, verbose=0)
    assert two == model.evaluate(X[: 2 * BATCH], Y[: 2 * BATCH], BATCH, verbose=0)


def test_a_shuffled_dataset_has_another_order_each_epoch(make: Callable[..., mr.Model]) -> None:
    seen: list[list[float]] = []

    def note(x: Any, y: Any) -> Any:
        seen[-1].append(float(x[0, 0]))
        return x, y

    class Epoch(mr.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            seen.append([])

    seen.append([])
    data = Dataset.from_tensor_slices((X, Y)).shuffle(20, seed=1).batch(1).map(note)
    make().fit(data, epochs=2, verbose=0, callbacks=Epoch())
    # The first batch of an epoch is asked for when the epoch begins.
    assert sorted(seen[0]) == sorted(seen[1]) == sorted(X[:, 0].astype(np.float64).tolist())
    assert seen[0] != seen[1]


# ------------------------------------------------------------------------------ the end of the data


ALL, ONE = "", "this epoch of "
ENDS: dict[str, tuple[Callable[[], Any], dict[str, Any], list[int], str]] = {
    # What is given, other arguments, the steps of each epoch, as in Keras 3.15, and what ends.
    "in an epoch": (lambda: rows().repeat(2), {"steps_per_epoch": 5}, [5, 3, 5], ONE),
    "in each epoch": (rows, {"steps_per_epoch": 9}, [4, 4, 4], ONE),
    "in the middle of an epoch": (rows, {"steps_per_epoch": 3}, [3, 1, 3], ONE),
    "arrays": (lambda: (X, Y), {"steps_per_epoch": 3, "batch_size": BATCH}, [3, 1, 3], ONE),
    "a generator": (generator, {}, [4], ALL),
    "a generator in an epoch": (generator, {"steps_per_epoch": 3}, [3, 1], ALL),
}


@pytest.mark.behaviour("data-that-end")
@pytest.mark.parametrize(("data", "options", "steps", "what"), ENDS.values(), ids=ENDS)
def test_data_that_end_end_the_epoch(
    data: Callable[[], Any],
    options: dict[str, Any],
    steps: list[int],
    what: str,
    make: Callable[..., mr.Model],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """And the training, where they cannot be iterated over again."""
    taken: list[int] = []

    class Counts(mr.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            taken.append(int(self.model.optimizer.iterations))

    given = data()
    arguments = given if isinstance(given, tuple) else (given,)
    history = make().fit(
        *arguments, verbose=0, epochs=3, validation_data=rows(), callbacks=[Counts()], **options
    )
    assert np.diff([0, *taken]).tolist() == steps
    assert len(history.history["val_loss"]) == len(steps)
    warnings = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert warnings[0].startswith(f"Your input ran out of data; interrupting {what}`fit`. Make")


STEPS: dict[str, tuple[dict[str, Any], int]] = {
    "steps alone": ({"steps_per_epoch": 2}, 7),  # Half of the examples, as in Keras.
    "steps and a size": ({"steps_per_epoch": 2, "batch_size": 4}, 4),
    "a size alone": ({"batch_size": 6}, 6),
    "neither": ({}, 14),
}


@cases(("options", "size"), STEPS.values(), ids=STEPS)
def test_the_batch_size_follows_from_the_steps(options: dict[str, Any], size: int) -> None:
    sizes: list[int] = []

    class Sees(mr.layers.Layer):
        def call(self, inputs: mr.Tensor) -> mr.Tensor:
            sizes.append(inputs.shape[0])
            return inputs

    model = mr.Sequential([mr.layers.Input(shape=(3,)), Sees(), mr.layers.Dense(2)])
    model.compile("sgd", "mse", run_eagerly=True)
    steps = {name.removesuffix("_per_epoch"): value for name, value in options.items()}
    for run in (
        lambda: model.fit(X, Y, verbose=0, **options),
        lambda: model.evaluate(X, Y, verbose=0, **steps),
        lambda: model.predict(X, verbose=0, **steps),
    ):
        sizes.clear()
        run()
        assert sizes[0] == size


def test_validation_data_that_end(
    make: Callable[..., mr.Model], caplog: pytest.LogCaptureFixture
) -> None:
    history = make().fit(X, Y, validation_data=generator(), epochs=4, verbose=0).history
    assert (len(history["loss"]), len(history["val_loss"])) == (4, 1)
    assert caplog.text.count("interrupting `validation`") == 1


def test_steps_past_the_end(
    make: Callable[..., mr.Model], caplog: pytest.LogCaptureFixture
) -> None:
    model = make()
    assert model.evaluate(rows(), steps=9, verbose=0) == model.evaluate(X, Y, BATCH, verbose=0)
    assert "interrupting `evaluate`" in caplog.text
    assert len(model.predict(generator(), steps=9, verbose=0)) == len(X)
    assert "interrupting `predict`" in caplog.text


def test_steps_past_the_end_of_arrays(
    make: Callable[..., mr.Model], caplog: pytest.LogCaptureFixture
) -> None:
    """They warn as those of a dataset do, and as Keras' do; the epoch is a shorter one."""
    model, steps = make(), -(-len(X) // BATCH) + 1
    expected = model.evaluate(X, Y, BATCH, verbose=0)
    assert model.evaluate(X, Y, BATCH, steps=steps, verbose=0) == expected
    assert len(model.predict(X, BATCH, steps=steps, verbose=0)) == len(X)
    other = make()
    history = model.fit(X, Y, BATCH, epochs=2, shuffle=False, verbose=0).history
    past = {"steps_per_epoch": steps, "validation_data": (X, Y), "validation_batch_size": BATCH}
    longer = other.fit(
        X, Y, BATCH, epochs=2, shuffle=False, validation_steps=steps, **past, verbose=0
    )
    assert longer.history["loss"] == history["loss"]
    assert longer.history["val_loss"][-1] == model.evaluate(X, Y, BATCH, verbose=0)[0]
    for use in ("`evaluate`", "`predict`", "this epoch of `fit`", "`validation`"):
        assert caplog.text.count(f"interrupting {use}") == 1


def test_no_more_is_read_than_steps_ask_for(make: Callable[..., mr.Model]) -> None:
    """A generator goes on in the next call where the last one left it."""
    model, reference = make(), make()
    batches = generator(2)
    for steps in (3, 1, 4):
        model.fit(batches, steps_per_epoch=steps, verbose=0)
    assert next(batches, None) is None
    for begin, end in ((0, 12), (12, 14), (0, 14)):
        reference.fit(X[begin:end], Y[begin:end], BATCH, shuffle=False, verbose=0)
    assert state(model)[:3] == state(reference)[:3]


# ------------------------------------------------------------------------------ what is shown


class Seen(mr.callbacks.Callback):
    """Notes the numbers of the batches, and what is known of their number."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[int] = []

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.batches.append(batch)


@pytest.mark.parametrize(
    ("data", "steps"), [(rows, 4), (generator, None), (lambda: rows().filter(any_), None)]
)
def test_callbacks(
    data: Callable[[], Any], steps: int | None, make: Callable[..., mr.Model]
) -> None:
    seen = Seen()
    make().fit(data(), verbose=0, callbacks=seen)
    assert seen.batches == [0, 1, 2, 3]
    assert seen.params == {"verbose": 0, "epochs": 1, "steps": steps}


def any_(x: Any, y: Any) -> Any:
    return np.True_


def test_stop_training_stops_reading(make: Callable[..., mr.Model]) -> None:
    class Stops(mr.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.model.stop_training = batch == 1

    batches = generator()
    make().fit(batches, verbose=0, callbacks=Stops())
    assert len(list(batches)) == 2


# ------------------------------------------------------------------------------ what goes wrong


class Broken(Exception):
    """What users' code raises here."""


@pytest.mark.parametrize(
    ("number", "ahead", "eager", "strategy"),
    [
        *((number, ahead, False, 3) for number, ahead in [(0, 2), (1, 0), (3, 2), (6, 0), (6, 2)]),
        *((0, 0, True, 1), (6, 2, True, 1)),
    ],
    indirect=["strategy"],
)
def test_an_error_of_the_data(
    number: int,
    ahead: int,
    eager: bool,
    once: Callable[..., Any],
    make: Callable[..., mr.Model],
) -> None:
    """All batches before it are trained on, and no thread is left."""
    calls = []

    def breaks(x: Any, y: Any) -> Any:
        calls.append(1)
        if len(calls) == number + 1:
            raise Broken
        return x, y

    model = make(eager)
    mr.random.set_seed(4)
    with pytest.raises(Broken) as caught:
        model.fit(rows().map(breaks).prefetch(ahead), epochs=3, verbose=0)
    assert f"at element {number % 4} (counted from 0)" in caught.value.__notes__[0]
    assert threading.enumerate() == [threading.main_thread()]
    assert int(model.optimizer.iterations) == number

    def without_error() -> list[bytes]:
        reference = make(eager)
        mr.random.set_seed(4)
        if number:
            reference.fit(rows().repeat(), steps_per_epoch=number, verbose=0)
        return state(reference)

    assert state(model) == once((eager, number), without_error)


def test_threads_end_with_fit(make: Callable[..., mr.Model]) -> None:
    class Raises(mr.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            raise Broken

    model, data = make(), rows().prefetch(1).repeat().prefetch(1)
    before = threading.enumerate()
    with pytest.raises(Broken):
        model.fit(data, steps_per_epoch=2, verbose=0, callbacks=Raises(), validation_data=(X, Y))
    model.fit(data, steps_per_epoch=2, verbose=0, validation_data=data, validation_steps=1)
    model.evaluate(data, steps=1, verbose=0)
    model.predict(data, steps=1, verbose=0)
    with pytest.raises(ValueError, match="validation"):
        model.fit(data, steps_per_epoch=2, verbose=0, validation_data=data)
    assert threading.enumerate() == before


@pytest.mark.usefixtures("python_interrupts")
@pytest.mark.parametrize("ahead", [0, 1])
def test_ctrl_c(ahead: int, make: Callable[..., mr.Model]) -> None:
    """It comes while data are made: in this thread, or in another one while this one may wait."""
    calls = []

    def interrupts(x: Any, y: Any) -> Any:
        calls.append(1)
        if len(calls) == 27:
            os.kill(os.getpid(), signal.SIGINT)
        return x, y

    model, reference = make(), make()
    data = rows().repeat().map(interrupts).prefetch(ahead)
    with pytest.raises(KeyboardInterrupt):
        model.fit(data, steps_per_epoch=10**6, verbose=0)
    assert threading.enumerate() == [threading.main_thread()]
    steps = int(model.optimizer.iterations)
    reference.fit(rows().repeat(), steps_per_epoch=steps, verbose=0)
    assert state(model) == state(reference)
