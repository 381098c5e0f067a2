"""Cast weights that are kept from step to step are what a cast in each step would give."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from plan_checker import PlanChecker

import mirrored as mr
from mirrored import ops
from mirrored.program.executor import make_program
from mirrored.program.replay import GuardFailed
from mirrored.program.streamed.graph_launch import StepLauncher
from mirrored.program.streamed.kept_casts import with_kept_casts
from mirrored.variables.flat import pack

W = np.arange(12, dtype=np.float32).reshape(4, 3) / 16
ONES = np.ones((2, 4), np.float32)


def names_of(graph: Any) -> list[str]:
    return [node.op.name for node in graph.nodes]


def product(x: Any, weights: Any) -> Any:
    """Return a product in bfloat16, summed in float32."""
    return ops.cast(ops.cast(x, "bfloat16") @ ops.cast(weights, "bfloat16"), "float32")


def shrinking(variable: Any) -> Callable[[Any], list[Any]]:
    """Return a step that reads a variable in bfloat16, and writes it."""

    def step(x: Any) -> list[Any]:
        result = product(x, variable)
        variable.assign(variable * 0.75 + ops.reduce_sum(x) * 0.125)
        return [result]

    return step


def expected(weights: np.ndarray, x: np.ndarray = ONES) -> np.ndarray:
    narrow = weights.astype(mr.bfloat16).astype(np.float32)
    return (x @ narrow).astype(mr.bfloat16).astype(np.float32)


def shrunk(weights: np.ndarray, x: np.ndarray = ONES) -> np.ndarray:
    return weights * np.float32(0.75) + x.sum() * np.float32(0.125)


def on_card(cards: Any, value: Any = W) -> mr.Variable:
    with mr.device(cards.names[0]):
        return mr.Variable(value)


def test_a_graph_reads_what_is_kept(cards: Any) -> None:
    cards.make(1)
    graph = cards.record(shrinking(on_card(cards)), ONES)
    kept, casts = with_kept_casts(graph)
    assert names_of(graph).count("Cast") == 3  # And stays as it is.
    assert names_of(kept).count("Cast") == 3
    (cast,) = casts
    _held = cast.memory.take()
    assert kept.writes[-1] == (cast, kept.nodes[-1].output)
    assert kept.nodes[-1].updates
    PlanChecker(kept, streams=True).check()


@pytest.mark.parametrize("why", ["not written", "of one memory, and not all written", "wider"])
def test_what_is_not_kept(why: str, cards: Any) -> None:
    cards.make(1)
    variable, other = on_card(cards), on_card(cards)
    if why.startswith("of one memory"):
        pack([variable, other])

    def step(x: Any) -> list[Any]:
        if why == "wider":
            result = ops.cast(x, "float64") @ ops.cast(variable, "float64")
        else:
            result = product(x, variable)
        written = other if why == "not written" else variable
        written.assign(written + 1.0)
        return [result]

    graph = cards.record(step, ONES)
    assert with_kept_casts(graph) == (graph, [])


def test_steps_that_others_write_between(cards: Any) -> None:
    """By assigning, by another function, or by arrays of files; and where nobody writes."""
    cards.make(1)
    variable = on_card(cards)
    step = mr.function(lambda x: shrinking(variable)(x)[0])
    double = mr.function(lambda: variable.assign(variable * 2.0))
    weights = W.copy()
    for change in ("", "assign", "", "double", "array", "", "add"):
        if change == "assign":
            variable.assign(weights := weights + 1)
        elif change == "double":
            double()
            weights = weights * 2
        elif change == "array":
            variable.set_in_place(weights := weights - 3)
        elif change == "add":
            variable.assign_add(np.full_like(weights, 0.5))
            weights = weights + np.float32(0.5)
        np.testing.assert_array_equal(step(ONES).numpy(), expected(weights))
        weights = shrunk(weights)
    np.testing.assert_array_equal(variable.numpy(), weights)


def test_an_interrupt_behind_a_step_that_writes(
    cards: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program, which keeps casts of the same weights, sees that they were written."""
    cards.make(1)
    variable = on_card(cards)
    first, second = (make_program(cards.record(shrinking(variable), ONES), 1) for _ in range(2))
    first.run(1, [ONES])
    second.run(1, [ONES])
    step = StepLauncher.run

    def interrupted(*args: Any) -> None:
        step(*args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(StepLauncher, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            first.run(1, [ONES])
    second.run(1, [ONES])
    (result,) = second.outputs
    backend = second.graph.outputs[0].device.backend
    np.testing.assert_array_equal(backend.to_host(result), expected(shrunk(shrunk(shrunk(W)))))


def test_weights_are_cast_once_and_then_written_with_the_others(
    cards: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cards.make(1)
    program = make_program(cards.record(shrinking(on_card(cards)), ONES), 1)
    monkeypatch.setenv("MIRRORED_CUDA_GRAPHS", "0")
    other = on_card(cards)
    other.pinned()

    def kernels(steps: int) -> int:
        before = cards.emulator.counts["kernels"]
        program.run(steps, [ONES])
        return cards.emulator.counts["kernels"] - before

    kernels(1)
    each, several = kernels(1), kernels(4)
    assert several == 4 * each
    other.assign(other + 1.0)
    assert kernels(1) == each + 1  # Nobody looks which variable it was.


def test_a_step_that_is_stopped_writes_neither(cards: Any) -> None:
    cards.make(1)
    variable = on_card(cards)

    def step(x: Any) -> list[Any]:
        y = product(x, variable)
        from mirrored.ops.hooks import active_recorder

        active_recorder().require_finite((ops.reduce_sum(x),))
        variable.assign(variable * 0.75 + ops.reduce_sum(x) * 0.125)
        return [y]

    program = make_program(cards.record(step, ONES), 1)
    found: list[Any] = []

    def report(arrays: Any, _: int) -> bool:
        found.append(arrays[0].copy())
        return True

    program.run(1, [ONES], report)
    with pytest.raises(GuardFailed):
        program.run(1, [np.full_like(ONES, np.nan)], report)
    program.run(1, [ONES], report)
    np.testing.assert_array_equal(found[-1], expected(shrunk(W)))


def test_memory_goes_with_the_program(cards: Any) -> None:
    cards.make(1)
    graph = cards.record(shrinking(on_card(cards)), ONES)
    program = make_program(graph, 1)
    (cast,) = program.planned.kept_casts
    assert cast.memory.array.shape == (12,)
    planned = program.planned
    del program
    with pytest.raises(RuntimeError, match="freed"):
        _ = cast.memory.array
    make_program(graph, 1, planned=planned).run(1, [ONES])


@pytest.mark.parametrize("parts", [1, 2])
def test_a_model_in_mixed_precision(parts: int, cards: Any) -> None:
    """Callbacks that change the weights between steps, too, and a last batch of one example."""
    x = np.random.default_rng(0).normal(size=(37, 6)).astype(np.float32)
    y = np.random.default_rng(1).integers(0, 3, 37)

    class Change(mr.keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if batch == 1:
                kernel = self.model.layers[0].kernel
                kernel.assign(kernel * 0.5)

    def trained(names: list[str]) -> list[Any]:
        mr.keras.utils.set_random_seed(1)
        with mr.MirroredStrategy(names).scope():
            layers = mr.keras.layers
            model = mr.Sequential(
                [
                    layers.Input(shape=(6,)),
                    layers.Dense(16, activation="relu", dtype="mixed_bfloat16"),
                    layers.Dense(3, dtype="mixed_bfloat16"),
                    layers.Activation("linear", dtype="float32"),
                ]
            )
            model.compile("sgd", mr.losses.SparseCategoricalCrossentropy(from_logits=True))
        history = model.fit(x, y, batch_size=12, epochs=2, verbose=0, callbacks=[Change()])
        return [history.history["loss"], *model.get_weights(), model.predict(x, verbose=0)]

    expected_values = trained(["CPU:0"])
    cards.make(parts)
    for found, value in zip(trained(cards.names), expected_values, strict=True):
        np.testing.assert_allclose(found, value, rtol=0.02, atol=0.01)
