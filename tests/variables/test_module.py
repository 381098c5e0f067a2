"""What a module finds in its attributes, in which order, and what uses that.

The names and orders are those that TensorFlow 2.21 gives for the same classes.
"""

import copy
import pickle
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr

Pair = namedtuple("Pair", "q p")


def variable(name: str, value: Any = 1.0, trainable: bool = True) -> mr.Variable:
    return mr.Variable(value, trainable=trainable, name=name)


class Leaf(mr.Module):
    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.w = variable("w")
        self.parent: Any = None


class Whole(mr.Module):
    """Holds variables and modules in every way there is."""

    def __init__(self) -> None:
        super().__init__()
        self.z, self.a = variable("z"), variable("a")
        self.items = [variable("i0"), (variable("i1"), {"k": variable("k"), "b": variable("b")})]
        self.sub = Leaf("first")
        self._p = variable("_p", trainable=False)
        self.two = [Leaf("second"), {"x": Leaf("third")}]
        self.again, self.number, self.me = self.z, 3, self
        self.sub.parent = self
        self.od = OrderedDict(d=variable("d"), c=variable("c"))
        self.named = Pair(variable("q"), variable("p"))
        self.late = defaultdict(list)
        self.late["v"].append(variable("v"))
        self.dense = mr.layers.Dense(2)
        self.dense.build((None, 3))


class Dense(mr.Module):
    """Makes its weights when it is called, as TensorFlow's guide writes it."""

    def __init__(self, size: int, name: str | None = None) -> None:
        super().__init__(name)
        self.size, self.is_built = size, False

    @mr.Module.with_name_scope
    def __call__(self, x: Any) -> mr.Tensor:
        if not self.is_built:
            self.w = variable("w", np.full((x.shape[-1], self.size), 0.5, np.float32))
            self.is_built = True
        return x @ self.w


class MLP(mr.Module):
    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        with self.name_scope:
            self.layers = [Dense(3, "one"), Dense(1)]
            self.bias = variable("bias", 0.0)

    @mr.function
    def __call__(self, x: Any) -> Any:
        for each in self.layers:
            x = each(x)
        return x + self.bias


def names(variables: Any) -> str:
    return " ".join(each.name.removesuffix(":0") for each in variables)


def test_variables_come_in_the_order_of_names_those_of_modules_last() -> None:
    whole = Whole()
    assert names(whole.variables) == "_p a z i0 i1 b k v q p c d w w w"
    assert names(whole.trainable_variables) == "a z i0 i1 b k v q p c d w w w"
    assert names(whole.non_trainable_variables) == "_p"
    assert names(whole.submodules) == "first second third"
    assert whole.sub.submodules[0] is whole
    assert not isinstance(whole.dense, mr.Module)


def test_no_variable_is_looked_for_before_it_is_there() -> None:
    class Careless(mr.Module):
        def __init__(self) -> None:
            self.v = variable("v")  # Without what Module's own __init__ does.

    careless = Careless()
    assert names(careless.variables) == "v"
    with pytest.raises(AttributeError, match="_name"):
        careless.name  # noqa: B018


@cases("name", ["a b", "1x", "", "a/b", "é", "a.b"])
def test_a_name_is_one_of_python_s(name: str) -> None:
    with pytest.raises(ValueError, match="not a valid module name"):
        mr.Module(name)


@pytest.mark.parametrize(
    ("cls", "name"),
    [("CamelCaseHTTPThing2", "camel_case_http_thing2"), ("Conv2DBlock", "conv2_d_block")],
)
def test_a_name_follows_from_the_class(cls: str, name: str) -> None:
    module = type(cls, (mr.Module,), {})()
    assert (module.name, module.name_scope.name) == (name, f"{name}/")
    with pytest.raises(TypeError):
        mr.Module(3)  # type: ignore[arg-type]


def test_names_of_variables_begin_with_the_scopes_of_modules() -> None:
    mlp = MLP()
    mlp(mr.ones((1, 2)))
    assert names(mlp.variables) == "mlp/bias mlp/one/w mlp/dense/w"
    with mr.Module("outer").name_scope, mr.Module("inner").name_scope as scope:
        assert (scope, variable("v").name) == ("outer/inner/", "outer/inner/v:0")
    assert variable("v").name == "v:0"


