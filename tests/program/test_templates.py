"""A recorded function serves variables of one kind without running Python anew, bit for bit."""

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr

SUM = mr.VariableAggregation.SUM


def variable(*values: float, **options: Any) -> mr.Variable:
    return mr.Variable(np.array(values, np.float32), **options)


def counted(function: Callable[..., Any]) -> tuple[Any, list[int]]:
    """Return a recorded function, and a list as long as the number of its runs of Python."""
    runs: list[int] = []

    def run(*args: Any, **kwargs: Any) -> Any:
        runs.append(1)
        return function(*args, **kwargs)

    return mr.function(run), runs


def squared_gradient(v: Any, w: Any, x: Any) -> Any:
    with mr.GradientTape() as tape:
        y = mr.reduce_sum(v * v * w * x)
    return tape.gradient(y, [v, w])


def swapped(v: Any, w: Any, x: Any) -> Any:
    old = v + 0.0
    v.assign(w)
    w.assign(old)
    return old * x


def halved(v: Any, w: Any, x: Any) -> Any:
    return mr.while_loop(
        lambda i, _: i < 3, lambda i, y: (i + 1, y * 0.5 + w), (0, v + x), maximum_iterations=3
    )[1]


# Functions of two variables and a tensor, all of four numbers.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "reads": lambda v, w, x: v * x + w,
    "parts": lambda v, w, x: mr.concat([v[1:3], w[:1], x[3:]], 0),
    "none of the first": lambda v, w, x: w * x,
    "the second itself": lambda v, w, x: (x, w),
    "assigned": lambda v, w, x: (v.assign_add(x) * w, w.assign_sub(v)),
    "a part assigned": lambda v, w, x: (v[1:3].assign(w[:2] * 2.0), v * x)[1],
    "swapped": swapped,
    "gradients": squared_gradient,
    "a branch": lambda v, w, x: mr.cond(x[0] > 0.0, lambda: v.assign(w), lambda: w.assign(v)),
    "a loop": halved,
    "drawn": lambda v, w, x: v.assign(mr.random.uniform((4,), seed=3) * w) * x,
}


def run_all(function: Callable[..., Any], recorded: Callable[..., Any]) -> list[Any]:
    """Return what calls with several variables give, and what they leave."""
    mr.random.set_seed(7)
    rng = np.random.default_rng(1)
    # Some lie together in memory, as those of a model do.
    variables = [variable(*rng.normal(size=4)) for _ in range(4)]
    optimizer = mr.keras.optimizers.SGD(0.1)
    pack = mr.function(lambda: optimizer.apply([mr.zeros(4)] * 2, variables[1:3]))
    results = []
    for i, (a, b) in enumerate([(0, 1), (1, 2), (3, 0), (2, 1), (0, 1)]):
        if i == 3:
            pack()
        x = mr.constant(rng.normal(size=4).astype(np.float32))
        given = recorded(function)(variables[a], variables[b], x)
        results += [np.asarray(each).tolist() for each in mr.nest.flatten(given)]
        results += [each.numpy().tolist() for each in variables]
    return results


