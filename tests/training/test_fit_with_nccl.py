"""Training over several emulated cards with NCCL: the results of one device, however sums are cut.

Sums begin while gradients are still being computed, and take no copies and no memory of their own.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from card_training import (
    X,
    Y,
    make_devices,
    make_model,
    make_strategy,
    same,
    state,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mirrored as mr
from mirrored.backends.communication import connection
from mirrored.distribute import ReductionToOneDevice

Emulate = Callable[..., Any]
WEIGHTS = np.linspace(0.1, 2.0, len(X))


def fitted(model: mr.Model, batch: int, epochs: int = 2, rows: int = len(X)) -> list[float]:
    """Train and validate with weighted examples; return all numbers of the history."""
    history = model.fit(
        X[:rows],
        Y[:rows],
        sample_weight=WEIGHTS[:rows],
        batch_size=batch,
        epochs=epochs,
        validation_data=(X, Y),
        verbose=0,
    )
    return [value for values in history.history.values() for value in values]


def check(
    emulated_cuda: Emulate,
    layout: tuple[int, ...],
    *,
    batch: int = 10,
    rows: int = len(X),
    seed: int = 0,
    packs: int = 1,
    nbytes: int = 0,
    tolerance: float = 2e-5,
    epochs: int = 2,
    **options: Any,
) -> mr.Model:
    """Hold training over cards to that on the CPU, and return the model."""
    host = make_model(mr.MirroredStrategy(["CPU:0"]), **options)
    expected, weights = fitted(host, batch, epochs, rows), state(host)
    emulator = emulated_cuda(cards=len(layout), seed=seed)
    strategy = make_strategy(make_devices(layout), packs=packs, nbytes=nbytes)
    model = make_model(strategy, **options)
    found = fitted(model, batch, epochs, rows)
    assert emulator.nccl.calls["ncclAllReduce"] > 0
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    for value, other in zip(state(model), weights, strict=True):
        np.testing.assert_allclose(value, other, rtol=tolerance, atol=tolerance)
    return model


CASES = st.fixed_dictionaries(
    {
        "layout": st.lists(st.integers(1, 2), min_size=2, max_size=3).map(tuple),
        "seed": st.integers(0, 1 << 20),
        "packs": st.integers(0, 3),
        "nbytes": st.sampled_from([0, 0, 16, 64, 200]),
        "batch": st.integers(1, 12),
        "rows": st.integers(1, 14),
        "widths": st.lists(st.integers(1, 9), max_size=3),
        "penalty": st.sampled_from(["l2", None]),
        "steps_per_execution": st.sampled_from(["auto", 1, 2]),
    }
)


@pytest.mark.slow  # A few ways are in `test_ways_to_train.py`.
@settings(
    max_examples=6,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(case=CASES)
def test_any_way_to_sum_equals_one_device(case: dict[str, Any], emulated_cuda: Emulate) -> None:
    check(emulated_cuda, **case)
    connection.close_all()


def test_mixed_bfloat16(emulated_cuda: Emulate) -> None:
    pytest.importorskip("ml_dtypes")
    sizes = {"batch": 19, "rows": 19, "epochs": 1}
    check(emulated_cuda, (1, 1), policy="mixed_bfloat16", nbytes=64, tolerance=3e-2, **sizes)


def test_recorded_is_eager(emulated_cuda: Emulate) -> None:
    """They have the same bits, whatever order the cards work in."""
    emulated_cuda(cards=2, seed=3)
    devices, found = make_devices((1, 1)), []
    for eager in (False, True):
        model = make_model(make_strategy(devices, nbytes=64), widths=(8,), run_eagerly=eager)
        model.fit(X[:20], Y[:20], batch_size=10, sample_weight=WEIGHTS[:20], verbose=0)
        found.append(state(model))
    assert same(*found)


@pytest.mark.parametrize(
    "recorded",
    [pytest.param(False, id="eager", marks=pytest.mark.slow), pytest.param(True, id="recorded")],
)
def test_a_loop_of_ones_own(recorded: bool, emulated_cuda: Emulate) -> None:
    """Each replica asks the optimizer, in `strategy.run`, to apply its gradients."""
    epochs = 2 if recorded else 1

    def looped(strategy: mr.MirroredStrategy) -> Any:
        model = make_model(strategy, widths=(8,), penalty=None)
        optimizer = model.optimizer
        loss = mr.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

        def replica(x: Any, y: Any) -> Any:
            with mr.GradientTape() as tape:
                each = loss(y, model(x, training=True))
                mean = mr.nn.compute_average_loss(each, global_batch_size=10)
            gradients = tape.gradient(mean, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            return mean

        def step(x: Any, y: Any) -> Any:
            return strategy.reduce("sum", strategy.run(replica, (x, y)), axis=None)

        run = mr.function(step) if recorded else step
        data = mr.data.Dataset.from_tensor_slices((X[:20], Y[:20])).batch(10)
        losses = []
        for _ in range(epochs):
            for x, y in strategy.experimental_distribute_dataset(data):
                losses.append(float(run(x, y)))
        assert int(optimizer.iterations) == 2 * epochs
        return losses, [np.asarray(each) for each in model.get_weights()]

    expected = looped(mr.MirroredStrategy(["CPU:0"]))
    emulator = emulated_cuda(cards=2, seed=6)
    strategy = make_strategy(make_devices((2, 1)), nbytes=64)
    found = looped(strategy)
    assert emulator.nccl.calls["ncclAllReduce"] > 0
    np.testing.assert_allclose(found[0], expected[0], rtol=2e-5)
    for value, other in zip(found[1], expected[1], strict=True):
        np.testing.assert_allclose(value, other, rtol=2e-5, atol=2e-5)


# ---------------------------------------------------------------------- what it costs


def work_of_a_step(
    emulated_cuda: Emulate, monkeypatch: pytest.MonkeyPatch, **buckets: int
) -> list[str]:
    """Return what two cards are asked for in a step, in order, each kernel by itself."""
    monkeypatch.setenv("MIRRORED_CUDA_GRAPHS", "0")
    emulator = emulated_cuda(cards=2)
    strategy = make_strategy(make_devices((1, 1)), **buckets)
    model = make_model(strategy, widths=(32, 64, 32), penalty=None, steps_per_execution=1)
    asked: list[str] = []
    enqueue, all_reduce = emulator.enqueue, emulator.nccl.ncclAllReduce

    def enqueued(queue: Any, label: str, function: Any, *more: Any) -> None:
        asked.append(label)
        enqueue(queue, label, function, *more)

    def summed(*args: Any) -> int:
        asked.append("sum")
        return all_reduce(*args)

    class Begins(mr.callbacks.Callback):
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            asked.clear()

    with monkeypatch.context() as patch:
        patch.setattr(emulator, "enqueue", enqueued)
        patch.setattr(emulator.nccl, "ncclAllReduce", summed)
        model.fit(X[:30], Y[:30], batch_size=10, callbacks=[Begins()], verbose=0)
    connection.close_all()
    return list(asked)


def test_buckets_are_summed_beside_the_way_back_and_cost_no_copies(
    emulated_cuda: Emulate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gradients are computed where they are summed, and the optimizer reads the sums there."""
    one = work_of_a_step(emulated_cuda, monkeypatch)
    several = work_of_a_step(emulated_cuda, monkeypatch, nbytes=64)
    # A product a layer is left of the way back when the last layer's gradients are summed.
    first, last = several.index("sum"), len(several) - several[::-1].index("product")
    assert several[first:last].count("product") >= 2 * 6
    assert [label for label in several[first:last] if label == "sum"] != ["sum", "sum"]
    kernels = Counter(each for each in one if each != "sum")
    assert Counter(each for each in several if each != "sum") == kernels
    assert (one.count("sum"), several.count("sum")) == (2 * 2, 2 * 9)


@pytest.mark.parametrize("nbytes", [pytest.param(0, marks=pytest.mark.slow), 1 << 12])
def test_sums_take_no_memory_of_their_own(nbytes: int, emulated_cuda: Emulate) -> None:
    """A card's peak is that of the reference, but for what lies apart since sums go on."""
    emulated_cuda(cards=2)
    devices, peaks = make_devices((1, 1)), []
    for strategy in (
        make_strategy(devices, nbytes=nbytes),
        mr.MirroredStrategy(devices, ReductionToOneDevice()),
    ):
        model = make_model(strategy, widths=(64, 96, 64), penalty=None)
        for name in devices:
            mr.config.experimental.reset_memory_stats(name)
        model.fit(X[:20], Y[:20], batch_size=10, verbose=0)
        peaks.append([mr.config.experimental.get_memory_info(name)["peak"] for name in devices])
        del model
    gradients = 4 * (6 * 64 + 2 * 64 * 96 + 64 * 4)
    for nccl, reference in zip(*peaks, strict=True):
        assert nccl < reference + gradients // 4
