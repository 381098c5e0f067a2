"""Restoring compares all and allocates all before it writes the first value."""

import gc
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mirrored as mr
from mirrored.errors import ResourceExhaustedError, WeightsFileError
from mirrored.ops.random import global_state
from mirrored.training.checkpoint_parts import collect, find_parts
from mirrored.training.checkpoint_restoring import match, restore

Bits = Callable[[Any], list[Any]]


def make(*units: int, optimizer: str = "adam", features: int = 3, **options: Any) -> mr.Model:
    """Return a compiled model of dense layers, and a dropout at the end."""
    layers = [mr.layers.Dense(each, **options) for each in units]
    model = mr.Sequential(
        [mr.layers.Input(shape=(features,)), *layers, mr.layers.Dropout(0.5, seed=1)]
    )
    model.compile(optimizer, "mse")
    return model


def fit(model: mr.Model, features: int = 3) -> None:
    shape = model.output_shape[1:]
    model.fit(np.ones((4, features)), np.ones((4, *shape)), verbose=0)


def step(optimizer: mr.optim.Optimizer, *variables: mr.Variable) -> None:
    optimizer.apply_gradients([(mr.ones_like(each), each) for each in variables])


def everything(model: mr.Model) -> list[Any]:
    variables = [*model.weights, *model.optimizer.variables]
    generator = model.layers[-1].seed_generator
    return [*(each.numpy() for each in variables), generator.state, global_state()[:2]]


Change = tuple[Callable[[], mr.Model], str]
OTHERS: dict[str, Change] = {
    "fewer layers": (lambda: make(2), "unexpected 'model/2.dense.bias'"),
    "more layers": (lambda: make(2, 1, 1), "no 'model/3.dense.kernel'"),
    "other shapes": (
        lambda: make(4, 1),
        r"'model/1.dense.kernel' has shape \(3, 2\), the program's has \(3, 4\)",
    ),
    "another dtype": (
        lambda: make(2, 1, dtype="float64"),
        "'model/1.dense.kernel' is float32, the program's is float64",
    ),
    "another optimizer": (
        lambda: make(2, 1, optimizer="sgd"),
        "unexpected 'model.optimizer/slots/model/1.dense.bias/",
    ),
}


@pytest.mark.parametrize(("other", "message"), OTHERS.values(), ids=OTHERS)
def test_the_state_of_another_model(
    other: Callable[[], mr.Model], message: str, tmp_path: Path, bits: Bits
) -> None:
    saved, model = make(2, 1), other()
    for each in (saved, model):
        fit(each)
    path = mr.train.Checkpoint(model=saved).save(tmp_path / "ckpt")
    before = bits(everything(model))
    with pytest.raises(WeightsFileError, match=f"of another program: .*{message}") as caught:
        mr.train.Checkpoint(model=model).restore(path)
    assert path in str(caught.value)
    assert bits(everything(model)) == before


def test_slots_of_which_one_is_missing() -> None:
    v, optimizer = mr.Variable(1.0), mr.optim.Adam()
    step(optimizer, v)
    parts = find_parts({"v": v, "adam": optimizer})
    tensors = collect(parts)
    lost = next(key for key in tensors if "/slots/" in key)
    del tensors[lost]
    with pytest.raises(WeightsFileError, match=f"no '{lost}'"):
        match("file", parts, tensors)


def test_slots_are_made_and_those_beside_begin_anew() -> None:
    """Of two variables, one was trained before saving, and the other since."""
    a, b, optimizer = mr.Variable(1.0), mr.Variable(1.0), mr.optim.SGD(0.1, momentum=0.9)
    parts = find_parts({"a": a, "b": b, "sgd": optimizer})
    step(optimizer, a)
    tensors = collect(parts)
    step(optimizer, a, b)

    fresh = mr.optim.SGD(0.1, momentum=0.9)
    for used, others in ((optimizer, parts), (fresh, find_parts({"a": a, "b": b, "sgd": fresh}))):
        restore(match("file", others, tensors), others, tensors)
        slots = {id(variable): float(slot) for variable, (slot,) in used.slots().values()}
        assert slots[id(a)] == pytest.approx(-0.1)
        assert slots.get(id(b), 0.0) == 0.0
        assert int(used.iterations) == 1
    assert list(fresh.slots()) == [id(a)]