@pytest.mark.behaviour("kinds-of-variables")
@cases("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_the_bits_are_those_of_recording_anew(function: Callable[..., Any]) -> None:
    once, runs = counted(function)
    assert run_all(function, lambda _: once) == run_all(function, lambda f: mr.function(f))
    assert (len(runs), once.experimental_get_tracing_count()) == (1, 1)


slow = pytest.mark.slow


@pytest.mark.parametrize(
    "name",
    ["assigned", *(pytest.param(each, marks=slow) for each in ("gradients", "swapped", "drawn"))],
)
def test_on_a_card(name: str, emulated_cuda: Callable[..., Any]) -> None:
    emulated_cuda()
    once, runs = counted(FUNCTIONS[name])
    calls = run_all(FUNCTIONS[name], lambda _: once)
    assert calls == run_all(FUNCTIONS[name], lambda f: mr.function(f))
    assert len(runs) == 1


@pytest.mark.behaviour("kinds-of-variables")
def test_which_arguments_are_one_variable_is_part_of_the_kind() -> None:
    def both(a: Any, b: Any) -> Any:
        a.assign_add([1.0, 1.0])
        return b + 0.0

    function, runs = counted(both)
    v, w = variable(1, 2), variable(3, 4)
    pairs = [(v, v), (v, w), (w, w), (w, v)]
    # TensorFlow 2.21's numbers.
    assert [function(*each).numpy().tolist() for each in pairs] == [[2, 3], [3, 4], [4, 5], [3, 4]]
    assert len(runs) == 2


KINDS: dict[str, Callable[[], Any]] = {
    "another shape": lambda: variable(1, 2, 3),
    "another dtype": lambda: mr.Variable([1, 2]),
    "not trained": lambda: variable(1, 2, trainable=False),
    "another device": lambda: on_the_second(),
    "another aggregation": lambda: variable(1, 2, aggregation=SUM),
}


def on_the_second() -> Any:
    with mr.device("GPU:1"):
        return variable(1, 2)


@pytest.mark.behaviour("kinds-of-variables")
@cases("make", KINDS.values(), ids=KINDS)
def test_other_kinds_are_recorded(make: Callable[[], Any], simulate: Any) -> None:
    simulate(2)
    function, runs = counted(lambda v: v + v)
    for each in (variable(1, 2), variable(5, 6), make(), make()):
        np.testing.assert_array_equal(function(each).numpy(), 2 * each.numpy())
    assert len(runs) == 2


# ------------------------------------------------------------------------------ other ways to one


NAMED: list[Any] = []


class Holder:
    def __init__(self, own: Any) -> None:
        self.held = {"weights": [own]}

    def method(self, v: Any) -> Any:
        v.assign_add([1.0, 1.0])
        return self.held["weights"][0] * 1.0


def by_name(v: Any) -> Any:
    v.assign_add([1.0, 1.0])
    return (lambda: NAMED[0] * 1.0)()


def by_closure(own: Any) -> Callable[..., Any]:
    return lambda v: (v.assign_add([1.0, 1.0]), own * 1.0)[1]


# From a variable to functions that add to their argument, and read that variable.
WAYS: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "a closure": by_closure,
    "a name": lambda own: by_name,
    "a method": lambda own: Holder(own).method,
}


@pytest.mark.behaviour("kinds-of-variables")
@cases("order", ["it first", "it last"])
@cases("way", WAYS.values(), ids=WAYS)
def test_a_variable_that_the_function_reads_anyway(
    way: Callable[[Any], Callable[..., Any]], order: str
) -> None:
    """In TensorFlow another argument takes its place there too, or its value is the old one."""
    own = variable(10, 20)
    NAMED[:] = [own]
    function, runs = counted(way(own))
    others = [variable(3, 4), variable(5, 6)]
    calls = [own, *others, own] if order == "it first" else [*others, own, others[0]]
    state = {id(each): each.numpy() for each in (own, *others)}
    for each in calls:
        state[id(each)] = state[id(each)] + 1
        np.testing.assert_array_equal(function(each).numpy(), state[id(own)])
        np.testing.assert_array_equal(each.numpy(), state[id(each)])
    NAMED.clear()
    assert len(runs) == 2


def test_a_variable_that_the_function_knows_from_others() -> None:
    """In TensorFlow it is one as all others where one of these came first."""
    v, own = variable(1, 2), variable(3, 4)
    function, runs = counted(lambda v: v * (10.0 if v is own else 1.0))
    given = [function(each).numpy().tolist() for each in (v, own, v, variable(5, 6))]
    assert given == [[1, 2], [30, 40], [1, 2], [5, 6]]
    assert len(runs) == 2


