"""What recorded steps do by themselves on a card.

They put results where they are wanted, keep weights in the dtype that layers compute in, load and
store several elements at once, let sums over devices go before other work, and write nothing where
the host says so while they are on their way.
"""

from typing import Any

import numpy as np
from faults import keep_busy
from training import split

import mirrored as mr
from mirrored import devices, ops

CALLS = 200  # More than share a piece of memory, and more than are on their way at a time.


def results_of_calls() -> dict[str, Any]:
    """Return what many calls of one recorded function returned, read after the last of them."""

    @mr.function
    def totals(x: Any) -> tuple[Any, Any]:
        return ops.reduce_sum(x), ops.cast(x[:3] * 2.0, "int32")

    with mr.device(split(1, 0)[0]):
        kept = [totals(np.arange(6, dtype=np.float32) * number) for number in range(CALLS)]
    sums, doubled = zip(*kept, strict=True)
    return {
        "sums": np.array([float(each) for each in sums]),
        "doubled": np.stack([each.numpy() for each in doubled]),
    }


def assigned_between_steps(gpus: int) -> dict[str, Any]:
    """Train in mixed precision while weights are changed between steps; return what that leaves.

    The last step of an epoch is one of a single example.
    """
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(257, 16)).astype(np.float32), rng.integers(0, 4, 257)

    class Halving(mr.keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if batch % 3 == 1:
                kernel = self.model.layers[0].kernel
                kernel.assign(kernel * 0.5)

    mr.keras.utils.set_random_seed(5)
    with mr.MirroredStrategy(split(gpus, 512)).scope():
        dense = mr.layers.Dense(32, activation="relu", dtype="mixed_bfloat16")
        last = mr.layers.Dense(4, dtype="float32")
        model = mr.Sequential([mr.layers.Input(shape=(16,)), dense, last])
        loss = mr.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(mr.optim.SGD(0.05), loss)
    history = model.fit(x, y, batch_size=32, epochs=2, verbose=0, callbacks=[Halving()])
    weights = {f"weight {i}": weight for i, weight in enumerate(model.get_weights())}
    return {"losses": history.history["loss"], "predicted": model.predict(x, verbose=0), **weights}


def vectors(offset: int) -> dict[str, Any]:
    """Return what ops leave of arrays that begin so many elements behind where memory does."""
    rng, size = np.random.default_rng(7), 300_007
    numbers = rng.integers(-8, 8, size + offset)
    results: dict[str, Any] = {}
    for dtype in ("float32", "float64", "float16", "bfloat16", "int32", "uint8"):

        @mr.function
        def computed(x: Any) -> list[Any]:
            part = x[offset:]
            table = ops.reshape(part[:300_000], (500, 600))
            sums = ops.cast(table + table[0], "float64") * ops.cast(table[:, :1], "float64")
            return [part * part + part, sums]

        with mr.device(split(1, 0)[0]):
            kept = computed(ops.cast(mr.constant(np.abs(numbers)), dtype))
        values = [ops.cast(each, "float64").numpy() for each in kept]
        results |= {f"{dtype} {i}": value for i, value in enumerate(values)}
    return {**results, "numbers": np.abs(numbers).astype(np.float64)}


def priorities() -> dict[str, Any]:
    """Return the priority of a device's work, and of sums over devices."""
    backend: Any = devices.get_device(split(1, 0)[0]).backend
    return {
        "compute": np.array([backend.stream.priority]),
        "sums": np.array([backend.another(urgent=True).stream.priority]),
    }


def ahead() -> dict[str, Any]:
    """Ask a busy card for many steps; return whether it is done with what kept it busy by then.

    The driver would take more steps than that before it kept the host waiting.
    """
    backend: Any = devices.get_device(split(1, 0)[0]).backend
    variable = mr.Variable(0.0)
    step = mr.function(lambda: variable.assign_add(1.0))
    keep_busy(backend, 0.01)  # What it takes to compile that is over by now.
    for _ in range(3):
        step()
    backend.synchronize()
    keep_busy(backend, 2.0)
    behind = backend.record()
    done = []
    for _ in range(50):
        step()
        done.append(backend.is_done(behind))
    return {"done": done, "value": variable.numpy()}


def gate() -> dict[str, Any]:
    """Change a number of the host between asking a busy card to read it and its turn to do so.

    Writes of weights are stopped in this way. What is read has to be the new number, of a stream
    and of a graph.
    """
    device = devices.get_device(split(1, 0)[0])
    backend: Any = device.backend
    storage = device.allocate((1,), np.dtype(np.float32))
    number = backend.pinned((1,), np.dtype(np.float32))
    graph = backend.capture(lambda: backend.bring(number, storage.array))
    keep_busy(backend, 0.01)  # What it takes to compile that is over by now.
    found = []
    for ask in (lambda: backend.bring(number, storage.array), graph.launch):
        number[...] = -1.0
        keep_busy(backend, 0.5)
        ask()
        number[...] = len(found)
        busy = not backend.is_done(backend.record())
        found.append((float(backend.to_host(storage.array)[0]), busy))
    return {"read": [value for value, _ in found], "busy": [busy for _, busy in found]}
