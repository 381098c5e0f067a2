"""What users' functions meet in a pipeline, and the thread of `prefetch`.

What they do wrong reaches the consumer, and the thread ends with it: that none is left is checked
after every test of this folder.
"""

import gc
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from case_table import cases
from forked_programs import run_program

import mirrored as mr
from mirrored.data.dataset_iterators import elements_of

Dataset = mr.data.Dataset
CPU = "/job:localhost/replica:0/task:0/device:CPU:0"


class Point(NamedTuple):
    x: Any
    y: Any


class Broken(Exception):
    """What users' code raises here."""


def breaks_at(number: int) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        if int(x) == number:
            raise Broken(f"at {number}")
        return x >= 0

    return function


@cases("ahead", [0, 1, 5])
@cases("method", ["map", "filter"])
def test_an_error_names_the_method_and_the_element(method: str, ahead: int) -> None:
    dataset = getattr(Dataset.range(9).prefetch(ahead), method)(breaks_at(3))
    with closing(iter(dataset.prefetch(ahead))) as iterator:
        seen: list[Any] = []
        with pytest.raises(Broken, match="at 3") as caught:
            seen.extend(iterator)
        assert len(seen) == 3
        assert len(list(iterator)) == 5
    assert caught.value.__notes__ == [f"In Dataset.{method}, at element 3 (counted from 0)."]


RESULTS: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "nothing": (lambda x: None, TypeError, "What `map_func` returned is not an array of numbers"),
    "a word beside a number": (
        lambda x: (x, ["a", 1]),
        TypeError,
        r"What `map_func` returned\[1\] is not an array",
    ),
    "no parts": (lambda x: (), ValueError, "What `map_func` returned should not be empty"),
    "another structure": (
        lambda x: x if int(x) == 0 else (x, x),
        mr.errors.InvalidArgumentError,
        "What `map_func` returned has a structure different from the elements before it",
    ),
    "another dtype": (
        lambda x: 1 if int(x) == 0 else 1.0,
        mr.errors.InvalidArgumentError,
        "component 0: float32 instead of int32",
    ),
}


