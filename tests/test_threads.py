"""Every thread that the library starts, refused by the system in turn: an error, and no wait.

A call that was refused a thread changed nothing: the next one gives what it would have given.
"""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import _threads
from mirrored.distribute.replica_tensors import _holder
from mirrored.ops.tensor import _empty_tensors
from mirrored.variables.tracking import Watched

pytestmark = pytest.mark.usefixtures("no_deadlock")

REFUSED = r"A thread could not be started\. Received: can't start new thread, for 'mirrored-.*raise"


class System:
    """Counts the threads that the library starts, and refuses one of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.started = 0
        self.refuses = 0
        start = threading.Thread.start

        def counted(thread: threading.Thread) -> None:
            if thread.name.startswith("mirrored-"):
                self.started += 1
                if self.started == self.refuses:
                    raise RuntimeError("can't start new thread")
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", counted)

    def refuse(self, number: int) -> None:
        """Refuse that thread, counted from now on; 0: none."""
        self.started, self.refuses = 0, number


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> System:
    return System(monkeypatch)


@pytest.fixture(autouse=True)
def no_thread_stays() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert {each for each in threading.enumerate() if "mirrored" in each.name} <= before


def replica(x: Any) -> Any:
    context = mr.distribute.get_replica_context()
    assert context is not None
    return context.all_reduce("sum", x * (context.replica_id_in_sync_group + 1.0))


class Mean(mr.layers.Layer):
    """Is built when the replicas meet for it, and lets them meet."""

    def build(self, input_shape: Any) -> None:
        self.scale = self.add_weight(shape=(1,), initializer="ones", name="scale")

    def call(self, inputs: Any) -> Any:
        return replica(inputs * self.scale)


# What makes a call, given a strategy. Calls are alike: what they give depends on none before.


def eager(strategy: mr.MirroredStrategy) -> Callable[[], Any]:
    return lambda: strategy.run(replica, (mr.constant(1.0),)).values[0]


def recorded(strategy: mr.MirroredStrategy) -> Callable[[], Any]:
    x = mr.constant(2.0)
    step = mr.function(lambda x: strategy.run(replica, (x,)))
    return lambda: step(x).values[0]


def drawn(strategy: mr.MirroredStrategy) -> Callable[[], Any]:
    """Random numbers that a refused call took would be lost."""
    generator = mr.function(lambda: strategy.run(lambda: replica(mr.random.uniform((3,)))))
    mr.random.set_seed(3)
    return lambda: generator().values[0]


def built(strategy: mr.MirroredStrategy) -> Callable[[], Any]:
    layer = Mean()
    return lambda: strategy.run(lambda: layer(mr.ones((1, 2)))).values[0]


def assigned(strategy: mr.MirroredStrategy) -> Callable[[], Any]:
    with strategy.scope():
        v = mr.Variable(1.0, aggregation=mr.VariableAggregation.SUM)
    return lambda: strategy.run(lambda: v.assign_add(mr.constant(1.0))).values[0]


def fitted(strategy: mr.MirroredStrategy) -> Callable[[], Any]:
    mr.random.set_seed(1)
    with strategy.scope():
        layers = [mr.layers.Input((4,)), mr.layers.Dropout(0.5), mr.layers.Dense(2)]
        model = mr.Sequential(layers)
        model.compile(mr.optim.SGD(0.1, momentum=0.9), "mse")
    x = np.linspace(-1, 1, 48, dtype=np.float32).reshape(12, 4)

    def fit() -> Any:
        model.fit(x, x[:, :2], batch_size=4, shuffle=False, verbose=0)
        return np.concatenate([each.ravel() for each in model.get_weights()])

    return fit


def prefetched(_: Any) -> Callable[[], Any]:
    dataset = mr.data.Dataset.range(6).prefetch(2).batch(2).prefetch(1)
    return lambda: [each.numpy() for each in dataset]


CALLS: dict[str, tuple[Callable[[Any], Callable[[], Any]], int]] = {
    "strategy.run": (eager, 2),
    "the first call of a recorded function": (recorded, 2 + 2),
    "a recorded function that draws": (drawn, 2 + 2),
    "a layer that is built in replicas": (built, 2),
    "an assign in replicas": (assigned, 2),
    "fit": (fitted, 2),
    "prefetch": (prefetched, 2),
}


def same(a: Any, b: Any) -> bool:
    return np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.mark.behaviour("refused-thread")
@pytest.mark.parametrize(
    ("make", "count", "refused"),
    [(make, n, i) for make, n in CALLS.values() for i in range(1, n + 1)],
    ids=[f"{name}, {i} of {n}" for name, (_, n) in CALLS.items() for i in range(1, n + 1)],
)
def test_a_thread_is_refused(
    make: Callable[[Any], Callable[[], Any]],
    count: int,
    refused: int,
    system: System,
    simulate: Any,
) -> None:
    simulate(3)
    strategies = [mr.MirroredStrategy(executor="threads") for _ in range(2)]
    system.refuse(0)
    first = make(strategies[0])
    system.refuse(0)
    expected = first()
    assert system.started == count
    call = make(strategies[1])
    system.refuse(refused)
    before = threading.active_count()
    with pytest.raises(RuntimeError, match=REFUSED):
        call()
    assert threading.active_count() == before
    assert same(call(), expected)
    for strategy in strategies:
        strategy.close()


SUMS = {"eager": (eager, 3), "recorded": (recorded, 3)}


@pytest.mark.behaviour("refused-thread")
@pytest.mark.parametrize(
    ("make", "count", "refused"),
    [(make, n, i) for make, n in SUMS.values() for i in range(1, n + 1)],
    ids=[f"{name}, {i} of {n}" for name, (_, n) in SUMS.items() for i in range(1, n + 1)],
)
def test_a_thread_between_cards_is_refused(
    make: Callable[[Any], Callable[[], Any]],
    count: int,
    refused: int,
    system: System,
    emulated_cuda: Any,
) -> None:
    """Connecting, watching, the first sum of a size: what could hang is not asked for."""
    emulated_cuda(cards=2)
    strategy = mr.MirroredStrategy(cross_device_ops=mr.distribute.NcclAllReduce())
    call = make(strategy)
    system.refuse(refused)
    with pytest.raises(RuntimeError, match=REFUSED):
        call()
    assert float(call()) in (3.0, 6.0)
    assert system.started >= count
    strategy.close()


@pytest.mark.parametrize("swallowed", [False, True])
def test_a_replica_that_goes_on_without_the_thread(
    swallowed: bool, system: System, simulate: Any
) -> None:
    simulate(2)
    strategy = mr.MirroredStrategy()
    system.refuse(1)

    def careless() -> None:
        try:
            replica(mr.constant(1.0))
        except RuntimeError:
            if not swallowed:
                replica(mr.constant(1.0))

    if swallowed:
        with pytest.raises(RuntimeError, match="different number"):
            strategy.run(careless)
    else:
        strategy.run(careless)
    assert float(eager(strategy)()) == 3.0


def test_what_an_interrupt_of_a_start_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread runs by then: its pool ends it."""
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        raise KeyboardInterrupt

    pool = mr.program.ThreadPool(3)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            pool.run([lambda: None] * 3)
    done: list[int] = []
    pool.run([lambda: done.append(1)] * 3)
    assert done == [1, 1, 1]
    pool.close()