@pytest.mark.parametrize("trained", [True, False], ids=["with slots", "without slots"])
def test_out_of_memory(
    trained: bool, simulate: Callable[..., Any], tmp_path: Path, bits: Bits
) -> None:
    """The second replica has room for a part of the new values only."""
    simulate(2, memory_limit=2)
    with mr.MirroredStrategy().scope():
        saved, model = (make(100, 100, features=200) for _ in range(2))
    fit(saved, 200)
    path = mr.train.Checkpoint(model=saved).save(tmp_path / "ckpt")
    del saved
    if trained:
        fit(model, 200)
    checkpoint = mr.train.Checkpoint(model=model)
    before, slots = bits(everything(model)), list(model.optimizer.slots())
    gc.collect()
    free = (2 << 20) - mr.config.experimental.get_memory_info("GPU:1")["current"]
    with mr.device("GPU:1"):
        hog = mr.zeros(((free - 300_000) // 4,))
    with pytest.raises(ResourceExhaustedError, match="GPU:1"):
        checkpoint.restore(path)
    assert bits(everything(model)) == before
    assert list(model.optimizer.slots()) == slots
    for variable in model.variables:
        first, second = (copy.numpy() for copy in variable.copies)
        np.testing.assert_array_equal(first, second)
    del hog
    checkpoint.restore(path).assert_consumed()
    assert len(model.optimizer.slots()) == 4
    assert bits(everything(model)) != before


def test_an_optimizer_of_another_strategy(simulate: Callable[..., Any], tmp_path: Path) -> None:
    simulate(2)
    with mr.MirroredStrategy().scope():
        model = make(1)
    fit(model)
    path = mr.train.Checkpoint(model=model, optimizer=model.optimizer).save(tmp_path / "ckpt")
    outside = mr.optim.Adam()
    kernel = model.get_weights()[0]
    model.set_weights([each + 1.0 for each in model.get_weights()])
    with pytest.raises(ValueError, match="was not created in the distribution strategy scope of"):
        mr.train.Checkpoint(model=model, optimizer=outside).restore(path)
    np.testing.assert_array_equal(model.get_weights()[0], kernel + 1.0)
    assert outside.slots() == {}


def test_an_interrupt_waits_until_all_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = [mr.Variable(1.0), mr.Variable(2.0)]
    checkpoint = mr.train.Checkpoint(pair=pair)
    path = checkpoint.save(tmp_path / "ckpt")
    for each in pair:
        each.assign(0.0)
    commit = type(pair[0]).commit

    def interrupted(self: Any, *args: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        commit(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(type(pair[0]), "commit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            checkpoint.restore(path)
    assert [float(each) for each in pair] == [1.0, 2.0]


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_any_structure_comes_back(data: st.DataObject) -> None:
    """Nested as one likes, of every dtype; what else is there stays as it is."""
    dtypes = st.sampled_from(["float32", "float64", "int32", "int64", "bool"])
    shapes = st.lists(st.integers(0, 3), max_size=2).map(tuple)
    leaves = st.tuples(shapes, dtypes)
    keys = st.text("abc.", min_size=1, max_size=3)
    trees = st.recursive(
        leaves.map(lambda leaf: np.zeros(*leaf)),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
        max_leaves=6,
    )
    tree = data.draw(trees)
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))

    def variables(node: Any, random: bool) -> Any:
        if isinstance(node, list):
            return [variables(each, random) for each in node]
        if isinstance(node, dict):
            return {key: variables(each, random) for key, each in node.items()}
        values = rng.integers(0, 2, node.shape) if random else node
        return mr.Variable(values.astype(node.dtype))

    tensors = collect(find_parts({"tree": variables(tree, True)}))
    fresh = find_parts({"tree": variables(tree, False), "z": mr.Variable(7)})
    matches = match("file", fresh, tensors)
    restore(matches, fresh, tensors)
    assert (matches.missing, matches.unused) == (["z"], [])
    for key, array in collect(fresh).items():
        expected = tensors.get(key, np.array(7, np.int32))
        assert array.dtype == expected.dtype
        np.testing.assert_array_equal(array, expected)
