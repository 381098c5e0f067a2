"""Devices can be set up anew in one process, and what was made before says that they are gone."""

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.backends.communication import connection
from mirrored.errors import DevicesResetError

reset = mr.config.experimental.reset_devices
simulate_gpus = mr.config.experimental.set_simulated_gpus


def model_of(strategy: Any) -> Any:
    with strategy.scope():
        model = mr.Sequential([mr.layers.Input(shape=(3,)), mr.layers.Dense(2)])
        model.compile(optimizer=mr.optim.Adam(0.1), loss="mse", metrics=["mse"])
    return model


def train(model: Any, epochs: int = 1) -> Any:
    x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(8, 3)
    model.fit(x, x[:, :2], batch_size=4, epochs=epochs, verbose=0, shuffle=False)
    return model


class World:
    """Everything that a program can have, made and used."""

    def __init__(self) -> None:
        simulate_gpus(2)
        self.tensor = mr.constant([1.0, 2.0])
        self.variable = mr.Variable([1.0, 2.0])
        self.strategy = mr.MirroredStrategy()
        self.one = mr.distribute.OneDeviceStrategy("GPU:1")
        self.model = train(model_of(self.strategy))
        self.default = train(model_of(mr.distribute.get_strategy()))
        self.mirrored = self.model.weights[0]
        self.metric = mr.metrics.Mean()
        self.metric.update_state(1.0)
        self.optimizer = mr.optim.SGD(0.1)
        self.dataset = mr.data.Dataset.range(8).batch(2)
        self.iterator = iter(self.dataset)
        self.prefetched = iter(self.dataset.prefetch(2))
        next(self.prefetched)
        self.arrays = self.dataset.prefetch(1).as_numpy_iterator()
        next(self.arrays)
        self.distributed = self.strategy.experimental_distribute_dataset(self.dataset)
        self.batches = iter(self.distributed)
        self.per_replica = next(self.batches)
        self.reading = mr.function(lambda: self.variable * 2.0)
        self.writing = mr.function(lambda: [self.variable.assign_add([1.0, 1.0])][1:])
        self.closing = mr.function(lambda: self.tensor * 2.0)
        self.doubled = mr.function(lambda x: x * 2.0)
        self.reading(), self.writing(), self.closing(), self.doubled(self.tensor)
        with mr.GradientTape(persistent=True) as self.tape:
            self.loss = mr.reduce_sum(self.variable * self.variable)


X = np.ones((4, 3), np.float32)
USES: dict[str, Callable[[World], Any]] = {
    "a tensor read": lambda old: old.tensor.numpy(),
    "a tensor in an op": lambda old: old.tensor + 1.0,
    "a tensor as a number": lambda old: float(old.loss),
    "a part of a tensor": lambda old: old.tensor[0],
    "a tensor fed": lambda old: old.doubled(old.tensor),
    "a variable read": lambda old: old.variable.numpy(),
    "a variable in an op": lambda old: old.variable * 2.0,
    "a variable assigned": lambda old: old.variable.assign([0.0, 0.0]),
    "a variable assigned a tensor": lambda old: old.variable.assign(mr.constant([0.0, 0.0])),
    "a mirrored variable read": lambda old: old.mirrored.numpy(),
    "a mirrored variable assigned": lambda old: old.mirrored.assign(np.zeros((3, 2))),
    "a gradient": lambda old: old.tape.gradient(old.loss, old.variable),
    "a strategy entered": lambda old: old.strategy.scope().__enter__(),
    "a strategy run": lambda old: old.strategy.run(lambda: 1),
    "a strategy reducing": lambda old: old.strategy.reduce("sum", old.per_replica, axis=None),
    "a strategy of one device": lambda old: old.one.run(lambda: 1),
    "a model called": lambda old: old.model(X),
    "a model trained": lambda old: train(old.model),
    "a model of no strategy trained": lambda old: train(old.default),
    "a model of no strategy predicting": lambda old: old.default.predict(X, verbose=0),
    "a model evaluated": lambda old: old.model.evaluate(X, X[:, :2], verbose=0),
    "weights read": lambda old: old.default.get_weights(),
    "weights set": lambda old: old.default.set_weights([np.zeros((3, 2)), np.zeros(2)]),
    "an optimizer": lambda old: old.optimizer.apply_gradients([(1.0, mr.Variable(1.0))]),
    "a learning rate": lambda old: setattr(old.optimizer, "learning_rate", 0.5),
    "a metric": lambda old: old.metric.update_state(1.0),
    "a metric's result": lambda old: old.metric.result(),
    "a function that reads": lambda old: old.reading(),
    "a function that writes": lambda old: old.writing(),
    "a function with a tensor": lambda old: old.closing(),
    "an iterator": lambda old: next(old.iterator),
    "an iterator of a function": lambda old: mr.function(next)(old.iterator),
    "an iterator with a thread": lambda old: next(old.prefetched),
    "an iterator of a strategy": lambda old: next(old.batches),
    "a dataset of a strategy": lambda old: iter(old.distributed),
    "a part of a batch": lambda old: old.per_replica.values[0].numpy(),
    "a part of a batch elsewhere": lambda old: old.per_replica.values[0] + 1,
    "a device by its object": lambda old: mr.device(old.strategy.devices[0]),
}


