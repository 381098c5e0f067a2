"""Keras' `PyDataset`: its batches train as those of a dataset, and its hooks come as in Keras."""

import threading
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored.data.py_dataset import parallel_map

RNG = np.random.default_rng(3)
X = RNG.normal(size=(11, 3)).astype(np.float32)
Y = RNG.integers(0, 2, size=(11, 1))
W = np.linspace(0.5, 1.5, 11).astype(np.float32)
SIZE = 4


class Rows(mr.keras.utils.PyDataset):
    """Batches of the rows above, of so many of X, Y and W, and a log of what is called."""

    def __init__(self, parts: int = 2, log: list[Any] | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.parts, self.log = parts, [] if log is None else log

    def __len__(self) -> int:
        return -(-len(X) // SIZE)

    def __getitem__(self, index: int) -> Any:
        self.log.append(index)
        rows = slice(index * SIZE, (index + 1) * SIZE)
        return tuple(each[rows] for each in (X, Y, W)[: self.parts])

    def on_epoch_begin(self) -> None:
        self.log.append("begin")

    def on_epoch_end(self) -> None:
        self.log.append("end")


class Endless(Rows):
    num_batches = None

    def __getitem__(self, index: int) -> Any:
        return super().__getitem__(index % 3)


def make_model(replicas: int = 1) -> mr.Model:
    mr.keras.utils.set_random_seed(4)
    with mr.MirroredStrategy([f"GPU:{i}" for i in range(replicas)]).scope():
        model = mr.Sequential([mr.layers.Input(shape=(3,)), mr.layers.Dense(1)])
        model.compile(mr.optim.SGD(0.1), "mse", weighted_metrics=["mse"])
    return model


def fitted(data: Any, replicas: int = 1, **options: Any) -> tuple[Any, ...]:
    model = make_model(replicas)
    history = model.fit(data, verbose=0, **{"epochs": 2, "shuffle": False, **options})
    return history.history, [weight.tolist() for weight in model.get_weights()]


@pytest.fixture(autouse=True)
def gpus(simulate: Any) -> None:
    simulate(3)


def rows(parts: int = 2) -> mr.data.Dataset:
    return mr.data.Dataset.from_tensor_slices((X, Y, W)[:parts]).batch(SIZE)


SAME: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "two parts": (Rows, rows, {}),
    "three parts": (lambda: Rows(3), lambda: rows(3), {}),
    "threads": (lambda: Rows(workers=3, max_queue_size=2), rows, {}),
    "a thread": (lambda: Rows(use_multiprocessing=True, max_queue_size=0), rows, {}),
    "without end": (Endless, rows, {"steps_per_epoch": 3}),
    "without end, by threads": (lambda: Endless(workers=2), rows, {"steps_per_epoch": 3}),
    "validation": (Rows, rows, {"validation_data": Rows(3, workers=2)}),
    "class weights": (Rows, rows, {"class_weight": {1: 3.0}}),
}


@pytest.mark.parametrize(("data", "like", "options"), SAME.values(), ids=SAME)
def test_batches_train_as_those_of_a_dataset(data: Any, like: Any, options: Any) -> None:
    expected = {k: rows(3) if k == "validation_data" else v for k, v in options.items()}
    assert fitted(data(), **options) == fitted(like(), **expected)
    assert [each for each in threading.enumerate() if each.name == "mirrored-worker"] == []


def test_each_pass_is_in_another_order_and_the_same_on_any_number_of_replicas() -> None:
    data, again = Rows(), Rows(workers=2)
    history, weights = fitted(data, epochs=5, shuffle=True)
    passes = [data.log[i : i + 3] for i in range(2, len(data.log), 5)]
    assert len({tuple(order) for order in passes}) > 1
    assert [sorted(order) for order in passes] == [[0, 1, 2]] * 5
    others = fitted(again, 3, epochs=5, shuffle=True)
    np.testing.assert_allclose(others[0]["loss"], history["loss"], rtol=1e-5)
    np.testing.assert_allclose(others[1][0], weights[0], rtol=1e-4)


@pytest.mark.behaviour("py-dataset")
def test_hooks_come_as_in_keras() -> None:
    """But that Keras makes batches 0 and 1 for their shapes, where here it is batch 0."""
    log: list[Any] = []

    class Told(mr.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            log.append("epoch")

        def on_test_begin(self, logs: Any = None) -> None:
            log.append("test")

    fitted(Rows(log=log), validation_data=Rows(log=log), callbacks=[Told()])
    one = ["epoch", "begin", 0, 1, 2, "end", "test", "begin", 0, 1, 2, "end"]
    assert log == [0, 0, *one, *one]
    for run in (make_model().evaluate, make_model().predict):
        log.clear()
        run(Rows(log=log), verbose=0)
        assert log == [0, "begin", 0, 1, 2, "end"]
    log.clear()
    fitted(Rows(log=log), steps_per_epoch=1, epochs=3)
    assert log == [0, "begin", 0, "end", "begin", 1, "end", "begin", 2, "end"]


def test_a_dataset_may_change_between_epochs() -> None:
    class Grows(Rows):
        count = 1

        def __len__(self) -> int:
            return self.count

        def on_epoch_end(self) -> None:
            self.count += 1
            super().on_epoch_end()

    data = Grows()
    fitted(data)
    assert data.log == [0, "begin", 0, "end", "begin", 0, 1, "end"]


def test_predictions_are_those_of_inputs_in_order() -> None:
    model = make_model(3)
    expected = model.predict(X, SIZE, verbose=0)
    for data in (Rows(1), Rows(3, workers=2)):
        np.testing.assert_array_equal(model.predict(data, verbose=0), expected)
    np.testing.assert_array_equal(model.predict(Endless(), steps=2, verbose=0), expected[:8])


class Raises(Rows):
    def __getitem__(self, index: int) -> Any:
        if index == 1:
            raise KeyError("lost")
        return super().__getitem__(index)


class Nothing(Rows):
    def __len__(self) -> int:
        return 0


class Odd(Rows):
    def __getitem__(self, index: int) -> Any:
        return "text" if index == 1 else super().__getitem__(index)


class Countless(mr.keras.utils.PyDataset):
    def __getitem__(self, index: int) -> Any:
        return X, Y


REFUSED: dict[str, tuple[Any, dict[str, Any], type[Exception], str]] = {
    "raises": (Raises, {}, KeyError, "lost"),
    "raises in a thread": (lambda: Raises(workers=2), {}, KeyError, "lost"),
    "no batch": (Nothing, {}, ValueError, "needs at least one batch. Received: a Nothing without"),
    "no array": (
        Odd,
        {},
        ValueError,
        r"Batch 1 of the data .* `fit` needs batches: the first axis",
    ),
    "no number": (Countless, {}, NotImplementedError, "implement the `num_batches` property"),
    "no end": (Endless, {}, ValueError, "needs `steps_per_epoch` for a dataset that never ends"),
    "targets": (Rows, {"y": Y}, ValueError, "`y` should not be passed. .* part of the Rows"),
    "weights": (Rows, {"sample_weight": W}, ValueError, "`sample_weight` should not be passed"),
    "split": (Rows, {"validation_split": 0.5}, ValueError, "`validation_split` is only supported"),
    "two weights": (lambda: Rows(3), {"class_weight": {0: 2.0}}, ValueError, "at the same time"),
    "undefined": (mr.keras.utils.PyDataset, {}, NotImplementedError, "You need to implement"),
}


@pytest.mark.parametrize(("data", "options", "kind", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(data: Any, options: Any, kind: type[Exception], message: str) -> None:
    model = make_model()
    with pytest.raises(kind, match=message):
        model.fit(data(), verbose=0, shuffle=False, **options)
    assert [each for each in threading.enumerate() if each.name == "mirrored-worker"] == []
    assert len(model.fit(Rows(workers=2), verbose=0).history["loss"]) == 1


def test_settings() -> None:
    data = Rows(workers=3, use_multiprocessing=True, max_queue_size=5)
    assert (data.workers, data.use_multiprocessing, data.max_queue_size) == (3, True, 5)
    data.workers = 0
    assert data.workers == 0
    assert mr.keras.utils.Sequence is mr.keras.utils.PyDataset
    assert [len(x) for x, _ in Rows()] == [4, 4, 3]
    for name in ("workers", "max_queue_size"):
        with pytest.raises(ValueError, match=f"`{name}`"):
            Rows(**{name: -1})


def test_a_class_that_forgot_its_super_is_warned_once() -> None:
    class Forgets(Rows):
        def __init__(self) -> None:
            self.parts, self.log = 2, []

    data = Forgets()
    with pytest.warns(UserWarning, match=r"should call `super\(\).__init__\(\*\*kwargs\)`"):
        assert data.workers == 1
    assert fitted(data) == fitted(Rows())


def alive() -> int:
    return sum(thread.name == "mirrored-worker" for thread in threading.enumerate())


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("most", [1, 2, 50])
def test_results_are_in_order_and_no_more_are_made_than_asked(workers: int, most: int) -> None:
    given: list[int] = []

    def values() -> Any:
        for number in range(20):
            given.append(number)
            yield number

    for count, made in enumerate(parallel_map(str, values(), workers, most), 1):
        assert made == str(count - 1)
        assert len(given) <= count + most
    assert count == 20
    assert alive() == 0


def test_threads_work_side_by_side() -> None:
    meeting = threading.Barrier(3, timeout=30)
    assert list(parallel_map(lambda _: meeting.wait() < 3, range(3), 3, 3)) == [True] * 3


def test_what_goes_wrong_comes_where_it_belongs_and_ends_the_threads() -> None:
    made = parallel_map(lambda each: 1 // each, [2, 1, 0, 3], 2, 4)
    assert [next(made), next(made)] == [0, 1]
    with pytest.raises(ZeroDivisionError):
        next(made)
    assert alive() == 0
    assert list(made) == []


def test_leaving_ends_the_threads() -> None:
    made = parallel_map(abs, range(100), 2, 3)
    assert next(made) == 0
    assert alive() == 2
    made.close()
    assert alive() == 0
