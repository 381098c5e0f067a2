"""Where a strategy's scope may be entered, and what an exception in a lone replica says.

A scope, and so `fit`, inside a replica would run once for each of them without a word.
"""

import threading
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr


@pytest.mark.parametrize("replicas", [1, 3])
def test_no_scope_inside_a_replica(simulate: Any, replicas: int) -> None:
    simulate(replicas)
    strategy = mr.MirroredStrategy()

    def enter() -> None:
        with strategy.scope():
            pytest.fail("the scope was entered")

    with pytest.raises(
        RuntimeError, match="scope, `fit`, `evaluate` and `predict` need the cross-replica context"
    ):
        strategy.run(enter)


@cases("method", ["fit", "evaluate", "predict"])
def test_no_training_inside_a_replica(simulate: Any, method: str) -> None:
    simulate(2)
    strategy = mr.MirroredStrategy()
    with strategy.scope():
        model = mr.Sequential([mr.layers.Input((2,)), mr.layers.Dense(1)])
        model.compile("sgd", "mse")
    data = [np.ones((4, 2)), np.ones((4, 1))][: 1 if method == "predict" else 2]
    before = model.get_weights()
    with pytest.raises(RuntimeError, match="Make the call outside it"):
        strategy.run(lambda: getattr(model, method)(*data))
    for a, b in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(a, b)
    getattr(model, method)(*data, verbose=0)


@pytest.mark.parametrize("replicas", [1, 2])
def test_an_exception_names_replica_and_device(simulate: Any, replicas: int) -> None:
    simulate(replicas)
    last = replicas - 1

    def fail() -> None:
        context = mr.distribute.get_replica_context()
        if context.replica_id_in_sync_group == last:
            raise KeyError("lost")

    with pytest.raises(KeyError) as error:
        mr.MirroredStrategy().run(fail)
    name = f"/job:localhost/replica:0/task:0/device:GPU:{last}"
    assert error.value.__notes__ == [f"Raised in replica {last} on {name}."]


def test_writes_of_several_threads_reach_every_copy(simulate: Any) -> None:
    simulate(2)
    with mr.MirroredStrategy().scope():
        v = mr.Variable(0.0)

    def add() -> None:
        for _ in range(200):
            v.assign_add(1.0)

    threads = [threading.Thread(target=add) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [float(copy) for copy in v.copies] == [600.0, 600.0]
