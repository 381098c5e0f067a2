"""Copies of variables that are no longer equal are found, and the error says where."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases
from launching import needs_mpi
from ml_dtypes import bfloat16
from worker_tasks import LAYOUT

import mirrored as mr
from mirrored import _files
from mirrored.distribute import multi_worker_strategy
from mirrored.errors import ReplicasDifferError, WorkerError
from mirrored.workers.worker import Workers

Simulate = Callable[..., Any]
NAN = np.array([0x7FC00000, 0x7FC00001], np.uint32).view(np.float32)  # Two that differ in a bit.


def found(strategy: Any, *args: Any, **options: Any) -> ReplicasDifferError:
    with pytest.raises(ReplicasDifferError) as raised:
        strategy.check_replicas(*args, **options)
    return raised.value


@pytest.mark.behaviour("check-replicas")
@cases(
    ("value", "wrong"),
    [
        (np.float32([1.0, 2.0]), np.float32([1.0, np.nextafter(np.float32(2), 3)])),
        (np.float64(0.0), np.float64(-0.0)),
        (NAN[0], NAN[1]),
        (NAN, NAN[::-1].copy()),
        (np.array([[1, 2]], bfloat16), np.array([[1, 3]], bfloat16)),
        (np.float16([1]), np.float16([2])),
        (np.int64([1, 2, 3]), np.int64([1, 2, 4])),
        (np.uint8([7]), np.uint8([8])),
        (np.array([True]), np.array([False])),
    ],
)
def test_a_copy_that_differs_in_a_bit(value: Any, wrong: Any, simulate: Simulate) -> None:
    simulate(3)
    strategy = mr.MirroredStrategy()
    with strategy.scope():
        kept = mr.Variable(np.zeros((0, 2), np.float32), name="empty")
        variable = mr.Variable(value, name="v")
    strategy.check_replicas()
    copies = strategy.experimental_local_results(variable)
    copies[1].assign(wrong)
    error = found(strategy)
    assert (error.variable, error.replicas, error.devices) == ("v:0", (1,), ("GPU:1",))
    assert (error.workers, error.step) == ((0,), None)
    copies[0].assign(wrong)
    copies[2].assign(wrong)
    strategy.check_replicas()
    assert kept.shape == (0, 2)


def test_the_text_says_where(simulate: Simulate) -> None:
    simulate(8)
    strategy = mr.MirroredStrategy()
    with strategy.scope():
        first, second, third = (mr.Variable([1.0], name=name) for name in "abc")
    for copy in third.copies[1:2]:
        copy.assign([2.0])
    assert str(found(strategy, step=41)) == (
        "The copies of a mirrored variable must have the same bits. Received: 'c:0' of shape (1,) "
        "and dtype float32, with another value on replica 1 (GPU:1) than on replica 0 (GPU:0), "
        "after step 41. Restore an earlier checkpoint. Assign values to the variable, not to its "
        "copies. If no code does that, a device may compute wrong: run `mirrored selftest`."
    )
    for number, copy in enumerate(second.copies[:7]):
        copy.assign([float(number)])
    error = found(strategy)
    assert (error.variable, error.replicas) == ("b:0", (0, *range(2, 7)))
    assert "the first of 2 variables that differ" in str(error)
    assert "replica 5 (GPU:5) and 1 more than on replica 1 (GPU:1)" in str(error)
    assert found(strategy, {"x": [first, (third, third)]}).variable == "c:0"
    strategy.check_replicas(first)
    strategy.check_replicas(())


def test_replicas_that_share_a_copy(simulate: Simulate) -> None:
    simulate(2)
    strategy = mr.MirroredStrategy(replicas=5)
    with strategy.scope():
        variable = mr.Variable(1.0)
    strategy.check_replicas()
    variable.copies[1].assign(2.0)
    error = found(strategy)
    assert (error.replicas, error.devices) == ((3, 4), ("GPU:1", "GPU:1"))


def test_variables_that_have_no_equal_copies_are_left_out(simulate: Simulate) -> None:
    simulate(2)
    strategy = mr.MirroredStrategy()
    with strategy.scope():
        on_read = mr.Variable(
            0.0,
            synchronization=mr.VariableSynchronization.ON_READ,
            aggregation=mr.VariableAggregation.SUM,
        )
        drawn = mr.layers.Dropout(0.5)
        gone = mr.Variable(0.0)
    alone = mr.Variable(0.0)
    on_read.copies[1].assign(3.0)
    gone.copies[1].assign(3.0)
    del gone
    strategy.check_replicas()
    strategy.check_replicas([on_read, alone, drawn.variables])


@pytest.mark.parametrize(
    "make",
    [
        mr.distribute.get_strategy,
        lambda: mr.distribute.OneDeviceStrategy("GPU:0"),
        mr.distribute.experimental.CentralStorageStrategy,
        lambda: mr.MirroredStrategy(["GPU:1"]),
        mr.distribute.MultiWorkerMirroredStrategy,
    ],
)
def test_one_copy_is_equal_to_itself(make: Callable[[], Any], simulate: Simulate) -> None:
    simulate(2)
    strategy = make()
    with strategy.scope():
        variable = mr.Variable(float("nan"))
    strategy.check_replicas()
    strategy.check_replicas(variable)


@pytest.mark.behaviour("check-replicas")
def test_wrong_calls(simulate: Simulate) -> None:
    simulate(2)
    strategy, other = mr.MirroredStrategy(), mr.MirroredStrategy()
    with other.scope():
        variable = mr.Variable(1.0, name="v")
    with pytest.raises(TypeError, match=r"`variables` must be a variable, .* Received: 1.0 of"):
        strategy.check_replicas([1.0])
    with pytest.raises(ValueError, match=r"The variable 'v:0' belongs to another strategy\."):
        strategy.check_replicas(variable)
    with pytest.raises(RuntimeError, match="Received: a call inside a replica"):
        strategy.run(strategy.check_replicas)
    with pytest.raises(RuntimeError, match="while a function was being recorded"):
        mr.function(strategy.check_replicas)()


def test_copies_on_cards(emulated_cuda: Callable[..., Any]) -> None:
    emulated_cuda(cards=2)
    strategy = mr.MirroredStrategy()
    with strategy.scope():
        variable = mr.Variable(np.arange(5.0, dtype=np.float32), name="v")
    strategy.check_replicas()
    variable.copies[1].assign([0.0, 1.0, 2.0, 3.0, 5.0])
    assert found(strategy).replicas == (1,)


class Other(Workers):
    """The first of two workers; `changed` makes what the second one says of what this one says."""

    def __init__(self, changed: Callable[[Any], Any]) -> None:
        super().__init__(0, ("a", "b"))
        self._changed = changed

    def gather(self, value: Any, what: str) -> list[Any]:
        """Return what both say."""
        return [value, self._changed(value) if "a check of replicas" in what else value]


def as_first_of_two(monkeypatch: pytest.MonkeyPatch, changed: Callable[[Any], Any]) -> Any:
    monkeypatch.setattr(_files, "_company", None)
    monkeypatch.setattr(multi_worker_strategy, "connect", lambda deadline: Other(changed))
    return mr.distribute.MultiWorkerMirroredStrategy()


def test_a_worker_whose_copies_differ(monkeypatch: pytest.MonkeyPatch, simulate: Simulate) -> None:
    def changed(value: Any) -> Any:
        if isinstance(value, list) and isinstance(value[0], list):
            return [value[0], ["another hash" for _ in value[1]]]  # By variable and copy.
        if isinstance(value, list):
            return [(number + 2, *rest) for number, *rest in value]  # The replicas.
        return value

    simulate(2)
    strategy = as_first_of_two(monkeypatch, changed)
    monkeypatch.setattr(strategy, "_send_variables", lambda: None)
    with strategy.scope():
        _ = [mr.Variable([1.0], name=name) for name in "ab"]
        variables = [mr.Variable([1.0], name=name) for name in "ab"]
    error = found(strategy, variables, step=3)
    assert (error.variable, error.replicas, error.workers) == ("b:0", (2, 3), (1, 1))
    assert error.devices == ("GPU:0", "GPU:1")
    assert (
        "another value on replica 2 (GPU:0 of worker 1), replica 3 (GPU:1 of worker 1) than on "
        "replica 0 (GPU:0 of worker 0), after step 3."
    ) in str(error)


def test_workers_that_compare_other_variables(
    monkeypatch: pytest.MonkeyPatch, simulate: Simulate
) -> None:
    simulate(1)

    def changed(value: Any) -> Any:
        return (
            {"variables": "a hash"} if isinstance(value, dict) else [f"no {line}" for line in value]
        )

    strategy = as_first_of_two(monkeypatch, changed)
    monkeypatch.setattr(strategy, "_send_variables", lambda: None)
    with strategy.scope():
        variable = mr.Variable([1.0], name="v")
    text = (
        "for a check of replicas, different variables: 'v:0' of shape (1,) and dtype float32 on "
        "worker 0 (a), and no 'v:0' of shape (1,) and dtype float32 on worker 1 (b)."
    )
    with pytest.raises(WorkerError, match=re.escape(text)):
        strategy.check_replicas(variable)


@pytest.mark.behaviour("check-replicas")
@needs_mpi
def test_all_workers_raise_the_same_error(two_workers: dict[str, list[Any]]) -> None:
    first, second = two_workers["diverged"]
    assert first == second
    (by_call, in_fit), last = first, sum(LAYOUT) - 1
    assert by_call[:3] == ("v:0", (last,), (1,))
    assert in_fit[1:] == ((last,), (1,), 4)