@pytest.mark.behaviour("kinds-of-variables")
@pytest.mark.parametrize("told", [id, lambda v: v.name], ids=["its identity", "its name"])
def test_what_is_the_variables_own(told: Callable[[Any], Any]) -> None:
    """In TensorFlow what belongs to the first one is taken for each."""
    v, w = variable(1, 2, name="v"), variable(3, 4, name="w")
    factors = {told(v): 10.0, told(w): 100.0}

    def by_identity(v: Any) -> Any:
        return v * factors[id(v)]

    def by_name(v: Any) -> Any:
        return v * factors[v.name]

    function, runs = counted(by_identity if told is id else by_name)
    given = [function(each).numpy().tolist() for each in (v, w, v)]
    assert given == [[10, 20], [300, 400], [10, 20]]
    assert len(runs) == 2


@pytest.mark.behaviour("kinds-of-variables")
def test_each_variable_has_slots_of_its_own() -> None:
    """In TensorFlow the second one is moved by the first one's momentum."""
    optimizer = mr.keras.optimizers.SGD(0.1, momentum=0.9)
    v, w = variable(1, 2), variable(1, 2)

    def step(v: Any) -> Any:
        with mr.GradientTape() as tape:
            loss = mr.reduce_sum(v * v)
        optimizer.apply_gradients([(tape.gradient(loss, v), v)])
        return loss

    function = mr.function(step)
    for each in (v, v, w, w):
        function(each)
    np.testing.assert_array_equal(v.numpy(), w.numpy())
    np.testing.assert_allclose(w.numpy(), [0.46, 0.92], rtol=1e-6)


def test_a_variable_that_is_written_beside_the_argument_is_recorded_for_each() -> None:
    counts: dict[int, Any] = {}
    v, w = variable(1, 2), variable(3, 4)
    counts |= {id(each): mr.Variable(0) for each in (v, w)}
    function, runs = counted(lambda each: (counts[id(each)].assign_add(1), each * 2.0)[1])
    for each in (v, w, w):
        np.testing.assert_array_equal(function(each).numpy(), 2 * each.numpy())
    assert [int(each) for each in counts.values()] == [1, 2]
    assert len(runs) == 2


# ------------------------------------------------------------------------------ replicas


@pytest.mark.parametrize("replicas", [1, 3])
def test_on_replicas(replicas: int, simulate: Any) -> None:
    """Where TensorFlow reads and writes the first variable whatever it is given."""
    simulate(replicas)
    strategy = mr.MirroredStrategy()
    with strategy.scope():
        made = [variable(i, i + 1, aggregation=SUM) for i in range(3)]

    def step(v: Any, x: Any) -> Any:
        def replica(own: Any, x: Any) -> Any:
            own.assign_add(own * x)
            return own * 1.0

        return strategy.reduce("SUM", strategy.run(replica, args=(v, x)), axis=None)

    function, runs = counted(step)
    for i, each in enumerate(made):
        x = np.array([i, i + 1], np.float32)
        total = x + replicas * x * 0.5
        np.testing.assert_array_equal(function(each, mr.constant(0.5)).numpy(), total * replicas)
        for copy in strategy.experimental_local_results(each):
            np.testing.assert_array_equal(copy.numpy(), total)
    assert len(runs) == 1


@pytest.mark.slow
def test_on_two_cards(emulated_cuda: Callable[..., Any]) -> None:
    """Whose sums are one all-reduce."""
    emulated_cuda(cards=2)
    strategy = mr.MirroredStrategy()
    with strategy.scope():
        made = [variable(i, i + 1, aggregation=SUM) for i in range(3)]
    function, runs = counted(lambda v: strategy.run(lambda: v.assign_add(mr.exp(v * 0.0))))
    for i, each in enumerate(made):
        function(each)
        for copy in strategy.experimental_local_results(each):
            np.testing.assert_array_equal(copy.numpy(), [i + 2, i + 3])
    assert len(runs) == 1