def test_a_recorded_method_trains_and_a_copy_is_apart(simulate: Callable[..., Any]) -> None:
    simulate(2)
    strategy, x = mr.MirroredStrategy(), np.ones((4, 2), np.float32)
    with strategy.scope():
        mlp, optimizer = MLP(), mr.optim.SGD(0.5)
        assert mlp(x).numpy().tolist() == [[1.5]] * 4
    other = copy.deepcopy(mlp)
    pickled = pickle.loads(pickle.dumps(mr.Module("kept")))
    assert pickled.name_scope.name == "kept/"

    def step() -> mr.Tensor:
        with mr.GradientTape() as tape:
            loss = mr.reduce_mean(mlp(x)) / strategy.num_replicas_in_sync
        gradients = tape.gradient(loss, mlp.trainable_variables)
        optimizer.apply_gradients(zip(gradients, mlp.trainable_variables, strict=True))
        return loss

    mr.function(lambda: strategy.run(step))()
    # The gradients of the mean: 1 for the bias, 0.5 for the first, 1 for the second.
    assert [np.ravel(each.numpy())[0] for each in mlp.variables] == [-0.5, 0.25, 0.0]
    assert [np.ravel(each.numpy())[0] for each in other.variables] == [0.0, 0.5, 0.5]


def test_a_layer_has_the_variables_of_modules_in_it() -> None:
    class Holder(mr.layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.module = MLP()

        def call(self, inputs: mr.Tensor) -> mr.Tensor:
            return self.module(inputs)

    model = mr.Sequential([mr.layers.Input((2,)), Holder()])
    assert names(model.weights) == "mlp/bias mlp/one/w mlp/dense/w"
    model.compile("sgd", "mse")
    before = model.get_weights()
    model.fit(np.ones((4, 2)), np.zeros((4, 1)), verbose=0)
    changed = [(a != b).all() for a, b in zip(before, model.get_weights(), strict=True)]
    assert changed == [True] * 3


def make(value: float, *names: str) -> mr.Module:
    """Return a module of variables, with a module of one more, that share a third."""
    module, inner = mr.Module("whole"), Leaf()
    for name in names:
        setattr(module, name, mr.Variable(value))
    inner.parent, module._inner, module.shared = module, inner, [1, inner.w, "text"]
    module.options = {1: "no name", "rate": 0.5}
    inner.w.assign(value)
    return module


@pytest.mark.parametrize("kind", ["root", "model"])
def test_a_checkpoint_has_a_module_by_its_attributes(tmp_path: Path, kind: str) -> None:
    def checkpoint(module: mr.Module) -> mr.train.Checkpoint:
        return mr.train.Checkpoint(**{kind: module})

    path = checkpoint(make(7.0, "a", "b")).save(tmp_path / "ckpt")
    module = make(0.0, "a", "b")
    checkpoint(module).restore(path).assert_consumed()
    assert [float(each) for each in module.variables] == [7.0] * 3
    part = make(0.0, "b", "c")
    status = checkpoint(part).restore(path).expect_partial()
    assert [float(each) for each in (part.b, part.c, part._inner.w)] == [7.0, 0.0, 7.0]
    with pytest.raises(AssertionError, match="not bound to checkpointed values"):
        status.assert_existing_objects_matched()
    prefix = "" if kind == "root" else "model/"
    alone = mr.Variable(0.0)
    if kind == "model":
        held = mr.Module()
        held._inner = Leaf()
        held._inner.w = alone
        checkpoint(held).restore(path).expect_partial()
        assert float(alone) == 7.0
    assert set(module_keys(path)) >= {f"{prefix}a", f"{prefix}_inner/w"}


def module_keys(path: str) -> list[str]:
    from safetensors.numpy import load_file

    return list(load_file(path))


def test_a_root_has_its_own_names() -> None:
    module = make(1.0, "a")
    with pytest.raises(ValueError, match=r"keyword argument a if root.a already exists"):
        mr.train.Checkpoint(module, a=mr.Variable(1.0))
    mr.train.Checkpoint(module, a=module.a)
    for root in ([module], 3):
        with pytest.raises(ValueError, match="expecting root to be a trackable object"):
            mr.train.Checkpoint(root)
