"""What is found in a checkpoint's objects, and the names that it gets."""

import gc
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_table import cases
from hypothesis import given, settings
from hypothesis import strategies as st

import mirrored as mr
from mirrored.errors import ResourceExhaustedError, WeightsFileError
from mirrored.ops import SeedGenerator
from mirrored.ops.random import global_state
from mirrored.training.files.checkpoint_state import (
    GLOBAL_STATE,
    Part,
    collect,
    find_parts,
    named_slots,
)
from mirrored.training.files.restoration import Restored, match, restore
from mirrored.training.files.tensor_file import Specs


def names(**values: Any) -> list[str]:
    return [key for part in find_parts(values) for key in part.objects]


def dense(units: int = 1) -> mr.Model:
    return mr.Sequential([mr.layers.Input(shape=(3,)), mr.layers.Dense(units, use_bias=False)])


def test_containers() -> None:
    inner = mr.train.Checkpoint(v=mr.Variable(0))
    found = names(
        pair=(mr.Variable(1), [mr.Variable(2)]), table={"y": mr.Variable(3), "x": inner}, empty=[]
    )
    assert found == ["pair/0", "pair/1/0", "table/x/save_counter", "table/x/v", "table/y"]


def test_each_kind() -> None:
    layer = mr.layers.Dense(2)
    layer.build((None, 3))
    assert names(layer=layer) == ["layer/0.dense.kernel", "layer/0.dense.bias"]
    assert names(m=mr.metrics.Mean(name="any")) == ["m/total", "m/count"]
    assert names(adam=mr.optim.Adam(name="any")) == ["adam/iterations", "adam/learning_rate"]
    assert names(seeds=SeedGenerator(3)) == ["seeds"]


def test_streams_of_layers_inside_layers() -> None:
    shared = SeedGenerator(1)
    inner = mr.Sequential([mr.layers.Dropout(0.1, seed=shared), mr.layers.Dropout(0.2)])
    model = mr.Sequential([mr.layers.Input(shape=(3,)), inner, mr.layers.Dropout(0.3, seed=shared)])
    assert names(model=model) == [
        "model/2.dropout.seed_generator",
        "model/3.dropout.seed_generator",
    ]


def test_what_is_there_twice_is_saved_once() -> None:
    v, model = mr.Variable(0), dense()
    loop: list[Any] = [v]
    loop.append(loop)
    assert collected(a=loop, b=v, c=[v]) == (["a/0"], {"b": "a/0", "c/0": "a/0"})
    kernel = "1.dense.kernel"
    others = {f"{name}/{kernel}": "a" for name in "mn"}
    assert collected(a=model.weights[0], m=model, n=model) == (["a"], others)
    adam = mr.optim.Adam()
    own = ["iterations", "learning_rate"]
    others = {f"b/{name}": f"a/{name}" for name in own}
    assert collected(a=adam, b=adam) == ([f"a/{name}" for name in own], others)
    generator = SeedGenerator(1)
    assert collected(a=generator, b=generator) == (["a"], {"b": "a"})


def collected(**values: Any) -> tuple[list[str], dict[str, str]]:
    tensors, aliases = collect(find_parts(values))
    return [name for name in tensors if name != GLOBAL_STATE], aliases


def test_the_optimizer_of_a_compiled_model() -> None:
    model = dense()
    model.compile("sgd", "mse")
    own = ["model/1.dense.kernel"]
    assert names(model=model) == [
        *own,
        "model.optimizer/iterations",
        "model.optimizer/learning_rate",
    ]
    given = ["optimizer/iterations", "optimizer/learning_rate"]
    assert names(model=model, optimizer=model.optimizer) == [*own, *given]


def test_slots_have_the_names_of_their_variables() -> None:
    first, second, optimizer = mr.Variable(1.0), mr.Variable(2.0), mr.optim.Adam()
    optimizer.build([second])
    parts = find_parts({"optimizer": optimizer, "pair": [first, second]})
    assert list(named_slots(parts[0], parts)) == [
        f"optimizer/slots/pair/1/{name}" for name in optimizer.slot_names
    ]
    assert named_slots(parts[1], parts) == {}


