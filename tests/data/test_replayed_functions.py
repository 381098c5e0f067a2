"""Functions of datasets that are replayed: the same results, errors and order, and fewer calls."""

import enum
import functools
import itertools
import math
import pickle
import random
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import _nest
from mirrored.data import replayed_functions
from mirrored.data.elements import call_with, to_element
from mirrored.data.replayed_functions import _AFTER, _MOST_SHAPES, ReplayedFunction

Dataset = mr.data.Dataset
COUNT = 3 * _AFTER
SCALE, SIZE, TABLE, SWITCH = 2.0, (8, 8), {"a": 1.0}, False


class Pair(NamedTuple):
    x: Any
    y: Any

    def drawn(self) -> Any:
        return self.x + random.random()


class Scaler:
    scale = 2.0

    def __call__(self, x: Any) -> Any:
        return x * self.scale


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list that gets the element of each call that is not replayed."""
    elements: list[Any] = []

    def call(function: Any, element: Any) -> Any:
        elements.append(element)
        return call_with(function, element)

    monkeypatch.setattr(replayed_functions, "call_with", call)
    return elements


def random_rows(shape: tuple[int, ...], dtype: str = "float32") -> Any:
    numbers = np.random.default_rng(1).normal(0, 40, (COUNT, *shape))
    return numbers.astype(dtype)


def bits(elements: Any) -> Any:
    return [
        [(leaf.dtype, leaf.shape, leaf.tobytes()) for leaf in _nest.flatten(element)]
        for element in elements
    ]


def scaled(x: Any, by: float = SCALE) -> Any:
    return x * by


def doubled(x: Any) -> Any:
    return x * 2.0


doubled.by = 3.0  # type: ignore[attr-defined]


def closes_over(value: Any) -> Callable[[Any], Any]:
    return lambda x: x + value


def counts(x: Any) -> Any:
    global SCALE
    SCALE += 0.0
    return x


def switches(x: Any) -> Any:
    global SWITCH
    SWITCH = not SWITCH
    return x if SWITCH else -x


def catches(x: Any) -> Any:
    try:
        return x.numpy()
    except AttributeError:
        return x


def collects(x: Any, met: list[Any] = []) -> Any:  # noqa: B006
    met.append(None)
    return x * len(met)


def imports(x: Any) -> Any:
    import random as numbers

    return x * numbers.random()


def imports_time(x: Any) -> Any:
    import time

    return x * (time.time() > 0.0)


def recursive(x: Any, depth: int = 3) -> Any:
    return x if depth == 0 else recursive(x + 1.0, depth - 1)


@functools.wraps(np.add)
def looks_like_numpys(x: Any) -> Any:
    return x * TABLE["a"]


class Member(enum.IntEnum):
    TWO = 2


VECTOR, LABELS = random_rows((7,)), np.arange(COUNT) % 5
REPLAYED: dict[str, tuple[Any, Callable[..., Any]]] = {
    "itself": (VECTOR, lambda x: x),
    "scalars": (LABELS, lambda x: x * 2 + 1),
    "a pair": ((VECTOR, LABELS), lambda x, y: (mr.math.log(x), mr.one_hot(y, 5))),
    "a dict": ({"x": VECTOR, "y": LABELS}, lambda row: {"z": mr.exp(row["x"]), **row}),
    "nested": (((VECTOR, LABELS), VECTOR), lambda pair, x: (x - pair[0], {"y": pair[1]})),
    "a list is a tuple": (VECTOR, lambda x: [x, x + 1]),
    "constants": (VECTOR, lambda x: (3, 2.5, np.float64(1.5), mr.ones_like(x), mr.constant([1]))),
    "sums and products": (
        random_rows((6, 6)),
        lambda x: (mr.matmul(x, x), mr.reduce_sum(x), mr.reduce_mean(x, axis=0), mr.nn.softmax(x)),
    ),
    "images": (
        random_rows((5, 4, 3), "uint8"),
        lambda x: mr.image.resize(mr.cast(mr.transpose(x, [1, 0, 2]), np.float32) / 255.0, SIZE),
    ),
    "NumPy's constants": (VECTOR, lambda x: x - np.array([np.pi] * 7, np.float32)),
    "half": (random_rows((3,), "float16"), lambda x: x * x / 3.0),
    "static branches": (VECTOR, lambda x: x if len(x.shape) == 2 else mr.reshape(x, (1, -1))),
    "globals": (VECTOR, lambda x: x * SCALE * np.pi * math.e),
    "another function": (VECTOR, lambda x: tuple([scaled(part, 0.5) for part in (x, x)])),
    "a closure": (VECTOR, closes_over(2.0)),
    "a function within": (VECTOR, lambda x: sum((lambda y: y * SCALE)(part) for part in (x, x))),
}
CALLED: dict[str, Callable[..., Any]] = {
    "NumPy": lambda x: np.asarray(x) + 1,
    "random": lambda x: mr.random.uniform((2,)) + x[0],
    "random brightness": lambda x: mr.image.random_brightness(x, 0.5),
    "random numbers of NumPy": lambda x: x * np.random.random(),
    "random numbers of Python": lambda x: x * random.random(),
    "an import of random": imports,
    "an import": imports_time,
    "a random method": lambda x: Pair(x, x).drawn(),
    "a branch on values": lambda x: x if x[0] > 0 else -x,
    "a number of values": lambda x: x * float(x[0]),
    "shapes that depend on values": lambda x: mr.boolean_mask(x, x > 0),
    "a print": lambda x: print(end="") or x,
    "a print of ops": lambda x: mr.print("", end="") or x,
    "a call of Python": lambda x: mr.numpy_function(np.sin, [x], mr.float32),
    "large": lambda x: mr.reduce_sum(mr.ones((1000, 1000)) * x[0]),
    "a list within": lambda x: (x, [x[0], x[1]]),
    "a counter": counts,
    "a list as default": collects,
    "a switch": switches,
    "text of a tensor": lambda x: x * len(f"{x}"),
    "an error that is caught": catches,
    "a dict of the module": lambda x: x * TABLE["a"],
    "a state of NumPy": lambda x: x * len(np.geterr()),
    "a function that looks like NumPy's": lambda x: looks_like_numpys(x),
    "a number that is a member": lambda x: x * Member.TWO,
    "an array": closes_over(np.zeros(7, np.float32)),
    "an attribute of a function": lambda x: x * doubled.by,
    "an object": Scaler(),
    "a bound argument": functools.partial(scaled, by=3.0),
    "recursion": recursive,
}


@cases("name", REPLAYED)
def test_replays_have_the_bits_of_calls(name: str, called: list[Any]) -> None:
    called.clear()
    arrays, function = REPLAYED[name]
    dataset = Dataset.from_tensor_slices(arrays)
    replayed = bits(dataset.map(function).as_numpy_iterator())
    assert len(called) == _AFTER
    eager = [call_with(function, to_element(x, "")) for x in dataset.as_numpy_iterator()]
    assert replayed == bits(
        to_element(tuple(result) if isinstance(result, list) else result, "") for result in eager
    )


@cases("name", CALLED)
def test_other_functions_are_called_for_each_element(name: str, called: list[Any]) -> None:
    called.clear()
    dataset = Dataset.from_tensor_slices(VECTOR).map(CALLED[name])
    first, again = (bits(dataset.as_numpy_iterator()) for _ in range(2))
    assert len(called) == 2 * COUNT
    assert (first == again) == ("random" not in name and name != "a list as default")


def test_tensors_are_constants_and_variables_are_not(called: list[Any]) -> None:
    vectors, variable = Dataset.from_tensor_slices(VECTOR), mr.Variable(1.0)
    assert len(list(vectors.map(closes_over(mr.constant(2.0))))) == COUNT
    assert len(called) == _AFTER
    for i, row in enumerate(vectors.map(closes_over(variable))):
        assert row[0] == VECTOR[i, 0] + np.float32(i + 1)
        variable.assign_add(1.0)


def test_nothing_is_kept_of_what_a_function_reads() -> None:
    tensor = mr.constant(np.ones(7, np.float32))
    kept = weakref.ref(tensor)
    assert len(list(Dataset.from_tensor_slices(VECTOR).map(closes_over(tensor)))) == COUNT
    del tensor
    assert kept() is None  # Without the collector of cycles.


def test_elements_with_methods_are_not_replayed(called: list[Any]) -> None:
    pairs = Dataset.from_tensor_slices(Pair(VECTOR, VECTOR))
    assert len(list(pairs.map(lambda pair: pair.drawn()))) == len(called)


def test_predicates_are_replayed(called: list[Any]) -> None:
    kept = Dataset.range(COUNT).filter(lambda x: x % 3 == 0)
    ended = Dataset.range(COUNT).take_while(lambda x: x < COUNT - 5)
    assert [int(x) for x in kept] == [*range(0, COUNT, 3)]
    assert len(list(ended)) == COUNT - 5
    assert len(called) == 2 * _AFTER


@cases(("shapes", "are_replayed"), [(_MOST_SHAPES, True), (_MOST_SHAPES + 1, False)])
def test_a_few_shapes_are_replayed(shapes: int, are_replayed: bool, called: list[Any]) -> None:
    def ragged() -> Iterator[Any]:
        yield from (np.full(i % shapes, i) for i in range(2 * _AFTER * shapes))

    called.clear()
    dataset = Dataset.from_generator(ragged, output_types=mr.int64).map(lambda x: x + 1)
    wanted = [(x + 1).tolist() for x in ragged()]
    assert [x.tolist() for x in dataset.as_numpy_iterator()] == wanted
    assert len(called) == len(wanted) // (1 + are_replayed)
    # Later iterators have the recordings, and several at a time use them.
    both = zip(dataset.as_numpy_iterator(), dataset.as_numpy_iterator(), strict=True)
    assert [x.tolist() for x, y in both if x.tolist() == y.tolist()] == wanted
    assert not are_replayed or len(called) == len(wanted) // 2


@cases("kind", ["global", "closure", "builtin", "reset", "default", "keyword", "code"])
def test_what_is_read_and_changes_counts_at_once(
    kind: str, monkeypatch: pytest.MonkeyPatch, reset: Callable[[], None]
) -> None:
    value = 2.0

    def change() -> None:
        nonlocal value
        value = 5.0
        monkeypatch.setitem(globals(), "SCALE", 5.0)
        monkeypatch.setitem(globals(), "max", lambda *_: 5.0)
        defaults.__defaults__ = (5.0,)
        keywords.__kwdefaults__["by"] = 5.0  # type: ignore[index]
        code.__code__ = (lambda x: mr.cast(x, mr.float32) * 5.0).__code__

    def defaults(x: Any, by: float = 2.0) -> Any:
        return mr.cast(x, mr.float32) * by

    def keywords(x: Any, *, by: float = 2.0) -> Any:
        return mr.cast(x, mr.float32) * by

    def code(x: Any) -> Any:
        return mr.cast(x, mr.float32) * 2.0

    function: Callable[[Any], Any] = {
        "global": lambda x: mr.cast(x, mr.float32) * SCALE,
        "closure": lambda x: mr.cast(x, mr.float32) * value,
        "builtin": lambda x: mr.cast(x, mr.float32) * max(1.0, 2.0),
        "reset": lambda x: mr.cast(x, mr.float32) * 2.0,
        "default": defaults,
        "keyword": keywords,
        "code": code,
    }[kind]
    dataset = Dataset.range(COUNT).map(function)
    iterator = iter(dataset)
    assert [float(x) for x in itertools.islice(iterator, 50)] == [2.0 * i for i in range(50)]
    if kind == "reset":
        reset()
        iterator = iter(dataset.skip(50))
    change()
    by = 2.0 if kind == "reset" else 5.0
    assert [float(x) for x in iterator] == [by * i for i in range(50, COUNT)]
    monkeypatch.undo()


def test_errors_name_the_element_and_the_others_come() -> None:
    names = mr.constant([1.0, 2.0, 3.0])
    places = np.zeros(COUNT, np.int32)
    places[[5, COUNT - 9]] = 3
    iterator = iter(Dataset.from_tensor_slices(places).map(lambda i: mr.gather(names, i)))
    seen: list[Any] = []
    for number in (5, COUNT - 9):
        with pytest.raises(mr.errors.InvalidArgumentError) as caught:
            seen.extend(iterator)
        note = f"In Dataset.map, at element {number} (counted from 0)."
        assert caught.value.__notes__ == [note]
    assert len([*seen, *iterator]) == COUNT - 2


def test_nothing_is_read_ahead(made: Any) -> None:
    source = Dataset.from_generator(lambda: map(made.note, range(COUNT)), output_types=mr.int64)
    for number, value in enumerate(source.map(lambda x: x + 1)):
        assert (int(value), made.count) == (number + 1, number + 1)


def test_positions_stay_what_they_are() -> None:
    dataset = Dataset.range(COUNT).shuffle(9, seed=3).map(lambda x: x * 2).batch(4)
    iterator = iter(dataset)
    assert len(list(itertools.islice(iterator, 11))) == 11
    state = iterator.state
    wanted = [x.numpy().tolist() for x in iterator]
    with closing(iter(dataset)) as other:
        other.restore(state)
        assert [x.numpy().tolist() for x in other] == wanted


@cases("around", ["a tape", "a prefetch", "a profile", "a recorder", "a log"])
def test_contexts_change_nothing(around: str, tmp_path: Any) -> None:
    dataset = Dataset.from_tensor_slices(VECTOR).map(lambda x: mr.exp(x) + 1.0)
    wanted = bits(dataset.as_numpy_iterator())
    if around == "a tape":
        with mr.GradientTape():
            found = [x.numpy() for x in dataset]
    elif around == "a prefetch":
        found = [x.numpy() for x in dataset.prefetch(3)]
    elif around == "a profile":
        with mr.profiler.trace(tmp_path / "trace"):
            found = [x.numpy() for x in dataset]
    elif around == "a recorder":
        iterator = iter(dataset)
        step = mr.function(lambda: next(iterator))
        found = [step().numpy() for _ in range(COUNT)]
    else:
        mr.debugging.set_log_device_placement(True)
        found = [x.numpy() for x in dataset]
        mr.debugging.set_log_device_placement(False)
    assert bits(found) == wanted


def test_functions_are_pickled_without_their_recordings(called: list[Any]) -> None:
    function = ReplayedFunction(scaled)
    one = np.ones(1, np.float32)
    for _ in range(COUNT):
        function(one, lambda x: to_element(x, ""))
    assert len(called) == _AFTER
    copy = pickle.loads(pickle.dumps(function))
    assert copy(one, lambda x: to_element(x, "")) == 2.0
