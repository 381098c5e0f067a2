"""Strategies over NCCL, used and left in every way: shared, in threads, closed, forked, forgotten.

The cards are emulated. A process that ends, however its sums are, ends by itself.
"""

import gc
import os
import sys
import textwrap
import threading
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from card_training import BATCH, X, Y, make_devices, make_strategy, same, state
from card_training import make_model as make_model_of
from card_training import train as train_with
from forked_programs import run_program

import mirrored as mr
from mirrored.errors import CollectiveError, CollectiveTimeoutError

pytestmark = pytest.mark.usefixtures("no_deadlock")

Emulate = Callable[..., Any]
DEADLINE = 0.25
# Of whole batches, which are one recording.
train = partial(train_with, data=(np.resize(X, (4 * BATCH, 6)), np.resize(Y, 4 * BATCH)))
# Of few ops: what it computes is not the point.
make_model = partial(
    make_model_of, widths=(5,), penalty=None, optimizer=lambda: mr.optim.SGD(0.1, momentum=0.9)
)


class MeanOfAll(mr.layers.Layer):
    """Takes off the mean over the examples of all replicas, which have to meet for it."""

    def call(self, inputs: Any) -> Any:
        context = mr.distribute.get_replica_context()
        mean = mr.reduce_mean(inputs, axis=0)
        return inputs if context is None else inputs - context.all_reduce("mean", mean)


def make_meeting(strategy: mr.MirroredStrategy, **options: Any) -> mr.Model:
    mr.random.set_seed(5)
    with strategy.scope():
        layers = [mr.layers.Input(shape=(6,)), MeanOfAll(), mr.layers.Dense(4)]
        model = mr.Sequential(layers)
        loss = mr.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile("sgd", loss, **options)
    return model


@pytest.mark.parametrize(
    ("method", "eager"),
    [("evaluate", False), ("predict", True)],
    ids=["recorded evaluate", "eager predict"],
)
def test_a_hang_where_nothing_is_trained(method: str, eager: bool, emulated_cuda: Emulate) -> None:
    emulator = emulated_cuda(cards=2, seed=4)
    devices = make_devices((1, 1))
    arguments = (X[:20], Y[:20]) if method == "evaluate" else (X[:20],)

    def run(model: mr.Model) -> Any:
        return getattr(model, method)(*arguments, batch_size=10, verbose=0)

    # Without a deadline at first: kernels are compiled in it.
    expected = run(make_meeting(make_strategy(devices), run_eagerly=eager))
    model = make_meeting(make_strategy(devices, timeout=DEADLINE), run_eagerly=eager)
    for call in (1, 2):
        np.testing.assert_array_equal(run(model), expected)
        emulator.nccl.hang(after=call)
        with pytest.raises(CollectiveTimeoutError, match="bucket 1 of 1"):
            run(model)
        np.testing.assert_array_equal(run(model), expected)


@pytest.mark.parametrize("recorded", [False, True], ids=["eager", "recorded"])
def test_a_hang_in_a_call_of_ones_own(recorded: bool, emulated_cuda: Emulate) -> None:
    """What was returned before the hang is told at the next use, and then all goes on."""
    emulator = emulated_cuda(cards=2)
    strategy = make_strategy(make_devices((1, 1)), timeout=DEADLINE)

    def replica() -> Any:
        context = mr.distribute.get_replica_context()
        assert context is not None
        return context.all_reduce("sum", mr.constant(context.replica_id_in_sync_group + 1.0))

    run = mr.function(lambda: strategy.run(replica)) if recorded else lambda: strategy.run(replica)

    def total() -> float:
        return float(strategy.reduce("mean", run(), axis=None))

    assert total() == 3.0
    emulator.nccl.hang()
    with pytest.raises(CollectiveTimeoutError):
        total()
    assert total() == 3.0


def test_two_models_in_two_threads(emulated_cuda: Emulate) -> None:
    """They share a connection, and each ends with the weights that it has alone."""
    emulator = emulated_cuda(cards=2, seed=8)
    devices = make_devices((1, 1))
    alone = make_model(make_strategy(devices, nbytes=64))
    train(alone)
    models = [make_model(make_strategy(devices, nbytes=64)) for _ in range(2)]
    errors: list[BaseException] = []

    def work(model: mr.Model) -> None:
        try:
            train(model)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(model,)) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    for model in models:
        assert same(state(model), state(alone))
    assert emulator.nccl.calls["ncclCommInitAll"] == 1