def test_slots_of_a_variable_that_is_not_there() -> None:
    optimizer = mr.optim.Adam()
    known = mr.Variable(1.0)
    optimizer.build([known, mr.Variable(1.0, name="w")])
    with pytest.raises(ValueError, match=r"'o' keeps \(.*\) for the variable 'w:0', which is not"):
        collect(find_parts({"o": optimizer, "v": known}))


def test_what_is_collected() -> None:
    mr.random.set_seed(5)
    mr.random.uniform((1,), seed=9)
    generator = SeedGenerator(2**64 - 1)
    generator.uniform((2,))
    variable = mr.Variable([1.5, 2.5])
    tensors, aliases = collect(find_parts({"g": generator, "v": variable}))
    assert (sorted(tensors), aliases) == (["g", GLOBAL_STATE, "v"], {})
    assert tensors["v"] is variable  # It is read when its turn to be written comes.
    assert tensors["g"].view(np.uint64).tolist() == [2**64 - 1, 1]
    assert tensors[GLOBAL_STATE].tolist() == [5, 0, 9, 1]
    assert tuple(global_state()) == (5, 0, ((9, 1),))


Refused = tuple[Callable[[], Any], str]
REFUSED: dict[str, Refused] = {
    "a number": (lambda: 5, "expecting x to be a trackable object, got 5. Trackable objects are"),
    "a number in a list": (lambda: [mr.Variable(0), 0.5], "expecting x/1 to be a trackable"),
    "none": (lambda: None, "expecting x to be a trackable object, got None"),
    "a tensor": (lambda: mr.constant(1.0), "expecting x to be a trackable object"),
    "a class": (lambda: mr.optim.SGD, "expecting x to be a trackable object"),
    "a key": (lambda: {3: mr.Variable(0)}, "must be strings, .* Received: x with the key 3"),
    "a model": (
        lambda: mr.Sequential([mr.layers.Dense(1)], name="net"),
        "x is a model that has not yet been built, 'net', .* Build the model first",
    ),
    "one name twice": (
        lambda: {"a/b": mr.Variable(0), "a": {"b": mr.Variable(0)}},
        "the same name in the file. Received: 'x/a/b' twice",
    ),
}