def test_variables_that_are_summed_when_read(simulate: Any) -> None:
    simulate(2)
    strategy = mr.MirroredStrategy()
    on_read = mr.VariableSynchronization.ON_READ
    with strategy.scope():
        made = [mr.Variable(v, synchronization=on_read, aggregation=SUM) for v in (1.0, 5.0)]
    function, runs = counted(lambda v: (strategy.run(v.assign_add, args=(1.0,)), v * 2.0)[1])
    assert [float(function(each)) for each in made] == [8, 24]
    assert len(runs) == 1


# ------------------------------------------------------------------------------ how long


def test_variables_are_not_kept_and_memory_stays_flat(simulate: Any) -> None:
    simulate(1, memory_limit=1)

    def used() -> int:
        gc.collect()
        return int(mr.config.experimental.get_memory_info("GPU:0")["current"])

    function, runs = counted(lambda v: v.assign(v + 1.0) * v)
    gone, taken = [], set()
    for i in range(30):
        v = mr.Variable(mr.fill((10_000,), float(i)))
        assert float(function(v)[0]) == (i + 1) ** 2
        gone.append(weakref.ref(v))
        del v
        taken.add(used())
    assert all(each() is None for each in gone)
    assert len(taken) == 1  # What they compute in.
    alive = [mr.Variable(mr.zeros((10_000,))) for _ in range(5)]
    before = used()
    for each in alive:
        function(each)
    assert used() < before + 2 * 40_000  # They share what they compute in.
    assert len(runs) == 1


def test_a_variable_at_the_address_of_one_that_is_gone() -> None:
    """Objects that are gone leave their identities to others."""
    function, runs = counted(lambda v: v * 2.0)
    places: set[int] = set()
    repeated = 0
    for i in range(10_000):  # Python gives a place away again soon, not at once.
        v = variable(i, i + 1)
        repeated += id(v) in places
        places.add(id(v))
        assert function(v).numpy().tolist() == [2 * i, 2 * i + 2]
        del v
        if repeated == 20:
            break
    assert repeated == 20
    assert len(runs) == 1


def test_more_variables_than_are_kept() -> None:
    function, runs = counted(lambda v: v.assign_add([1.0, 1.0]) * 1.0)
    many = [variable(i, 2 * i) for i in range(70)]
    for _ in range(2):
        for each in many:
            function(each)
    assert [each.numpy().tolist() for each in many] == [[i + 2, 2 * i + 2] for i in range(70)]
    assert len(runs) == 1


def test_threads_with_a_variable_each(no_deadlock: None) -> None:
    function, runs = counted(lambda v: v.assign_add([1.0, 1.0]) * 1.0)
    many = [variable(0, 0) for _ in range(4)]

    def work(each: Any) -> None:
        for _ in range(25):
            function(each)

    threads = [threading.Thread(target=work, args=(each,)) for each in many]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [each.numpy().tolist() for each in many] == [[25, 25]] * 4
    assert len(runs) == 1


def test_with_datasets() -> None:
    function, runs = counted(lambda v, elements: v.assign_add(next(elements)) * 1.0)
    elements = iter(mr.data.Dataset.from_tensor_slices(np.arange(12.0, dtype=np.float32)).batch(2))
    made = [variable(0, 0) for _ in range(3)]
    for each in (*made, *made):
        function(each, elements)
    assert [each.numpy().tolist() for each in made] == [[6, 8], [10, 12], [14, 16]]
    assert len(runs) == 1


def test_a_concrete_function_takes_variables_of_the_kind() -> None:
    function, runs = counted(lambda v: v.assign_add([1.0, 1.0]) + 0.0)
    v, w = variable(1, 2), variable(3, 4)
    concrete = function.get_concrete_function(v)
    assert [concrete(each).numpy().tolist() for each in (w, v, w)] == [[4, 5], [2, 3], [5, 6]]
    for wrong in (mr.constant([1.0, 2.0]), variable(1)):
        with pytest.raises(mr.errors.InvalidArgumentError, match="expected to be a"):
            concrete(wrong)
    assert len(runs) == 1
    text = function.pretty_printed_concrete_signatures()
    assert text.count("Input Parameters") == 1