@pytest.mark.parametrize("call", [pytest.param(3, marks=pytest.mark.slow), 7])
def test_a_hang_in_one_of_two_threads(call: int, emulated_cuda: Emulate) -> None:
    """Both may be told; whoever is has whole steps, and can go on."""
    emulator = emulated_cuda(cards=2, seed=call)
    devices = make_devices((1, 1))
    alone = make_model(make_strategy(devices, nbytes=64))
    train(alone)
    models = [make_model(make_strategy(devices, nbytes=64, timeout=1.0)) for _ in range(2)]
    errors: list[BaseException] = []

    def work(model: mr.Model) -> None:
        try:
            train(model)
        except BaseException as error:
            errors.append(error)

    emulator.nccl.hang(after=call)
    threads = [threading.Thread(target=work, args=(model,)) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors
    assert [each for each in errors if not isinstance(each, CollectiveError)] == []
    for model in models:
        done = int(model.optimizer.iterations)
        state(model)
        if done < 4:
            train(model, done)
    assert int(models[0].optimizer.iterations) == 4


def test_a_strategy_that_is_closed_is_used_again(emulated_cuda: Emulate) -> None:
    emulator = emulated_cuda(cards=2)
    strategy = make_strategy(make_devices((1, 1)), nbytes=64)
    whole, model = make_model(strategy), make_model(strategy)
    train(whole)
    train(whole)
    for _ in range(2):
        train(model)
        strategy.close()
        strategy.close()
    assert same(state(model), state(whole))
    assert emulator.nccl.calls["ncclCommInitAll"] == 2
    assert emulator.nccl.calls["ncclCommDestroy"] == 4


def test_what_failed_is_forgotten(emulated_cuda: Emulate) -> None:
    """The error is kept, to be told to other threads; models, and their memory, are not."""
    emulator = emulated_cuda(cards=2)
    devices = make_devices((1, 1))
    model = make_model(make_strategy(devices, nbytes=64))
    train(model)
    emulator.nccl.break_async()
    with pytest.raises(CollectiveError):
        train(model)
    known = weakref.ref(model)
    del model
    gc.collect()
    assert known() is None


def test_models_that_are_forgotten_leave_the_cards_connected(emulated_cuda: Emulate) -> None:
    """Disconnecting may wait for cards, which the garbage collector must not."""
    emulator = emulated_cuda(cards=2)
    devices = make_devices((1, 1))
    for _ in range(2):
        model = make_model(make_strategy(devices, nbytes=64))
        train(model)
        del model
        gc.collect()
    assert emulator.nccl.calls["ncclCommInitAll"] == 1
    assert emulator.nccl.calls["ncclCommDestroy"] == 0


# ---------------------------------------------------------------------- processes

PROGRAM = """
    import os, sys, time
    sys.path += {paths!r}
    import emulated_cuda
    from mirrored.backends.cuda import blas, graphs, nccl, nvml, toolkit
    emulator = emulated_cuda.Emulator(emulated_cuda.cards(2, 1 << 28), 0)
    toolkit.toolkit = lambda: emulator.cupy
    nvml.load = lambda: emulator.nvml
    blas.load = lambda: emulator.cublas
    graphs.load_driver = lambda: emulator.driver
    nccl.load = lambda: emulator.nccl
    import card_training as training
    import mirrored as mr
    from mirrored.backends.communication import connection
    connection.AT_EXIT = 0.5
    strategy = training.make_strategy(training.make_devices((1, 1)), nbytes=64)
    model = training.make_model(strategy)
    training.train(model)
"""
ENDS = {
    "with a sum that hangs": """
        with strategy.scope():
            total = mr.Variable(0.0, aggregation=mr.VariableAggregation.ONLY_FIRST_REPLICA)
        def replica():
            total.assign(mr.distribute.get_replica_context().all_reduce("sum", mr.constant(1.0)))
        emulator.nccl.hang()
        mr.function(lambda: strategy.run(replica))()  # It tells nothing, and so waits for nothing.
    """,
    "with a thread whose sum hangs": """
        import threading
        emulator.nccl.hang()
        threading.Thread(target=training.train, args=(model,), daemon=True).start()
        while emulator.nccl.calls["ncclAllReduce"] < 42:
            time.sleep(0.01)
    """,
    "with a child, and without a word": """
        child = os.fork()
        if not child:
            sys.exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        training.train(model)
    """,
}


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(
            end, id=name, marks=[pytest.mark.slow] if name == "with a sum that hangs" else []
        )
        for name, end in ENDS.items()
    ],
)
def test_a_process_ends_by_itself(end: str, emulated_cuda: Emulate, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM.format(paths=sys.path)) + textwrap.dedent(end))
    settings = {"MIRRORED_NCCL_SELFTEST": "0", "MIRRORED_FORCE_GPU_ALLOW_GROWTH": "true"}
    done = run_program(program, folder=tmp_path, environment=os.environ | settings)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("count", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_what_replicas_sum_stays_what_they_have(count: int, emulated_cuda: Any) -> None:
    """Several are packed for the sum, which takes no place of what is written or returned."""
    emulated_cuda(cards=2)
    strategy = mr.MirroredStrategy()
    with strategy.scope():
        own = [
            mr.Variable(
                [0.0, 0.0],
                trainable=False,
                synchronization=mr.VariableSynchronization.ON_READ,
                aggregation=mr.VariableAggregation.SUM,
            )
            for _ in range(count)
        ]

    def add(x: mr.Tensor) -> Any:
        parts = [each.assign_add(x * (1.0 + i)).read_value() for i, each in enumerate(own)]
        context: Any = mr.distribute.get_replica_context()
        tripled = [each * 3.0 for each in parts]
        return context.all_reduce("SUM", parts), context.all_reduce("SUM", tripled), tripled

    step = mr.function(lambda x: strategy.run(add, args=(x,)))
    local: Any = strategy.experimental_local_results
    for number in (1.0, 2.0, 3.0):
        sums, more, tripled = step(mr.constant([1.0, 2.0]))
        for i, variable in enumerate(own):
            has = number * (1.0 + i) * np.array([1.0, 2.0])
            for values, factor in ((variable, 1), (sums[i], 2), (more[i], 6), (tripled[i], 3)):
                np.testing.assert_allclose(
                    [each.numpy() for each in local(values)], [factor * has] * 2
                )