@cases(("make", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        find_parts({"x": make()})


def test_a_name_of_our_own() -> None:
    with pytest.raises(ValueError, match=f"Received: '{GLOBAL_STATE}' twice"):
        find_parts({GLOBAL_STATE: mr.Variable(0)})


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_on_read_variables_and_metrics(
    replicas: int, simulate: Callable[..., Any], tmp_path: Path
) -> None:
    """They are saved as one value, and restored on any number of replicas."""
    simulate(3)

    def make(count: int) -> tuple[Any, Any, mr.train.Checkpoint]:
        strategy = mr.MirroredStrategy([f"GPU:{i}" for i in range(count)])
        with strategy.scope():
            counter = mr.Variable(
                0,
                synchronization=mr.VariableSynchronization.ON_READ,
                aggregation=mr.VariableAggregation.SUM,
            )
            metric = mr.metrics.Mean()
        return strategy, counter, mr.train.Checkpoint(counter=counter, metric=metric)

    strategy, counter, saved = make(2)
    strategy.run(lambda: counter.assign_add(5))
    saved.metric.update_state([1.0, 4.0])
    path = saved.save(tmp_path / "ckpt")
    _, again, restored = make(replicas)
    restored.restore(path).assert_consumed()
    assert int(again) == int(counter) == 10
    assert float(restored.metric.result()) == 2.5


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
    with pytest.raises(
        WeightsFileError, match=f"belongs to another program: .*{message}"
    ) as caught:
        mr.train.Checkpoint(model=model).restore(path)
    assert path in str(caught.value)
    assert bits(everything(model)) == before


def arrays(parts: list[Part]) -> dict[str, np.ndarray]:
    """Return what is written of parts."""
    return {key: np.asarray(each) for key, each in collect(parts)[0].items()}


def specs(tensors: dict[str, np.ndarray]) -> Specs:
    return {key: (each.shape, each.dtype.name) for key, each in tensors.items()}


def test_slots_of_which_one_is_missing() -> None:
    v, optimizer = mr.Variable(1.0), mr.optim.Adam()
    step(optimizer, v)
    parts = find_parts({"v": v, "adam": optimizer})
    tensors = arrays(parts)
    lost = next(key for key in tensors if "/slots/" in key)
    del tensors[lost]
    with pytest.raises(WeightsFileError, match=f"no '{lost}'"):
        match("file", parts, specs(tensors), {}, Restored())


def test_slots_are_made_and_those_beside_begin_anew() -> None:
    """Of two variables, one was trained before saving, and the other since."""
    a, b, optimizer = mr.Variable(1.0), mr.Variable(1.0), mr.optim.SGD(0.1, momentum=0.9)
    parts = find_parts({"a": a, "b": b, "sgd": optimizer})
    step(optimizer, a)
    tensors = arrays(parts)
    step(optimizer, a, b)

    fresh = mr.optim.SGD(0.1, momentum=0.9)
    for used, others in ((optimizer, parts), (fresh, find_parts({"a": a, "b": b, "sgd": fresh}))):
        restore(match("file", others, specs(tensors), {}, Restored()), others, tensors, Restored())
        slots = {id(variable): float(slot) for variable, (slot,) in used.slots.snapshot().values()}
        assert slots[id(a)] == pytest.approx(-0.1)
        assert slots.get(id(b), 0.0) == 0.0
        assert int(used.iterations) == 1
    assert list(fresh.slots.snapshot()) == [id(a)]


def shared(first: str, second: str) -> dict[str, Any]:
    """Return objects that have two names each, all of them of other kinds."""
    made = {
        "variable": mr.Variable(1.0),
        "layer": mr.layers.Dropout(0.5, seed=3),
        "model": make(2),
        "metric": mr.metrics.Mean(),
    }
    made["layer"].build((None, 1))
    fit(made["model"])
    return {f"{name}_{each}": made[each] for name in (first, second) for each in made}


@pytest.mark.behaviour("either-name")
@pytest.mark.parametrize("name", ["a", "b"])
def test_either_of_two_names(name: str, tmp_path: Path, bits: Bits) -> None:
    """With slots and streams, and whatever the names are sorted to."""
    saved = shared("a", "b")
    saved["a_variable"].assign(5.0)
    saved["a_layer"](mr.ones((2, 2)), training=True)
    saved["a_metric"].update_state([3.0])
    checkpoint = mr.train.Checkpoint(**saved)
    path = checkpoint.write(tmp_path / "c")
    fresh = shared(name, name)
    mr.train.Checkpoint(**fresh).restore(path).assert_consumed()
    assert float(fresh[f"{name}_variable"]) == 5.0
    assert float(fresh[f"{name}_metric"].result()) == 3.0
    assert fresh[f"{name}_layer"].seed_generator.state == saved["a_layer"].seed_generator.state
    assert bits(everything(fresh[f"{name}_model"])) == bits(everything(saved["a_model"]))


@pytest.mark.parametrize("name", ["a", "b"])
def test_one_of_the_two_names_that_objects_have(name: str, tmp_path: Path, bits: Bits) -> None:
    saved, fresh = shared(name, name), shared("a", "b")
    saved[f"{name}_variable"].assign(5.0)
    path = mr.train.Checkpoint(**saved).write(tmp_path / "c")
    mr.train.Checkpoint(**fresh).restore(path).assert_consumed()
    assert float(fresh["a_variable"]) == 5.0
    assert bits(everything(fresh["a_model"])) == bits(everything(saved[f"{name}_model"]))
    # And what has more names in one program has fewer in the next, with all its slots.
    path = mr.train.Checkpoint(**fresh).write(tmp_path / "c")
    fit(saved[f"{name}_model"])
    mr.train.Checkpoint(**saved).restore(path).assert_consumed()
    assert bits(everything(fresh["a_model"])) == bits(everything(saved[f"{name}_model"]))


def test_one_value_for_two_variables(tmp_path: Path) -> None:
    """As in TensorFlow 2.21 it is the first one's, and the other one is told to be left out."""
    v = mr.Variable(5.0)
    path = mr.train.Checkpoint(a=v, b=v).write(tmp_path / "c")
    x, y = mr.Variable(0.0), mr.Variable(0.0)
    status = mr.train.Checkpoint(a=x, b=y).restore(path).expect_partial()
    assert (float(x), float(y)) == (5.0, 0.0)
    with pytest.raises(AssertionError, match=r"Found 1 Python objects .* has no values for b\."):
        status.assert_existing_objects_matched()


def test_a_variable_with_more_names_than_the_file_has(tmp_path: Path) -> None:
    v, w = mr.Variable(5.0), mr.Variable(6.0)
    path = mr.train.Checkpoint(b=v, c=w).write(tmp_path / "c")
    v.assign(0.0)
    mr.train.Checkpoint(a=[v], b=v, c=w, d={"e": w}).restore(path).assert_consumed()
    assert (float(v), float(w)) == (5.0, 6.0)
    # Two values of the file cannot both be one variable's: the other one is told to be left.
    status = mr.train.Checkpoint(b=v, c=v).restore(path).expect_partial()
    assert float(v) == 5.0
    with pytest.raises(AssertionError, match=r"Unresolved object in checkpoint .*: c\."):
        status.assert_consumed()


def test_out_of_memory(simulate: Callable[..., Any], tmp_path: Path, bits: Bits) -> None:
    """The second replica has room for a part of the new values only."""
    simulate(2, memory_limit=2)
    with mr.MirroredStrategy().scope():
        saved, model = (make(100, 100, features=200) for _ in range(2))
    fit(saved, 200)
    path = mr.train.Checkpoint(model=saved).save(tmp_path / "ckpt")
    del saved
    checkpoint = mr.train.Checkpoint(model=model)
    before, slots = bits(everything(model)), list(model.optimizer.slots.snapshot())
    hog = fill("GPU:1", 300_000)
    with pytest.raises(ResourceExhaustedError, match="GPU:1"):
        checkpoint.restore(path)
    assert bits(everything(model)) == before
    assert list(model.optimizer.slots.snapshot()) == slots
    for variable in model.weights:
        first, second = (copy.numpy() for copy in variable.copies)
        np.testing.assert_array_equal(first, second)
    del hog
    checkpoint.restore(path).assert_consumed()
    assert len(model.optimizer.slots.snapshot()) == 4
    assert bits(everything(model)) != before


def fill(device: str, rest: int) -> mr.Tensor:
    """Leave so many bytes of a device's 2 MB."""
    gc.collect()
    free = (2 << 20) - mr.config.experimental.get_memory_info(device)["current"]
    with mr.device(device):
        return mr.zeros(((free - rest) // 4,))


def test_a_trained_model_takes_no_memory_beside(
    simulate: Callable[..., Any], tmp_path: Path, bits: Bits
) -> None:
    """Its weights and slots stay where they are, and the file's are copied right there."""
    simulate(2, memory_limit=2)
    with mr.MirroredStrategy().scope():
        model = make(100, 100, features=200)
    fit(model, 200)
    checkpoint = mr.train.Checkpoint(model=model)
    path = checkpoint.save(tmp_path / "ckpt")
    model.save_weights(tmp_path / "w.safetensors")
    before = bits(everything(model))
    fit(model, 200)
    after = bits(everything(model))
    hog = fill("GPU:1", 4)
    checkpoint.restore(path).assert_consumed()
    assert bits(everything(model)) == before != after
    model.set_weights([each + 1.0 for each in model.get_weights()])
    assert bits(everything(model)) != before
    model.load_weights(tmp_path / "w.safetensors")
    assert bits(everything(model)) == before
    del hog


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
    assert outside.slots.snapshot() == {}


@pytest.mark.usefixtures("python_interrupts")
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


@settings(max_examples=8)
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

    tensors = arrays(find_parts({"tree": variables(tree, True)}))
    fresh = find_parts({"tree": variables(tree, False), "z": mr.Variable(7)})
    matches = match("file", fresh, specs(tensors), {}, Restored())
    restore(matches, fresh, tensors, Restored())
    assert (matches.missing, matches.unused) == (["z"], [])
    for key, array in arrays(fresh).items():
        expected = tensors.get(key, np.array(7, np.int32))
        assert array.dtype == expected.dtype
        np.testing.assert_array_equal(array, expected)
