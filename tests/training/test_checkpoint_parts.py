"""What is found in a checkpoint's objects, and the names that it gets."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored.ops import SeedGenerator
from mirrored.ops.random import global_state
from mirrored.training.checkpoint_parts import GLOBAL_STATE, collect, find_parts, named_slots


def names(**values: Any) -> list[str]:
    return [key for part in find_parts(values) for key in (*part.variables, *part.generators)]


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
    optimizer.build([mr.Variable(1.0, name="w")])
    with pytest.raises(ValueError, match=r"'o' keeps \(.*\) for the variable 'w:0', which is not"):
        collect(find_parts({"o": optimizer}))


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
    "a number": (lambda: 5, "expecting x to be a trackable object, got 5. Trackable are"),
    "a number in a list": (lambda: [mr.Variable(0), 0.5], "expecting x/1 to be a trackable"),
    "none": (lambda: None, "expecting x to be a trackable object, got None"),
    "a tensor": (lambda: mr.constant(1.0), "expecting x to be a trackable object"),
    "a class": (lambda: mr.optim.SGD, "expecting x to be a trackable object"),
    "a key": (lambda: {3: mr.Variable(0)}, "are strings, .* Received: x with the key 3"),
    "a model": (
        lambda: mr.Sequential([mr.layers.Dense(1)], name="net"),
        "x is a model that has not yet been built, 'net', .* Build the model first",
    ),
    "one name twice": (
        lambda: {"a/b": mr.Variable(0), "a": {"b": mr.Variable(0)}},
        "one name in the file. Received: 'x/a/b' twice",
    ),
}


@pytest.mark.parametrize(("make", "message"), REFUSED.values(), ids=REFUSED)
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