@pytest.fixture(scope="module")
def old() -> World:
    reset()
    world = World()
    reset()
    return world


@pytest.mark.behaviour("reset-devices")
@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_what_was_made_before_says_so(use: Callable[[World], Any], old: World) -> None:
    simulate_gpus(2)  # Devices of the same names are not those of before.
    with pytest.raises(DevicesResetError, match=r"reset_devices\(\)") as caught:
        use(old)
    assert "anew" in str(caught.value) or "again" in str(caught.value)


def test_an_iterator_of_arrays_loses_its_thread_and_says_so(old: World) -> None:
    with pytest.raises(DevicesResetError, match="Iterate over the dataset again"):
        list(old.arrays)


def test_what_is_gone_can_be_looked_at(old: World) -> None:
    assert repr(old.tensor) == (
        "<mr.Tensor: shape=(2,), dtype=float32, numpy=<gone with its device>>"
    )
    for each in (old.variable, old.mirrored):
        assert "<gone with its device>" in repr(each)
    assert repr(old.strategy.devices[1]).endswith("device:GPU:1, gone>")
    assert old.model.weights[0].shape == (3, 2)


def test_what_needs_no_device_goes_on(old: World) -> None:
    simulate_gpus(3)
    assert old.doubled(mr.constant([3.0])).numpy().tolist() == [6.0]  # It is recorded anew.
    assert [each.numpy().tolist() for each in old.dataset] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert old.model.history.history["loss"]


def test_devices_set_up_anew_are_those_of_a_fresh_process() -> None:
    simulate_gpus(2, memory_limit=64)
    mr.config.set_soft_device_placement(False)
    mr.config.experimental.set_device_policy("warn")
    mr.random.set_seed(1)
    first = train(model_of(mr.MirroredStrategy()), epochs=2).get_weights()
    reset()
    assert mr.config.list_physical_devices("GPU") == []
    assert mr.config.get_soft_device_placement() is True
    assert mr.config.experimental.get_device_policy() == "silent"
    simulate_gpus(2)
    assert mr.config.experimental.get_memory_info("GPU:0") == {"current": 0, "peak": 0}
    mr.random.set_seed(1)
    second = train(model_of(mr.MirroredStrategy()), epochs=2).get_weights()
    assert [each.tobytes() for each in first] == [each.tobytes() for each in second]


def test_a_strategy_put_in_force_is_not_any_more() -> None:
    mr.distribute.experimental_set_strategy(mr.MirroredStrategy(["CPU:0"]))
    reset()
    assert not mr.distribute.has_strategy()
    assert type(mr.Variable(1.0)).__name__ == "DeviceVariable"


@pytest.mark.behaviour("reset-devices")
def test_memory_goes_back_whoever_keeps_the_tensors() -> None:
    simulate_gpus(2)
    kept = [mr.ones((100, 100)), mr.Variable(mr.ones((100, 100)))]
    kept.append(kept[0][1:])
    model = train(model_of(mr.MirroredStrategy()))
    function = mr.function(lambda x: mr.matmul(x, x))
    function(kept[0])
    arrays = [weakref.ref(each._array) for each in (kept[0], kept[2], kept[1]._tensor)]
    arrays += [weakref.ref(copy._stays_in.storage.array) for copy in model.weights[0].copies]
    pools = [device.pool for device in mr.devices.logical_devices()]
    reset()
    assert [each() for each in arrays] == [None] * 5
    del kept, model, function
    gc.collect()
    assert [pool.current for pool in pools] == [0, 0, 0]


