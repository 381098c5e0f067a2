"""Sums between hosts beside the backward pass: the same bits, in the same memory, with errors."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import mirrored as mr
from mirrored import _files
from mirrored.distribute import multi_worker_strategy
from mirrored.distribute.cross_device_ops import CommunicationOptions, sums_meanwhile
from mirrored.errors import WorkerError
from mirrored.ops.spec import TensorSpec
from mirrored.program import executor
from mirrored.workers.background import Background, PendingSum
from mirrored.workers.worker import Workers

LAST = "bucket 4 of 4"


class Twin(Workers):
    """Stands for the first of two workers on two hosts, of which the other does the same."""

    def __init__(self, make_sum: Callable[["Twin", str], None] = lambda twin, what: None) -> None:
        super().__init__(0, ("a", "b"))
        self.on_several_hosts = True
        self.begun: list[tuple[str, int, int]] = []
        self.told: list[BaseException] = []
        self.all_begun = threading.Event()
        self._make_sum = make_sum
        self._background = Background(self._meanwhile)

    def _sum(self, vector: NDArray[Any], out: NDArray[Any], what: str) -> None:
        np.add(vector, vector, out=out)

    def _meanwhile(self, vector: NDArray[Any], out: NDArray[Any], what: str) -> None:
        self._make_sum(self, what)
        self._sum(vector, out, what)

    def _begin_sum(self, vector: NDArray[Any], out: NDArray[Any], what: str) -> PendingSum:
        self.begun.append((what, vector.__array_interface__["data"][0], vector.nbytes))
        if LAST in what:
            self.all_begun.set()
        return self._background.begin(vector, out, what)

    def gather(self, value: Any, what: str) -> list[Any]:
        return [value, value]

    def failed(self, error: BaseException, step: str | None = None) -> None:
        self.told.append(error)

    def close(self) -> None:
        self._background.close()


@pytest.fixture
def twin_of(monkeypatch: pytest.MonkeyPatch) -> Any:
    made: list[Twin] = []

    def make(*args: Any, least: int = 256) -> Twin:
        made.append(Twin(*args))
        monkeypatch.setattr(_files, "_company", None)
        monkeypatch.setattr(multi_worker_strategy, "connect", lambda timeout: made[-1])
        monkeypatch.setattr(sums_meanwhile, "BUCKET_BYTES", least)
        return made[-1]

    yield make
    for each in made:
        each.close()


def built() -> tuple[mr.distribute.Strategy, mr.Model]:
    """Return a model whose gradients of three layers make three buckets of 256 bytes or more."""
    mr.random.set_seed(1)
    strategy = mr.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        layers = [mr.layers.Dense(size, activation="tanh") for size in (32, 16, 16)]
        model = mr.Sequential([mr.layers.Input((32,)), *layers])
        model.compile(mr.optim.SGD(0.1, momentum=0.5), "mse")
    return strategy, model


X = np.random.default_rng(0).normal(size=(24, 32)).astype(np.float32)


def fitted(model: mr.Model, **options: Any) -> list[bytes]:
    model.fit(X, X[:, :16], batch_size=8, shuffle=False, verbose=0, **options)
    return [each.numpy().tobytes() for each in model.variables]


def looped(strategy: mr.distribute.Strategy, model: mr.Model) -> list[bytes]:
    """Train by a recorded function that takes two steps in a call."""

    def step(x: Any) -> None:
        with mr.GradientTape() as tape:
            loss = mr.reduce_mean(mr.square(model(x, training=True) - x[:, :16]))
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

    @mr.function
    def steps(x: Any) -> None:
        for _ in range(2):
            strategy.run(step, args=(x,))

    for start in (0, 8):
        steps(mr.constant(X[start : start + 8]))
    return [each.numpy().tobytes() for each in model.variables]


@pytest.mark.parametrize("how", ["fit", "loop"])
@pytest.mark.parametrize("replicas", [1, 2])
def test_bits_are_those_of_sums_at_the_end(
    twin_of: Any, simulated_gpus: Any, replicas: int, how: str
) -> None:
    simulated_gpus(replicas)
    found = []
    for least in (1 << 30, 256):
        twin = twin_of(least=least)
        strategy, model = built()
        found.append(fitted(model) if how == "fit" else looped(strategy, model))
        assert bool(twin.begun) == (least == 256)
    assert found[0] == found[1]


# A replica's products take 17,408 operations, in four parts where sums begin in between.
@pytest.mark.parametrize(("least", "threads"), [(17_408, 2), (17_409, 1)])
def test_replicas_have_as_many_threads(
    twin_of: Any, simulated_gpus: Any, monkeypatch: pytest.MonkeyPatch, least: int, threads: int
) -> None:
    simulated_gpus(2)
    monkeypatch.setattr(executor, "THREADS_FROM", least)
    monkeypatch.setattr(executor, "available_threads", lambda: 2)
    chosen: list[Any] = []
    choose = executor.choose_executor
    monkeypatch.setattr(
        executor, "choose_executor", lambda *args: chosen.append(choose(*args)) or chosen[-1]
    )
    found = []
    for size in (1 << 30, 256):
        twin_of(least=size)
        strategy, model = built()
        found.append(fitted(model))
        strategy.close()
    assert found[0] == found[1]
    assert [count for count, _ in chosen] == [threads, threads]


def test_the_first_sum_need_not_end_before_the_last_begins(
    twin_of: Any, simulated_gpus: Any
) -> None:
    def wait(twin: Twin, what: str) -> None:
        if not twin.all_begun.wait(30):
            raise TimeoutError(f"{what} is waited for before the last one begins")
        if LAST in what:
            twin.all_begun.clear()

    simulated_gpus(1)
    twin = twin_of(wait)
    fitted(built()[1], epochs=2)
    names = [what for what, _, _ in twin.begun]
    assert names[:4] == [
        "bucket 1 of 4 (4 bytes of float32)",  # The loss.
        "bucket 2 of 4 (1088 bytes of float32)",
        "bucket 3 of 4 (2112 bytes of float32)",
        LAST + " (4224 bytes of float32)",
    ]
    assert names == names[:4] * 6


def test_they_are_where_the_update_reads_them(
    twin_of: Any, simulated_gpus: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulated_gpus(1)
    copied: list[int] = []
    seen = np.may_share_memory

    def note(out: Any, x: Any) -> bool:
        if not seen(out, x):
            copied.append(out.nbytes)
        return seen(out, x)

    monkeypatch.setattr(np, "may_share_memory", note)
    twin = twin_of()
    fitted(built()[1])
    assert set(copied) <= {4}  # The loss, which is a result of the step as well.
    _, second, third, last = twin.begun[:4]
    assert second[1] + second[2] == third[1]
    assert third[1] + third[2] == last[1]


def test_an_error_ends_the_step_before_it_writes(twin_of: Any, simulated_gpus: Any) -> None:
    class Count:
        sums = 0

    def fail(twin: Twin, what: str) -> None:
        Count.sums += 1
        if Count.sums == 6:  # The second one of the second step.
            raise WorkerError("worker 1 is gone", worker=1)

    simulated_gpus(1)
    twin = twin_of(fail)
    _, model = built()
    written: list[list[bytes]] = []
    note = mr.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: written.append(
            [each.numpy().tobytes() for each in model.trainable_variables]
        )
    )
    with pytest.raises(WorkerError, match="worker 1 is gone") as caught:
        fitted(model, callbacks=[note])
    assert [each.numpy().tobytes() for each in model.trainable_variables] == written[-1]
    assert twin.told == [caught.value]
    assert len(written) == 1


def test_an_interrupt_while_it_waits_is_told_to_others(
    twin_of: Any, simulated_gpus: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait(twin: Twin, what: str) -> None:
        while not twin.told:
            twin.all_begun.wait(0.01)
        raise WorkerError("it failed elsewhere")

    def interrupt(pending: PendingSum) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(PendingSum, "wait", interrupt)
    simulated_gpus(1)
    twin = twin_of(wait)
    _, model = built()
    with pytest.raises(KeyboardInterrupt):
        fitted(model)
    assert [type(each) for each in twin.told] == [KeyboardInterrupt]
    # What the sums had is free again.
    assert twin._background._asked.empty()


@pytest.mark.parametrize(
    ("sizes", "bytes_per_pack", "expected"),
    [
        pytest.param([8, 300, 200, 400], 0, [[0], [1], [2, 3]], id="the first one is alone"),
        pytest.param([8, 300, 400, 20], 0, [[0], [1], [2, 3]], id="the last is not short"),
        pytest.param([5000, 20], 0, [[0, 1]], id="one"),
        pytest.param([8, 100, 100, 100], 100, [[0], [1], [2], [3]], id="as it is asked for"),
        pytest.param([8], 0, [[0]], id="nothing but the first"),
    ],
)
def test_what_is_summed_together(
    monkeypatch: pytest.MonkeyPatch,
    sizes: list[int],
    bytes_per_pack: int,
    expected: list[list[int]],
) -> None:
    monkeypatch.setattr(sums_meanwhile, "BUCKET_BYTES", 256)
    batch = [[mr.zeros((size,), mr.uint8)] for size in sizes]
    options = CommunicationOptions(bytes_per_pack=bytes_per_pack)
    found = sums_meanwhile.cut(batch, [list(range(len(sizes)))], options)
    assert found == expected


def test_where_they_pay(record: Any) -> None:
    several, one = Twin(), Workers()
    much, little = (TensorSpec((size,), np.dtype(np.float32)) for size in (1 << 22, 1 << 10))
    asked: list[bool] = []

    def function(x: Any) -> list[Any]:
        asked.extend(
            sums_meanwhile.pays(workers, specs)
            for workers in (several, one)
            for specs in ([much], [little, little])
        )
        return [x]

    assert not sums_meanwhile.pays(several, [much])
    record(function, [X])
    assert asked == [True, False, False, False]