def test_no_memory_for_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(thread: threading.Thread) -> None:
        raise MemoryError("can't allocate lock")

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(RuntimeError, match=r"could not be started\. Received: can't allocate lock"):
        _threads.start(_threads.new_thread("mirrored-test", print))


def test_the_error_names_the_thread() -> None:
    thread = _threads.new_thread("mirrored-test", print)
    assert thread.daemon
    _threads.start(thread)
    thread.join()
    with pytest.raises(RuntimeError, match="for 'mirrored-test', with 1 threads running") as caught:
        _threads.start(thread)
    assert isinstance(caught.value.__cause__, RuntimeError)


class TupleOfAnotherThread:
    """A tuple that another thread builds; `finish` lets it, and `result` is how that ended."""

    def __init__(self) -> None:
        self._begun, self._goes_on = threading.Event(), threading.Event()
        self.result: Any = None
        self._thread = threading.Thread(target=self._build, daemon=True)
        self._thread.start()
        assert self._begun.wait(10)

    def _items(self) -> Iterator[int]:
        yield 1
        self._begun.set()
        self._goes_on.wait(10)
        yield 2

    def _build(self) -> None:
        try:
            self.result = tuple(self._items())
        except SystemError as error:
            self.result = error

    def finish(self) -> None:
        self._goes_on.set()
        self._thread.join(10)


def test_emptying_tensors_leaves_other_threads_tuples_alone() -> None:
    other = TupleOfAnotherThread()
    tensor = mr.constant(1.0)

    class Pools(list[Any]):
        def __contains__(self, pool: Any) -> bool:
            other.finish()
            return False

    _empty_tensors(Pools())
    assert other.result == (1, 2)
    assert float(tensor) == 1.0


def test_looking_for_the_holder_of_a_tensor_leaves_other_threads_tuples_alone() -> None:
    other = TupleOfAnotherThread()

    class Kept(Watched):
        @property
        def __dict__(self) -> Any:
            other.finish()
            return {"hidden": [1, (tensor,)]}

        def __repr__(self) -> str:
            return "<kept>"

    tensor, kept = mr.constant(1.0), Kept()
    assert _holder(tensor) == "the attribute 'hidden' of <kept>"
    assert other.result == (1, 2)
    del kept
    assert _holder(mr.constant(2.0)) == "a list, a dict, a closure or a global"