def test_functions_keep_no_strategy_of_before() -> None:
    function = mr.function(lambda x: x * 2.0)
    simulate_gpus(2)
    strategy = mr.MirroredStrategy()
    strategy.run(function, args=(mr.constant(1.0),))
    with strategy.scope():
        function(mr.constant(1.0))
    kept = weakref.ref(strategy)
    reset()
    del strategy
    gc.collect()
    assert kept() is None


@pytest.mark.behaviour("reset-devices")
def test_no_thread_stays() -> None:
    before = set(threading.enumerate())
    simulate_gpus(2)
    with mr.MirroredStrategy(executor="threads").scope():
        model = train(model_of(mr.distribute.get_strategy()))
    iterator = iter(mr.data.Dataset.range(8).prefetch(2))
    next(iterator)
    names = {thread.name for thread in threading.enumerate()}
    assert {"mirrored-worker-1", "mirrored-prefetch"} <= names
    reset()
    assert set(threading.enumerate()) <= before
    del model, iterator


def test_it_is_done_where_something_fails_to_end() -> None:
    def numbers() -> Any:
        try:
            yield from range(5)
        finally:
            raise OSError("no space left")

    simulate_gpus(2)
    iterator = iter(mr.data.Dataset.from_generator(numbers))
    old, _ = mr.constant(1.0), next(iterator)
    with pytest.raises(OSError, match="no space left"):
        reset()
    with pytest.raises(DevicesResetError):
        float(old)
    assert mr.config.list_physical_devices("GPU") == []


def attempt(found: list[str]) -> None:
    with pytest.raises(RuntimeError, match="inside") as caught:
        reset()
    found.append(str(caught.value))


def in_a_device_scope(found: list[str]) -> None:
    with mr.device(None):
        attempt(found)


def in_a_scope(found: list[str]) -> None:
    with mr.MirroredStrategy().scope():
        attempt(found)


def in_a_replica(found: list[str]) -> None:
    mr.MirroredStrategy().run(lambda: attempt(found) if not found else None)


def in_a_function(found: list[str]) -> None:
    mr.function(lambda: attempt(found))()


def in_fit(found: list[str]) -> None:
    class InAThread(mr.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            thread = threading.Thread(target=attempt, args=(found,))
            thread.start()
            thread.join()

    model = model_of(mr.distribute.get_strategy())
    model.fit(X, X[:, :2], callbacks=[InAThread()], verbose=0)


@pytest.mark.behaviour("reset-devices")
@cases(
    ("where", "words"),
    [
        (in_a_device_scope, "a `with mr.device(...)` block"),
        (in_a_scope, "a strategy's scope"),
        (in_a_replica, "a replica"),
        (in_a_function, "a function that is being recorded"),
        (in_fit, "a running `fit`"),
    ],
)
def test_it_is_refused_in_the_middle(where: Callable[[list[str]], None], words: str) -> None:
    simulate_gpus(2)
    before, found = mr.constant(1.0), []
    where(found)
    assert words in found[0]
    assert float(before) == 1.0  # Nothing was changed.
    reset()


def test_real_cards_are_disconnected(emulated_cuda: Any) -> None:
    before = set(threading.enumerate())
    emulated_cuda(cards=2)
    strategy = mr.MirroredStrategy()
    strategy.run(lambda: mr.distribute.get_replica_context().all_reduce("sum", mr.ones((3,))))
    assert connection.OPEN
    reset()
    assert not connection.OPEN
    assert set(threading.enumerate()) <= before
    with pytest.raises(DevicesResetError):
        strategy.run(lambda: 1)


def test_real_cards_give_their_memory_back(emulated_cuda: Any) -> None:
    emulator = emulated_cuda(cards=1, memory=1 << 30, growth=False)
    free = emulator.cupy.cuda.runtime.memGetInfo
    kept = [mr.ones((100, 100)), mr.Variable(mr.ones((100, 100)))]
    function = mr.function(lambda x: mr.matmul(x, x))
    function(kept[0])
    taken, whole = free()
    assert taken < whole / 2
    reset()
    assert free()[0] == whole
    for use in (lambda: kept[0] + 1.0, lambda: kept[1].numpy(), lambda: function(kept[0])):
        with pytest.raises(DevicesResetError):
            use()
    assert float(mr.reduce_sum(mr.ones((10,)))) == 10.0
