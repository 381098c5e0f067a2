"""Recorded calls beside interrupts and other threads: each is whole, and no write is lost."""

import math
import signal
import sys
import threading
from typing import Any

import pytest

import mirrored as mr


@pytest.mark.usefixtures("python_interrupts")
def test_an_interrupt_waits_for_the_end_of_a_call(simulate: Any, at_tanh: Any) -> None:
    """Half of a step would leave copies that differ."""
    simulate(2)
    with mr.MirroredStrategy().scope() as strategy:
        variables = [mr.Variable(1.0, aggregation=mr.VariableAggregation.SUM) for _ in range(3)]
    at_tanh(6 + 1, lambda: signal.raise_signal(signal.SIGINT))

    @mr.function
    def step() -> None:
        strategy.run(lambda: [each.assign_add(mr.tanh(each)) for each in variables])

    step()
    with pytest.raises(KeyboardInterrupt):
        step()
    (value,) = {float(copy) for each in variables for copy in each.copies}
    once = 1.0 + 2.0 * math.tanh(1.0)
    assert value == pytest.approx(once + 2.0 * math.tanh(once), rel=1e-6)
    step()


def test_variables_that_are_brought_together_lose_no_write(simulate: Any) -> None:
    """One thread records and moves variables while another one's recorded writes go on."""
    simulate(2)
    with mr.MirroredStrategy().scope() as strategy:
        variables = [mr.Variable(mr.zeros((5,))) for _ in range(4)]
        optimizer = mr.optim.SGD(1.0)
    ones = [mr.ones((5,))] * 4

    def step() -> None:
        optimizer.apply_gradients(zip(ones, variables, strict=True))

    train = mr.function(lambda: strategy.run(step))
    add = mr.function(lambda: variables[2].assign_add(ones[0]))
    add()
    threads = [
        threading.Thread(target=lambda f=f: [f() for _ in range(60)])  # type: ignore[misc]
        for f in (train, add)
    ]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert [float(each.numpy()[0]) for each in variables] == [-120.0, -120.0, -59.0, -120.0]


def test_replicas_values_without_a_strategy(simulate: Any) -> None:
    """What is joined for a replica is that replica's work, and nobody has threads for it."""
    simulate(2)

    @mr.function
    def joined(parts: Any, x: mr.Tensor) -> Any:
        both = mr.concat([parts.values[1]] * 2, axis=0)
        return mr.reduce_sum(both), mr.matmul(x, x)[0, 0]

    parts = mr.distribute.PerReplica([mr.ones((3,)), mr.ones((4,))], [0, 3])
    for _ in range(2):
        total, product = joined(parts, mr.ones((400, 400)))
        assert (float(total), float(product)) == (8, 400)