@cases(("function", "error", "message"), RESULTS.values(), ids=RESULTS)
def test_results_of_map(
    function: Callable[[Any], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        list(Dataset.range(2).map(function))
    assert "In Dataset.map, at element" in caught.value.__notes__[0]


def test_a_named_tuple_is_one_argument() -> None:
    dataset = Dataset.from_tensor_slices(Point([1, 2], [3, 4])).map(lambda point: point.x + point.y)
    assert [int(each) for each in dataset] == [4, 6]


@cases("result", [1, 2.0, np.array([True])], ids=repr)
def test_a_predicate_returns_a_bool(result: Any) -> None:
    with pytest.raises(ValueError, match=r"`predicate` must return a `mr.bool` scalar tensor"):
        list(Dataset.range(2).filter(lambda x: result))


def test_elements_of_a_batch_have_one_shape(ragged: mr.data.Dataset) -> None:
    assert len(list(ragged.batch(1))) == 4
    batches = iter(ragged.batch(2))
    assert next(batches).numpy().tolist() == [[1, 2], [3, 4]]
    with pytest.raises(
        mr.errors.InvalidArgumentError,
        match=r"Cannot batch tensors with different shapes in component 0. First element had "
        r"shape \[1\] and element 1 had shape \[2\]. It is element 3 of the dataset",
    ):
        next(batches)


def test_elements_of_a_batch_have_one_structure() -> None:
    # What a generator gives is not known before.
    both = Dataset.range(2).concatenate(Dataset.from_generator(lambda: [(0, 1)]))
    with pytest.raises(mr.errors.InvalidArgumentError, match="Element 2 has a structure different"):
        list(both.batch(3))


@cases(
    ("given", "message"),
    [
        ([1, 2], "Cannot unbatch an input with scalar components"),
        (([[1]], [2.0]), "Cannot unbatch an input with scalar components"),
        (([[1, 2]], [[1, 2, 3]]), r"matching leading dimension. Encountered \[2, 3\]"),
    ],
    ids=repr,
)
def test_unbatch_needs_batches(given: Any, message: str) -> None:
    rows = Dataset.from_tensor_slices(given)
    with pytest.raises(ValueError, match=message):
        rows.unbatch()
    made = rows.map(lambda *parts: parts).unbatch()  # What it is made of is not known before.
    with pytest.raises(
        mr.errors.InvalidArgumentError, match="`unbatch` needs arrays with the same first"
    ):
        list(made)


@pytest.mark.parametrize("ahead", [0, 1])
def test_functions_run_on_the_cpu_unseen(
    ahead: int, simulate: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    """In a strategy's scope, under a tape and a device, with GPUs there."""
    simulate(2)
    devices = []

    def function(x: Any) -> Any:
        devices.extend([x.device, (x * 2.0).device, mr.constant(1.0).device])
        return x * 2.0

    dataset = Dataset.from_tensor_slices([1.0, 2.0]).map(function).prefetch(ahead)
    with mr.MirroredStrategy().scope(), mr.device("GPU:1"), mr.GradientTape() as tape:
        variable = mr.constant(3.0)
        tape.watch(variable)
        elements = list(dataset)
        loss = variable * elements[1]
    assert set(devices) == {CPU}
    assert {each.device for each in elements} == {CPU}
    assert tape.gradient(loss, variable).numpy() == 4.0
    assert mr.config.experimental.get_memory_info("GPU:0")["current"] == 0


def test_nobody_writes_into_a_dataset() -> None:
    """What functions and users get cannot change what comes after it."""

    def spoils(x: np.ndarray) -> Any:
        with pytest.raises(ValueError, match="read-only"):
            x += 1
        return x

    cached = Dataset.from_tensor_slices([[1, 2], [3, 4]]).cache()
    for dataset in (cached, cached, cached.batch(1), cached.batch(1)):
        for array in dataset.as_numpy_iterator():
            array += 7
    for element in elements_of(cached._transform):
        spoils(element)
    assert [each.tolist() for each in cached.as_numpy_iterator()] == [[1, 2], [3, 4]]


def test_what_a_function_returns_is_its_own() -> None:
    memory = np.zeros(1, np.int32)

    def function(x: Any) -> np.ndarray:
        memory[0] = int(x)
        return memory

    (batch,) = Dataset.range(3).map(function).batch(3)
    assert batch.numpy().tolist() == [[0], [1], [2]]


# ------------------------------------------------------------------------------ prefetch


def workers() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "mirrored-prefetch"]


@pytest.mark.parametrize("bound", [1, 3])
def test_elements_are_made_ahead_up_to_the_bound(bound: int, made: Any) -> None:
    numbers = Dataset.from_generator(lambda: map(made.note, range(1000)))
    iterator = iter(numbers.prefetch(bound))
    assert made.count == 0
    assert int(next(iterator)) == 0
    made.wait_for(1 + bound)  # One was taken, and so many wait.
    assert int(next(iterator)) == 1
    made.wait_for(2 + bound)
    assert made.count == 2 + bound
    assert len(workers()) == 1


ENDINGS: dict[str, Callable[[Iterator[Any]], Any]] = {
    "closed": lambda iterator: iterator.close(),  # type: ignore[attr-defined]
    "deleted": lambda iterator: None,
    "at the end": lambda iterator: list(iterator),
}


@cases("end", ENDINGS.values(), ids=ENDINGS)
def test_the_thread_ends_with_its_iterator(end: Callable[[Iterator[Any]], Any]) -> None:
    iterator = iter(Dataset.range(50).prefetch(2).batch(2).prefetch(1))
    next(iterator)
    assert len(workers()) == 2
    end(iterator)
    del iterator
    assert workers() == []


def test_the_thread_ends_with_a_loop_that_is_left() -> None:
    for each in Dataset.range(50).prefetch(2):
        if int(each) == 3:
            break
    assert workers() == []

    def fails() -> None:
        for _ in Dataset.range(50).prefetch(2):
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert workers() == []


def test_the_thread_ends_with_an_iterator_in_a_cycle() -> None:
    cycle: list[Any] = [iter(Dataset.range(50).prefetch(2))]
    next(cycle[0])
    cycle.append(cycle)
    del cycle
    gc.collect()
    assert workers() == []


def test_iterators_are_independent() -> None:
    dataset = Dataset.range(20).prefetch(2)
    first, second = iter(dataset), iter(dataset)
    assert [int(next(first)) for _ in range(3)] == [0, 1, 2]
    assert [int(next(second)) for _ in range(2)] == [0, 1]
    assert len(workers()) == 2
    assert [int(each) for each in first] == list(range(3, 20))
    assert int(next(second)) == 2


@cases("error", [KeyError, KeyboardInterrupt, SystemExit])
def test_every_exception_reaches_the_consumer(error: type[BaseException]) -> None:
    def breaks() -> Iterator[int]:
        yield 1
        raise error

    iterator = iter(Dataset.from_generator(breaks).prefetch(3).prefetch(2))
    assert int(next(iterator)) == 1
    with pytest.raises(error) as caught:
        next(iterator)
    assert type(caught.value) is error
    assert workers() == []
    with pytest.raises(StopIteration):
        next(iterator)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_after_a_fork() -> None:
    """A child says that the iterator is not its own, and can make another."""
    dataset = Dataset.range(20).prefetch(2)
    iterator = iter(dataset)
    assert int(next(iterator)) == 0
    child = os.fork()
    if child == 0:
        status = 1
        try:
            next(iterator)
        except RuntimeError as error:
            is_known = "created before the fork" in str(error)
            status = 0 if is_known and [int(each) for each in dataset] == list(range(20)) else 2
        finally:
            del iterator
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert [int(each) for each in iterator] == list(range(1, 20))


def test_exit_with_an_iterator_that_is_not_at_its_end(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import mirrored as mr\n"
        "iterator = iter(mr.data.Dataset.range(10**6).prefetch(2))\n"
        "print(int(next(iterator)))\n"
    )
    done = run_program(program, folder=tmp_path, environment=os.environ)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr


Listed = Callable[[mr.data.Dataset], list[Any]]
ZERO = np.int64(0)


def plain(value: Any) -> Any:
    """Return dtype and value of each tensor of a structure."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    return value.dtype.name, value.numpy().tolist()


REDUCED: dict[str, tuple[Callable[[], Any], Any]] = {
    "a count": (lambda: Dataset.range(5).reduce(0, lambda n, x: n + 1), ("int32", 5)),
    "a sum": (lambda: Dataset.range(5).reduce(ZERO, lambda n, x: n + x), ("int64", 10)),
    "nothing": (lambda: Dataset.range(0).reduce(7, lambda n, x: n + 1), ("int32", 7)),
    "a tuple": (
        lambda: Dataset.range(5).reduce((ZERO, 1.0), lambda s, x: (s[0] + x, s[1] * 2.0)),
        (("int64", 10), ("float32", 32.0)),
    ),
    "a list that is returned": (
        lambda: Dataset.range(3).reduce((0, 1), lambda s, x: [s[1], s[0]]),
        (("int32", 1), ("int32", 0)),
    ),
    "a list that is given": (
        lambda: Dataset.range(3).reduce([0, 1], lambda s, x: s + 1),
        ("int32", [3, 4]),
    ),
    "a dict": (
        lambda: Dataset.range(3).reduce({"a": ZERO}, lambda s, x: {"a": s["a"] + x}),
        {"a": ("int64", 3)},
    ),
    "elements of tuples": (
        lambda: Dataset.from_tensor_slices(([1, 2], [3.0, 4.0])).reduce(0.0, lambda s, e: s + e[1]),
        ("float32", 7.0),
    ),
    "a shape that grows": (
        lambda: Dataset.range(3).reduce([0], lambda s, x: mr.concat([s, [1]], 0)),
        ("int32", [0, 1, 1, 1]),
    ),
}


@cases(("reduce", "expected"), REDUCED.values(), ids=REDUCED)
def test_reduce(reduce: Callable[[], Any], expected: Any) -> None:
    assert plain(reduce()) == expected


def test_scan(listed: Listed) -> None:
    numbers = Dataset.range(1, 5)
    sums = numbers.scan(ZERO, lambda total, x: (total + x, (total + x, {"of": x})))
    assert len(sums) == 4
    assert sums.element_spec == (mr.TensorSpec([], mr.int64), {"of": mr.TensorSpec([], mr.int64)})
    for _ in range(2):
        assert listed(sums) == [(1, {"of": 1}), (3, {"of": 2}), (6, {"of": 3}), (10, {"of": 4})]
    assert listed(numbers.scan((0, 1), lambda s, x: [(s[1], s[0] + s[1]), (s[0], 1)])) == [
        (0, 1),
        (1, 1),
        (1, 1),
        (2, 1),
    ]


def test_scan_draws_from_its_own_stream(listed: Listed) -> None:
    def run(ahead: int) -> list[Any]:
        mr.random.set_seed(2)
        dataset = Dataset.range(3).scan(0, lambda s, x: (s, mr.random.uniform(()))).prefetch(ahead)
        return [listed(dataset), listed(dataset)]

    first, second = run(0)
    assert [first, second] == run(1)
    assert first != second


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no function": (lambda: Dataset.range(3).reduce(0, 5), ValueError, "`reduce_func` must be a"),
    "another dtype": (
        lambda: Dataset.range(3).reduce(0, lambda s, x: x),
        TypeError,
        r"Expected \['int32'\] but got \['int64'\]",
    ),
    "more parts": (
        lambda: Dataset.range(3).reduce(0, lambda s, x: (s, s)),
        mr.errors.InvalidArgumentError,
        "The number of components of the initial state and the new state differ: 1 and 2",
    ),
    "no pair": (
        lambda: list(Dataset.range(3).scan(0, lambda s, x: s)),
        TypeError,
        "`scan_func` should return a pair",
    ),
    "another dtype of scan": (
        lambda: list(Dataset.range(3).scan(0, lambda s, x: (x, x))),
        TypeError,
        "must match the initial state",
    ),
    "recorded": (
        lambda: mr.function(lambda: Dataset.range(3).reduce(0, lambda s, x: s))(),
        mr.errors.OperatorNotAllowedInGraphError,
        "Call it outside",
    ),
    "not one element": (
        lambda: Dataset.range(3).get_single_element(),
        mr.errors.InvalidArgumentError,
        "Dataset had more than one element",
    ),
    "no element": (
        lambda: Dataset.range(0).get_single_element(),
        mr.errors.InvalidArgumentError,
        "Dataset was empty",
    ),
}


@cases(("act", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(act: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        act()
    assert type(caught.value) is error


def test_functions_of_states_are_unseen_by_tapes() -> None:
    with mr.GradientTape() as tape:
        start = mr.constant(1.0)
        tape.watch(start)
        total = Dataset.range(3).reduce(start, lambda s, x: s * 2.0)
    assert float(total) == 8.0
    assert tape.gradient(total, start) is None


def test_one_element() -> None:
    element = Dataset.from_tensors(([1], {"a": 2.0})).get_single_element()
    assert plain(element) == (("int32", [1]), {"a": ("float32", 2.0)})
    assert int(mr.function(lambda: Dataset.range(4, 5).get_single_element() * 2)()) == 8
