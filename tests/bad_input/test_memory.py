"""Memory that runs out, wherever a step may be: nothing stays of it.

The limit is that of simulated GPUs, and the garbage collector is off, so that nothing hides.
"""

import gc
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored.backends.backend import OutOfPoolMemory
from mirrored.backends.host import CountingPool
from mirrored.errors import ResourceExhaustedError

CLASSES = 3

get_memory_info = mr.config.experimental.get_memory_info


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Switch the garbage collector off: memory must come back without it."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


WIDE = np.random.default_rng(3).normal(size=(12, 64)).astype(np.float32)
PARTS = 16
TOTAL = 1 << 20  # The limit of each simulated GPU in bytes: 1 MB.


def make_wide(strategy: mr.MirroredStrategy, **compile: Any) -> mr.Model:
    """Return a model whose updates need more memory than its outputs."""
    mr.random.set_seed(2)
    with strategy.scope():
        model = mr.Sequential([mr.layers.Input(shape=(64,)), mr.layers.Dense(64, "tanh")])
        model.add(mr.layers.Dense(CLASSES, "softmax"))
        loss = "sparse_categorical_crossentropy"
        model.compile(mr.optim.Adam(0.01), loss, metrics=["accuracy"], **compile)
    return model


def in_use() -> list[int]:
    devices = mr.config.list_logical_devices()
    return [get_memory_info(device)["current"] for device in devices]


# By the functions on the way there, which part of a step raised: of one that runs eagerly, and of
# one that is recorded, which has room for all that it computes or is not begun.
EAGER = {
    "_cut": "transfer",
    "backpropagate": "backward",
    "_forward": "forward",
    "updates": "update",
    "build": "slots",
}
RECORDED = {
    "allocate_at": "the program's memory",
    "_slot": "slots",
    "_units": "slots brought together",
    "pack": "weights brought together",
}
# What the error says that there was no room for, by the place: no bytes of a program's.
WHAT = dict.fromkeys(EAGER.values(), "allocating tensor with shape [") | {
    "the program's memory": "allocating the step's memory for {} examples a replica on ",
    "slots": "allocating tensor with shape [",
    "slots brought together": "allocating the memory of variables that lie together, ",
    "weights brought together": "allocating the memory of variables that lie together, ",
}


def place_of(error: BaseException, places: dict[str, str]) -> str:
    """Return which part of a step raised."""
    names = {frame.name for frame in traceback.extract_tb(error.__traceback__)}
    return next((places[each] for each in places if each in names), "elsewhere")


def fill(gpu: str, free: int) -> mr.Tensor:
    """Return a tensor that leaves so many bytes free on a device."""
    with mr.device(gpu):
        return mr.zeros((TOTAL - get_memory_info(gpu)["current"] - free,), "uint8")


