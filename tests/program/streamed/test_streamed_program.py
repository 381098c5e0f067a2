"""Steps recorded for a card, on the emulated one: the host's results, eager bits, and no races.

The emulator serves streams late and in random order, so each seed is another interleaving.
"""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import devices
from mirrored.backends.cuda import graphs
from mirrored.backends.cuda.cuda_backend import CudaBackend
from mirrored.errors import NonFiniteLossError
from mirrored.program.streamed import StreamedProgram, graph_launch

RNG = np.random.default_rng(7)
X = RNG.normal(size=(30, 6)).astype(np.float32)  # Of whole batches, which are one recording.
Y = X[:, :4].argmax(axis=1)

Emulate = Callable[..., Any]


def split(count: int, limit: int = 64) -> list[str]:
    """Make so many logical devices of the first card, and return their names."""
    (card, *_) = mr.config.list_physical_devices("GPU")
    parts = [mr.config.LogicalDeviceConfiguration(memory_limit=limit)] * count
    mr.config.set_logical_device_configuration(card, parts)
    return [device.name for device in mr.config.list_logical_devices("GPU")]


def make_model(dropout: float = 0.0) -> mr.Sequential:
    mr.random.set_seed(3)
    # Products of float32 as on the host.
    mr.config.experimental.enable_tensor_float_32_execution(False)
    layers = [
        mr.layers.Input(shape=(6,)),
        mr.layers.Dense(8, activation="relu", kernel_regularizer="l2"),
        mr.layers.Dense(7, activation="tanh"),
        mr.layers.Dense(4, activation="softmax"),
    ]
    if dropout:
        layers.insert(2, mr.layers.Dropout(dropout))
    model = mr.Sequential(layers)
    model.compile(
        optimizer=mr.optim.Adam(learning_rate=0.01),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    return model


def train(
    names: list[str], epochs: int = 2, dropout: float = 0.0, eagerly: bool = False
) -> tuple[list[float], list[np.ndarray]]:
    """Return the losses of each epoch, and the weights and predictions in the end."""
    strategy = mr.MirroredStrategy(names)
    with strategy.scope():
        model = make_model(dropout)
        model.run_eagerly = eagerly
    history = model.fit(X, Y, batch_size=10, epochs=epochs, verbose=0).history
    loss, accuracy = model.evaluate(X, Y, batch_size=10, verbose=0)
    results = [*history["loss"], *history["accuracy"], loss, accuracy]
    return results, [*model.get_weights(), model.predict(X, batch_size=10, verbose=0)]


def assert_alike(found: Any, expected: Any, tolerance: float) -> None:
    np.testing.assert_allclose(found[0], expected[0], rtol=tolerance, atol=tolerance)
    for each, other in zip(found[1], expected[1], strict=True):
        np.testing.assert_allclose(each, other, rtol=tolerance, atol=tolerance)


def bits(results: Any) -> list[bytes]:
    return [np.asarray(each).tobytes() for part in results for each in part]


@pytest.mark.parametrize("replicas", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_recorded_steps_have_the_bits_of_eager_ones(replicas: int, emulated_cuda: Emulate) -> None:
    results = []
    for eagerly in (False, True):
        emulated_cuda()
        results.append(train(split(replicas), eagerly=eagerly, epochs=1, dropout=0.25))
        devices.reset_devices()
    assert bits(results[0]) == bits(results[1])


def test_graphs_have_the_bits_of_kernels_one_by_one(
    emulated_cuda: Emulate, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "mirrored")
    graphs._say_that_graphs_are_off.cache_clear()
    results, launched = [], []
    for setting in ("1", "0"):
        monkeypatch.setenv("MIRRORED_CUDA_GRAPHS", setting)
        emulator = emulated_cuda()
        results.append(train(["GPU:0"], epochs=2))
        launched.append(emulator.counts["graphs"])
        devices.reset_devices()
    assert bits(results[0]) == bits(results[1])
    assert launched[0] > 0 == launched[1]
    assert caplog.text.count("kernel by kernel") == 1


def test_a_step_that_cannot_be_captured(
    emulated_cuda: Emulate, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "mirrored")
    emulator = emulated_cuda()
    emulator.fail("streamBeginCapture", 900)
    train(["GPU:0"], epochs=2)
    assert caplog.text.count("could not be captured") >= 1


@pytest.mark.parametrize(
    ("step", "replicas"),
    [
        pytest.param(0, 3, marks=pytest.mark.slow),
        pytest.param(2, 1, marks=pytest.mark.slow),
        (11, 2),
    ],
)
def test_a_loss_that_is_not_finite(step: int, replicas: int, emulated_cuda: Emulate) -> None:
    """Steps behind it were asked for before the host saw it, and write nothing."""
    emulated_cuda(seed=step)
    names = split(replicas)
    x = np.tile(X[:10], (14, 1))
    y = np.tile(Y[:10], 14)

    def fitted(x: np.ndarray, steps: int) -> Any:
        with mr.MirroredStrategy(names).scope():
            model = make_model()
        if steps:
            try:
                model.fit(x, y, batch_size=10, epochs=1, shuffle=False, verbose=0)
            except NonFiniteLossError as error:
                return model, str(error)
        return model, ""

    spoilt = x.copy()
    spoilt[step * 10 + 9] = np.nan
    model, said = fitted(spoilt, 14)
    assert f"step {step + 1} of" in said
    weights = model.get_weights()
    with mr.MirroredStrategy(names).scope():
        reference = make_model()
    if step:
        reference.fit(x[: step * 10], y[: step * 10], batch_size=10, shuffle=False, verbose=0)
    for found, expected in zip(weights, reference.get_weights(), strict=True):
        np.testing.assert_array_equal(found, expected)
    model.fit(x, y, batch_size=10, epochs=1, verbose=0)  # It goes on.
    assert np.isfinite(model.get_weights()[0]).all()


def test_a_function_with_state_and_draws(emulated_cuda: Emulate) -> None:
    def run(name: str) -> list[Any]:
        mr.random.set_seed(5)
        with mr.device(name):
            total = mr.Variable(mr.zeros((3,)))

            @mr.function
            def step(x: Any) -> Any:
                total.assign_add(mr.reduce_sum(x, axis=0) + mr.random.normal((3,)))
                return mr.nn.softmax(total * 2.0), mr.random.uniform((2, 2))

            return [
                part.numpy() for i in range(5) for part in step(mr.constant(X[:5, :3] * float(i)))
            ]

    expected = run("CPU:0")
    devices.reset_devices()
    emulated_cuda()
    for found, value in zip(run("GPU:0"), expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-5, atol=1e-6)


def test_a_custom_loop_over_a_dataset(emulated_cuda: Emulate) -> None:
    def losses(names: list[str]) -> list[float]:
        strategy = mr.MirroredStrategy(names)
        with strategy.scope():
            model = make_model()
        per_example = mr.losses.SparseCategoricalCrossentropy(reduction="none")

        def replica_step(x: Any, y: Any) -> Any:
            with mr.GradientTape() as tape:
                loss = mr.nn.compute_average_loss(per_example(y, model(x)), global_batch_size=8)
            variables = model.trainable_variables
            gradients = tape.gradient(loss, variables)
            model.optimizer.apply_gradients(zip(gradients, variables, strict=True))
            return loss

        @mr.function
        def step(x: Any, y: Any) -> Any:
            return strategy.reduce("sum", strategy.run(replica_step, args=(x, y)), axis=None)

        dataset = mr.data.Dataset.from_tensor_slices((X, Y)).batch(8).repeat(2)
        batches = strategy.experimental_distribute_dataset(dataset)
        return [float(step(*batch)) for batch in batches]

    expected = losses(["CPU:0"])
    devices.reset_devices()
    emulated_cuda()
    np.testing.assert_allclose(losses(split(2)), expected, rtol=1e-5)


def test_a_step_is_few_kernels(emulated_cuda: Emulate, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside its five products: biases, gradients with their sums, one update, what is told."""
    monkeypatch.setenv("MIRRORED_CUDA_GRAPHS", "0")
    emulator = emulated_cuda()
    with mr.MirroredStrategy(["GPU:0"]).scope():
        model = mr.Sequential(
            [mr.layers.Input(shape=(6,)), mr.layers.Dense(8, activation="relu"), mr.layers.Dense(4)]
        )
        model.compile(
            optimizer="sgd",
            loss=mr.losses.SparseCategoricalCrossentropy(from_logits=True),
        )

    def kernels() -> int:
        before = emulator.counts["kernels"]
        model.fit(X[:30], Y[:30], batch_size=10, epochs=1, verbose=0)
        return emulator.counts["kernels"] - before

    kernels()
    assert kernels() == 3 * 10 + 1  # Once: where the steps put their results.


def test_the_host_stays_near_the_card(
    emulated_cuda: Emulate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would run on until the driver's queue is full, and hear no Ctrl-C in there."""
    emulated_cuda()
    variable = mr.Variable(0.0)
    step = mr.function(lambda: variable.assign_add(1.0))
    wait, waited = CudaBackend.wait_on_host, []

    def noted(backend: CudaBackend, event: Any) -> None:
        waited.append(event)
        wait(backend, event)

    monkeypatch.setattr(CudaBackend, "wait_on_host", noted)
    steps = 10 * graph_launch._AHEAD
    for _ in range(steps):
        step()
    assert 5 <= len(waited) <= 10
    assert variable.numpy() == steps


def test_memory_stays_where_it_is(emulated_cuda: Emulate) -> None:
    emulated_cuda()
    (name,) = split(1)
    with mr.MirroredStrategy([name]).scope():
        model = make_model(0.5)
    used = []
    for _ in range(3):
        model.fit(X, Y, batch_size=10, verbose=0)
        used.append(mr.config.experimental.get_memory_info("GPU:0")["current"])
    assert len(set(used[1:])) == 1


def test_no_room_for_a_step(emulated_cuda: Emulate) -> None:
    """The weights are those before it, and a smaller batch goes on."""
    emulated_cuda()
    (name,) = split(1, limit=1)
    with mr.MirroredStrategy([name]).scope():
        model = make_model()
    model.fit(X, Y, batch_size=10, epochs=1, verbose=0)
    before = model.get_weights()
    x, y = np.tile(X, (300, 1)), np.tile(Y, 300)
    with pytest.raises(mr.errors.ResourceExhaustedError, match="device:GPU:0"):
        model.fit(x, y, batch_size=len(x), epochs=1, verbose=0)
    for found, expected in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(found, expected)
    model.fit(X, Y, batch_size=10, epochs=1, verbose=0)


def test_which_program_a_graph_gets(emulated_cuda: Emulate) -> None:
    emulated_cuda()
    step = mr.function(lambda x: x * 2.0)
    with mr.device("GPU:0"):
        step(mr.constant(1.0))
    (recorded,) = step._traces._kept.values()
    assert isinstance(recorded.program(), StreamedProgram)


def test_draws_after_a_loss_that_is_not_finite(emulated_cuda: Emulate) -> None:
    """Steps behind it drew numbers in vain; the next `fit` draws what it would on the host."""

    def weights(name: str) -> list[np.ndarray]:
        with mr.MirroredStrategy([name]).scope():
            model = make_model(0.5)
        spoilt = np.tile(X[:10], (12, 1))
        spoilt[35] = np.nan
        with pytest.raises(NonFiniteLossError, match="step 4"):
            model.fit(spoilt, np.tile(Y[:10], 12), batch_size=10, shuffle=False, verbose=0)
        model.fit(X, Y, batch_size=10, epochs=2, shuffle=False, verbose=0)
        return model.get_weights()

    expected = weights("CPU:0")
    devices.reset_devices()
    emulated_cuda()
    assert_alike(([], weights("GPU:0")), ([], expected), 1e-5)


def test_inputs_that_did_not_arrive(
    emulated_cuda: Emulate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call with the same tensors copies nothing, but not where the copy before was ended."""
    emulated_cuda()
    step = mr.function(lambda x: x * 2.0)
    first, second = mr.constant([1.0, 2.0]), mr.constant([3.0, 4.0])
    step(first)
    backend = devices.get_device("GPU:0").backend

    def ended(*_: Any) -> None:
        raise InterruptedError("in the middle of a copy")

    with monkeypatch.context() as patched:
        patched.setattr(type(backend), "copy_between", ended)
        with pytest.raises(InterruptedError, match="in the middle"):
            step(second)
    assert step(second).numpy().tolist() == [6.0, 8.0]
    assert step(second).numpy().tolist() == [6.0, 8.0]
    assert step(first).numpy().tolist() == [2.0, 4.0]


def test_other_threads_while_a_graph_is_captured(
    emulated_cuda: Emulate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their work waits until it is, and becomes no part of it."""
    emulated_cuda()
    x, results = mr.constant(np.arange(4.0, dtype=np.float32)), []
    capture, threads = graphs.capture, []

    def capturing(backend: Any, work: Callable[[], object], mode: int) -> Any:
        def work_beside() -> None:
            started = threading.Event()

            def other() -> None:
                started.set()
                results.append((x * 3.0).numpy())

            threads.append(threading.Thread(target=other))
            threads[-1].start()
            started.wait()
            work()

        return capture(backend, work_beside, mode)

    monkeypatch.setattr(graphs, "capture", capturing)
    step = mr.function(lambda x: mr.exp(x) * 2.0)
    for _ in range(3):
        found = step(x)
    for thread in threads:
        thread.join()
    assert [result.tolist() for result in results] == [[0.0, 3.0, 6.0, 9.0]]
    np.testing.assert_allclose(found.numpy(), 2 * np.exp(np.arange(4.0)), rtol=1e-6)
