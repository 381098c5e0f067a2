"""Variables on one device and replicas on several: results of one device, whoever trains."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from card_training import make_devices

import mirrored as mr

Central = mr.distribute.experimental.CentralStorageStrategy
RNG = np.random.default_rng(0)
X = RNG.normal(size=(11, 5)).astype(np.float32)
Y = RNG.normal(size=(11, 2)).astype(np.float32)


@pytest.fixture(autouse=True)
def gpus(simulate: Callable[..., Any]) -> None:
    simulate(3)


def places(variables: Any) -> set[str]:
    return {each.device[-5:] for each in variables}


OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "sgd": lambda: mr.optim.SGD(0.1, momentum=0.9, weight_decay=0.01),
    "adam": lambda: mr.optim.Adam(0.01, use_ema=True, global_clipnorm=1.0),
    "accumulated": lambda: mr.optim.Adam(0.01, gradient_accumulation_steps=2),
}


def made(strategy: Any, optimizer: Callable[[], Any], **options: Any) -> mr.Model:
    mr.keras.utils.set_random_seed(2)
    with strategy.scope():
        model = mr.Sequential(
            [
                mr.layers.Input((5,)),
                mr.layers.Dense(7, "relu"),
                mr.layers.BatchNormalization(),
                mr.layers.Dropout(0.3),
                mr.layers.Dense(2, kernel_constraint="max_norm"),
            ]
        )
        model.compile(optimizer(), "mse", metrics=["mae"], **options)
    return model


def trained(strategy: Any, optimizer: Callable[[], Any], **options: Any) -> tuple[Any, list[Any]]:
    model = made(strategy, optimizer, **options)
    history = model.fit(X, Y, 4, verbose=0).history
    return model, [*history.values(), *model.get_weights(), model.predict(X, verbose=0)]


@pytest.mark.behaviour("central-storage")
@pytest.mark.parametrize(
    ("name", "eagerly", "arguments", "place"),
    [
        ("sgd", False, (), "CPU:0"),
        ("adam", False, (["GPU:0", "GPU:2"], "GPU:1"), "GPU:1"),
        ("accumulated", True, (), "CPU:0"),
    ],
)
def test_training_is_that_of_one_device(
    name: str, eagerly: bool, arguments: Any, place: str
) -> None:
    one = mr.distribute.OneDeviceStrategy("CPU:0")
    _, expected = trained(one, OPTIMIZERS[name], run_eagerly=eagerly)
    model, found = trained(Central(*arguments), OPTIMIZERS[name], run_eagerly=eagerly)
    for each, other in zip(expected, found, strict=True):
        np.testing.assert_allclose(other, each, rtol=1e-5, atol=1e-6)
    assert places([*model.weights, *model.optimizer.variables]) == {place}


@pytest.mark.behaviour("central-storage")
def test_devices(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "mirrored"):
        strategy = Central()
    assert "CentralStorageStrategy with compute_devices = ('/job:" in caplog.text
    assert "variable_device = '/job:localhost/replica:0/task:0/device:CPU:0'" in caplog.text
    assert strategy.num_replicas_in_sync == 3
    assert [each[-5:] for each in strategy.extended.worker_devices] == ["GPU:0", "GPU:1", "GPU:2"]
    assert [each[-5:] for each in strategy.extended.parameter_devices] == ["CPU:0"]
    assert Central(["GPU:1"]).extended.parameter_devices[0][-5:] == "GPU:1"
    with strategy.scope():
        v = mr.Variable(mr.ones([1 << 16]))
    assert v.device[-5:] == "CPU:0"
    assert len(strategy.experimental_local_results(v)) == 1
    assert all(mr.config.experimental.get_memory_info(f"GPU:{i}")["current"] == 0 for i in range(3))
    devices = strategy.run(lambda: v + 0.0).values
    assert [each.device[-5:] for each in devices] == ["GPU:0", "GPU:1", "GPU:2"]
    with pytest.raises(mr.errors.InvalidArgumentError, match=r"parameter_device='GPU:7'"):
        Central(parameter_device="GPU:7")
    with pytest.raises(ValueError, match="No duplicates allowed"):
        Central(["GPU:0", "GPU:0"])


def test_assignments() -> None:
    strategy = Central()
    with strategy.scope():
        total = mr.Variable(1.0, aggregation=mr.VariableAggregation.SUM)
        mean = mr.Variable(1.0, aggregation=mr.VariableAggregation.MEAN)
        rows = mr.Variable(mr.zeros([3]), aggregation=mr.VariableAggregation.SUM)
        counted = mr.Variable(
            0.0,
            synchronization=mr.VariableSynchronization.ON_READ,
            aggregation=mr.VariableAggregation.SUM,
        )

    def step() -> Any:
        number = mr.distribute.get_replica_context().replica_id_in_sync_group
        value = mr.cast(number + 1, mr.float32)
        total.assign_add(value)
        mean.assign(value)
        counted.assign_add(value)
        rows.scatter_add(mr.IndexedSlices(mr.ones([1]), [number]))
        return total.read_value()

    for run in (strategy.run, mr.function(strategy.run)):
        assert [float(each) for each in run(step).values] == [float(total)] * 3
    assert (float(total), float(mean), float(counted)) == (13, 2, 12)
    assert rows.numpy().tolist() == [2, 2, 2]
    total.assign_add(1.0)
    mean.assign(
        strategy.run(lambda: mr.distribute.get_replica_context().replica_id_in_sync_group + 2.0)
    )
    strategy.extended.update(total, lambda v, x: v.assign_sub(x), args=(4.0,))
    assert (float(total), float(mean)) == (10, 3)
    assert float(strategy.reduce("sum", mean, axis=None)) == 9


def test_a_loop_of_ones_own() -> None:
    def run(strategy: Any) -> Any:
        with strategy.scope():
            w = mr.Variable(mr.ones([5, 2]))
            optimizer = mr.optim.Adam(0.1)

        def step(x: Any, y: Any) -> Any:
            with mr.GradientTape() as tape:
                loss = mr.reduce_sum(mr.square(x @ w - y)) / 11.0
            optimizer.apply_gradients([(tape.gradient(loss, w), w)])
            return loss

        @mr.function
        def distributed(x: Any, y: Any) -> Any:
            return strategy.reduce("sum", strategy.run(step, args=(x, y)), axis=None)

        data = strategy.experimental_distribute_dataset(
            mr.data.Dataset.from_tensor_slices((X, Y)).batch(11).repeat(3)
        )
        return [float(distributed(*batch)) for batch in data], w.numpy()

    losses, weights = run(Central())
    expected_losses, expected = run(mr.distribute.OneDeviceStrategy("CPU:0"))
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-5)
    np.testing.assert_allclose(weights, expected, rtol=1e-5)


def test_files_and_copies(tmp_path: Path) -> None:
    model, values = trained(Central(), OPTIMIZERS["sgd"])
    mr.train.Checkpoint(model=model).write(str(tmp_path / "state"))
    model.save_weights(tmp_path / "w.safetensors")
    other = made(mr.MirroredStrategy(["GPU:0", "GPU:1"]), OPTIMIZERS["adam"])
    other.load_weights(tmp_path / "w.safetensors")
    again = made(Central(["GPU:0", "GPU:1"]), OPTIMIZERS["sgd"])
    mr.train.Checkpoint(model=again).read(str(tmp_path / "state"))
    pickled, deep = pickle.loads(pickle.dumps(model)), copy.deepcopy(model)
    for each in (other, again, pickled):
        np.testing.assert_allclose(each.predict(X, verbose=0), values[-1], rtol=1e-5)
    assert places([*pickled.weights, *deep.weights]) == {"CPU:0"}
    histories = [
        each.fit(X, Y, shuffle=False, verbose=0).history for each in (model, pickled, again)
    ]
    assert histories[0]["loss"] == pytest.approx(histories[1]["loss"])
    assert histories[0]["loss"] == pytest.approx(histories[2]["loss"], rel=1e-5)


@pytest.mark.slow
def test_variables_on_the_host_and_replicas_on_a_card(emulated_cuda: Callable[..., Any]) -> None:
    """Host and card compute in one recorded step (emulated; unverified on a real card)."""
    mr.config.experimental.reset_devices()
    emulated_cuda()
    names = make_devices((2,))
    _, expected = trained(mr.MirroredStrategy(names), OPTIMIZERS["sgd"])
    model, found = trained(Central(names, "CPU:0"), OPTIMIZERS["sgd"])
    for each, other in zip(expected, found, strict=True):
        np.testing.assert_allclose(other, each, rtol=2e-5, atol=2e-6)
    assert places(model.weights) == {"CPU:0"}