@pytest.mark.behaviour("out-of-memory-of-a-step")
@pytest.mark.parametrize(
    ("eager", "examples"), [(True, 12), (False, 240)], ids=["eager", "recorded"]
)
def test_out_of_memory_at_every_place(
    eager: bool,
    examples: int,
    replicas: int,
    simulate: Callable[..., Any],
    no_collector: None,
    train: Callable[..., mr.callbacks.History],
    state: Callable[..., list[bytes]],
    data: tuple[np.ndarray, np.ndarray],
) -> None:
    """One device has less and less room; whatever fails, nothing stays, and training goes on."""
    simulate(replicas, memory_limit=1)
    strategy = mr.MirroredStrategy()
    gpu = f"GPU:{replicas - 1}"
    model, reference = (make_wide(strategy, run_eagerly=eager) for _ in range(2))
    rows = np.arange(examples) % 12
    options: dict[str, Any] = {"x": WIDE[rows], "y": data[1][rows], "batch_size": examples // 2}
    base = get_memory_info(gpu)["current"]
    mr.config.experimental.reset_memory_stats(gpu)
    train(reference, **options)
    need = get_memory_info(gpu)["peak"] - base
    before = state(model)
    places = []
    for part in range(PARTS):  # Closer together at first, where transfer and forward fail.
        full = fill(gpu, need * part**3 // PARTS**3)
        held = in_use()
        try:
            train(model, **options)
        except ResourceExhaustedError as error:
            places.append(place_of(error, EAGER if eager else RECORDED))
            text = str(error)
            notes = "".join(getattr(error, "__notes__", []))
        else:
            pytest.fail(f"({part}/{PARTS})^3 of the memory was enough")
        assert f"device:{gpu}: " in text
        for each in ("OOM when allocating ", " asked for, ", " in use, limit 1.0"):
            assert each in text
        assert WHAT.get(places[-1], "").format(examples // 2 // replicas) in text
        if replicas > 1 and places[-1] in ("transfer", "forward", "backward", "update"):
            assert f"Raised in replica {replicas - 1} on " in notes
        assert in_use() == held
        assert state(model) == before
        assert threading.enumerate() == [threading.main_thread()]
        del full
    if eager:
        assert set(places) >= {"transfer", "forward", "backward", "update"}
    else:
        # Slots share their zeros at first: those of one replica fit into what its weights needed.
        always = set(RECORDED.values()) - ({"slots"} if replicas == 1 else set())
        assert set(places) >= always
    # With the memory free again, training is what it would have been.
    train(model, **options)
    assert state(model) == state(reference)


def make_convolutional(strategy: mr.MirroredStrategy, **compile: Any) -> mr.Model:
    """Return a model whose convolutions and poolings need memory for blocks of patches."""
    mr.random.set_seed(2)
    with strategy.scope():
        model = mr.Sequential([mr.layers.Input(shape=(64,)), mr.layers.Reshape((8, 8, 1))])
        model.add(mr.layers.Conv2D(4, 3, padding="same", activation="relu"))
        model.add(mr.layers.BatchNormalization())
        model.add(mr.layers.DepthwiseConv2D(3))
        model.add(mr.layers.MaxPooling2D(2))
        model.add(mr.layers.Conv2DTranspose(3, 3, strides=2))
        model.add(mr.layers.AveragePooling2D(3, strides=2))
        model.add(mr.layers.Flatten())
        model.add(mr.layers.Dense(CLASSES, "softmax"))
        loss = "sparse_categorical_crossentropy"
        model.compile(mr.optim.SGD(0.01, momentum=0.9), loss, **compile)
    return model


@pytest.mark.parametrize("eager", [pytest.param(True, marks=pytest.mark.slow), False])
def test_the_last_byte_of_a_convolutional_model(
    eager: bool,
    replicas: int,
    simulate: Callable[..., Any],
    no_collector: None,
    train: Callable[..., mr.callbacks.History],
    state: Callable[..., list[bytes]],
    data: tuple[np.ndarray, np.ndarray],
) -> None:
    """With a byte less than it needs a step raises and leaves nothing; with that byte it fits."""
    simulate(replicas, memory_limit=1)
    strategy = mr.MirroredStrategy()
    gpu = f"GPU:{replicas - 1}"
    model, reference = (make_convolutional(strategy, run_eagerly=eager) for _ in range(2))
    options: dict[str, Any] = {"x": WIDE[:7], "y": data[1][:7], "batch_size": 7}  # One step.
    base = get_memory_info(gpu)["current"]
    mr.config.experimental.reset_memory_stats(gpu)
    train(reference, **options)
    need = get_memory_info(gpu)["peak"] - base
    before = state(model)
    full = fill(gpu, need - 1)
    held = in_use()
    with pytest.raises(ResourceExhaustedError, match=rf"OOM when allocating .*device:{gpu}: "):
        train(model, **options)
    assert (in_use(), state(model)) == (held, before)
    del full
    full = fill(gpu, need)
    train(model, **options)
    assert state(model) == state(reference)
    del full


def test_a_smaller_batch_fits(
    replicas: int,
    simulate: Callable[..., Any],
    no_collector: None,
    train: Callable[..., mr.callbacks.History],
    state: Callable[..., list[bytes]],
    data: tuple[np.ndarray, np.ndarray],
) -> None:
    simulate(replicas, memory_limit=1)
    strategy = mr.MirroredStrategy()
    model, reference = make_wide(strategy), make_wide(strategy)
    many = np.tile(WIDE, (500, 1))
    labels = np.tile(data[1], 500)
    with pytest.raises(MemoryError) as caught:
        train(model, x=many, y=labels, batch_size=6000)
    assert "Use a smaller batch or model, or raise the limit." in str(caught.value)
    del caught
    held = in_use()
    with pytest.raises(MemoryError):
        model.evaluate(many, labels, batch_size=6000, verbose=0)
    with pytest.raises(MemoryError):
        model.predict(many, batch_size=6000, verbose=0)
    assert in_use() == held
    for each in (model, reference):
        train(each, x=many, y=labels, batch_size=100, steps_per_epoch=3)
    assert state(model) == state(reference)
    assert model.predict(many, batch_size=100, verbose=0).shape == (6000, CLASSES)


def test_out_of_memory_while_a_model_is_built(
    replicas: int,
    simulate: Callable[..., Any],
    no_collector: None,
    train: Callable[..., mr.callbacks.History],
) -> None:
    """The layers that had room give it back, and a smaller input builds the same model."""
    simulate(replicas, memory_limit=1)
    with mr.MirroredStrategy().scope():
        model = mr.Sequential([mr.layers.Dense(64, "tanh"), mr.layers.Dense(CLASSES, "softmax")])
        model.compile("sgd", "sparse_categorical_crossentropy")
    held = in_use()
    full = fill("GPU:0", 20_000)  # The first kernel fits, and then no more.
    with pytest.raises(ResourceExhaustedError):
        train(model, x=WIDE)
    assert (model.built, model.weights) == (False, [])
    del full
    assert in_use() == held
    train(model, x=WIDE[:, :7])


def test_an_error_that_is_kept_keeps_its_memory_only_until_it_goes(
    replicas: int,
    simulate: Callable[..., Any],
    no_collector: None,
    train: Callable[..., mr.callbacks.History],
) -> None:
    simulate(replicas, memory_limit=1)
    model = make_wide(mr.MirroredStrategy())
    full = fill("GPU:0", 8_000)
    held = in_use()
    kept: list[BaseException] = []
    try:
        train(model, x=WIDE)
    except MemoryError as error:
        kept.append(error)
    assert kept
    kept.clear()
    assert in_use() == held
    del full
    train(model, x=WIDE)


def test_a_recorded_function_without_room(simulate: Callable[..., Any]) -> None:
    """The text names the function, and speaks of no tensor that nobody made."""
    simulate(1, memory_limit=1)

    @mr.function
    def squares(x: mr.Tensor) -> mr.Tensor:
        return mr.reduce_sum(mr.exp(mr.matmul(x, x)))

    x = mr.zeros((400, 400))
    text = r"OOM when allocating the memory of the recorded function 'squares' on .*device:GPU:0: "
    with pytest.raises(ResourceExhaustedError, match=text):
        squares(x)
    assert float(squares(mr.zeros((10, 10)))) == 100.0


@pytest.mark.parametrize(
    ("count", "every", "options"),
    [
        (2, 3, {}),
        pytest.param(3, 1, {"steps_per_execution": 2}, marks=pytest.mark.slow),
        pytest.param(2, 13, {"run_eagerly": True}, marks=pytest.mark.slow),
    ],
)
def test_no_memory_at_any_allocation_of_a_first_step(
    count: int,
    every: int,
    options: dict[str, Any],
    state: Callable[[mr.Model], list[bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Moving statistics, slots and counters of all replicas are as before, or as after the step."""
    mr.config.experimental.set_simulated_gpus(count, memory_limit=64)
    strategy, reserve, left = mr.MirroredStrategy(), CountingPool.reserve, -1

    def refuse(pool: CountingPool, nbytes: int) -> None:
        nonlocal left
        left -= 1
        if -4 <= left < 0:  # It is asked for again before the step fails.
            raise OutOfPoolMemory(nbytes, pool)
        reserve(pool, nbytes)

    def make() -> mr.Model:
        mr.random.set_seed(2)
        with strategy.scope():
            layers = [mr.layers.Dense(4), mr.layers.BatchNormalization(), mr.layers.Dense(CLASSES)]
            model = mr.Sequential([mr.layers.Input((64,)), *layers])
            inner = mr.optim.SGD(0.1, momentum=0.9, gradient_accumulation_steps=2)
            model.compile(mr.optim.LossScaleOptimizer(inner, 8.0), "mse", **options)
        return model

    def fit(model: mr.Model) -> None:
        model.fit(WIDE, WIDE[:, :CLASSES], batch_size=12, shuffle=False, verbose=0)

    whole = make()
    fit(whole)
    call, raised = 1, 0
    while left < 0:
        model = make()
        before = state(model)
        with monkeypatch.context() as patch:
            patch.setattr(CountingPool, "reserve", refuse)
            left = call
            try:
                fit(model)
            except ResourceExhaustedError:
                raised += 1
                assert state(model) == before
            else:
                assert state(model) == state(whole)
        call += every
    assert raised > 5
