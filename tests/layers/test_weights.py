"""Which weights a layer has, in which order, and how they are read and set."""

import copy
import gc
import pickle
import re
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import ops
from mirrored.distribute import MirroredStrategy
from mirrored.layers import Dense, Layer
from mirrored.layers.layer import sublayers
from mirrored.layers.weights import find
from mirrored.ops import Tensor
from mirrored.variables import Variable

X = np.ones((2, 2))


class Chain(Layer):
    """Calls its layers in turn."""

    def __init__(self, *chain: Layer, name: str | None = None) -> None:
        super().__init__(name=name)
        self.chain = list(chain)

    def call(self, inputs: Tensor) -> Tensor:
        for layer in self.chain:
            inputs = layer(inputs)
        return inputs


def names(variables: list[Variable]) -> list[str]:
    return [each.name.removesuffix(":0") for each in variables]


def built(*chain: Layer) -> Chain:
    layer = Chain(*chain)
    layer(X)
    return layer


def test_attributes_lists_tuples_and_dicts_are_tracked_in_order() -> None:
    class Mixed(Layer):
        def __init__(self) -> None:
            super().__init__()
            self.last = {"a": Dense(1, name="a")}
            self.blocks: list[Layer] = []
            self.pair = (Dense(2, name="p"), [Dense(2, name="q")])
            self.blocks.append(Dense(2, name="b"))
            self.scale = Variable([1.0, 1.0], name="scale")
            self.count = Variable([0.0], name="count", trainable=False)
            self.numbers = [1, 2.0, "x", None]

        def call(self, inputs: Tensor) -> Tensor:
            inputs = self.pair[1][0](self.pair[0](self.blocks[0](inputs * self.scale)))
            return self.last["a"](inputs)

    layer = Mixed()
    layer(X)
    assert names(layer.weights) == [
        *("scale", "count"),
        *("a/kernel", "a/bias", "p/kernel", "p/bias", "q/kernel", "q/bias", "b/kernel", "b/bias"),
    ]
    assert names(layer.non_trainable_weights) == ["count"]
    assert layer.non_trainable_variables == layer.non_trainable_weights
    assert names(layer.trainable_weights) == [
        each for each in names(layer.weights) if each != "count"
    ]
    assert names(layer.variables) == names(layer.weights)
    assert names(layer.trainable_variables) == names(layer.trainable_weights)


def _not_yet_there(owner: Any, part: Callable[[str], Any]) -> None:
    owner.a = owner.b = None
    owner.b = part("1")
    owner.a = part("2")


def _assigned_again(owner: Any, part: Callable[[str], Any]) -> None:
    owner.a, owner.b = part("0"), part("1")
    owner.a = part("2")


def _deleted(owner: Any, part: Callable[[str], Any]) -> None:
    owner.a, owner.b = part("0"), part("1")
    del owner.a
    owner.a = part("2")


def _moved(owner: Any, part: Callable[[str], Any]) -> None:
    owner.a, owner.b = part("1"), part("2")
    moved, owner.a = owner.a, None
    owner.c = moved


def _swapped(owner: Any, part: Callable[[str], Any]) -> None:
    owner.a, owner.b = part("1"), part("2")
    owner.a, owner.b = owner.b, owner.a


def _in_containers(owner: Any, part: Callable[[str], Any]) -> None:
    owner.some, owner.named, owner.last = [], {}, part("1")
    owner.some.append(part("2"))
    owner.named["x"] = part("3")
    owner.some.insert(0, part("4"))
    owner.named |= {"y": part("5")}
    owner.some += [part("6")]
    owner.named.update(z=part("7"))
    owner.some.extend((part("8"),))
    owner.some[0:0] = [part("9")]


def _taken_out(owner: Any, part: Callable[[str], Any]) -> None:
    owner.some = [part("2"), part("1")]
    owner.some.append(owner.some.pop(0))
    owner.named = {"x": part("4"), "y": part("3")}
    owner.named["z"] = owner.named.pop("x")


ORDERS = [_not_yet_there, _assigned_again, _deleted, _moved, _swapped, _in_containers, _taken_out]


@pytest.mark.behaviour("weights-order")
@cases("assign", ORDERS)
def test_parts_come_in_the_order_of_their_assignments_as_in_keras(
    assign: Callable[..., None],
) -> None:
    """Of attributes that are assigned again too, and in copies; not in that of their names."""
    of_layers, of_variables = Layer(), Layer()
    assign(of_layers, lambda name: Dense(1, name=name))
    assign(of_variables, lambda name: Variable(1.0, name=name))
    metric, model = mr.metrics.Metric(), mr.Model()
    assign(metric, lambda name: mr.metrics.Mean(name=name))
    assign(model, lambda name: mr.metrics.Mean(name=name))
    layers = [each.name for each in sublayers(of_layers)]
    assert layers == sorted(layers)
    assert len(layers) > 1
    assert names(of_variables.weights) == layers
    assert [each.name.partition("/")[0] for each in metric.variables[::2]] == layers
    assert [each.name for each in model.metrics] == layers
    assert names(copy.deepcopy(of_variables).weights) == layers
    assert names(pickle.loads(pickle.dumps(of_variables)).weights) == layers


def test_own_variables_of_a_layer_and_a_metric_come_in_order() -> None:
    layer, metric = Layer(), mr.metrics.Metric()
    for owner in (layer, metric):
        owner.inner = mr.metrics.Mean() if owner is metric else Dense(1)
        owner.a = None
        owner.b = Variable(1.0, name="1")
        owner.add_weight(shape=(), initializer="zeros", name="2")
        owner.a = Variable(1.0, name="3")
    assert [each.name[-3] for each in layer.weights] == ["1", "2", "3"]
    assert [each.name[-3] for each in metric.variables[:3]] == ["1", "2", "3"]
    assert len(metric.variables) == 5


def test_a_replaced_layer_is_kept_by_nothing() -> None:
    layer = Layer()
    layer.a, layer.some = Dense(1), [Dense(2)]
    gone = [weakref.ref(layer.a), weakref.ref(layer.some[0])]
    layer.a = layer.some[0] = None
    gc.collect()
    assert [each() for each in gone] == [None, None]


@pytest.mark.behaviour("stream-states")
def test_states_of_random_streams_are_among_variables_as_in_keras() -> None:
    class Drawing(Layer):
        def __init__(self) -> None:
            super().__init__()
            self.dropped = mr.layers.Dropout(0.5, seed=3)
            self.seeds = [mr.keras.random.SeedGenerator(2), mr.keras.random.SeedGenerator(1)]
            self.frozen = Variable([1.0], name="frozen", trainable=False)
            self.scale = Variable([1.0], name="scale")
            self.kept = mr.layers.Dropout(0.0)

        def call(self, inputs: Tensor, training: bool = False) -> Tensor:
            self.seeds[0].next()
            return self.dropped(inputs)

    layer = Drawing()
    layer(X, training=True)
    assert names(layer.weights) == ["scale", "frozen"]
    assert names(layer.trainable_variables) == ["scale"]
    assert [each.numpy().tolist() for each in layer.variables[2:]] == [[2, 1], [1, 0], [3, 1]]
    assert layer.non_trainable_variables[1:] == layer.variables[2:]
    assert len(layer.non_trainable_weights) == 1
    assert layer.dropped.variables == layer.variables[-1:]
    assert not layer.kept.variables


@pytest.mark.behaviour("stream-states")
def test_the_state_of_a_layer_s_stream_is_read_and_assigned() -> None:
    layer = mr.layers.Dropout(0.5, seed=7)
    (state,) = layer.variables
    first = layer(X, training=True).numpy()
    second = layer(X, training=True).numpy()
    state.assign_sub([0, 1])
    np.testing.assert_array_equal(layer(X, training=True), second)
    state.assign([7, 0])
    np.testing.assert_array_equal(layer(X, training=True), first)
    assert (state.name, state.dtype, state.shape, state.trainable) == (
        f"{layer.name}/seed_generator_state:0",
        np.int64,
        (2,),
        False,
    )
    with pytest.raises(ValueError, match="Shape mismatch"):
        state.assign([1])
    with pytest.raises(RuntimeError, match="a function was being recorded"):
        mr.function(lambda: state + 1)()
    assert state.numpy().tolist() == [7, 1]


def test_own_trainable_weights_come_before_others_as_in_keras() -> None:
    class Norm(Layer):
        def build(self, input_shape: Any) -> None:
            self.mean = self.add_weight(shape=(2,), name="mean", trainable=False)
            self.gamma = self.add_weight(shape=(2,), name="gamma")

    layer = Norm(name="norm")
    layer.build((None, 2))
    assert names(layer.weights) == ["norm/gamma", "norm/mean"]


def test_shared_layers_and_variables_count_once() -> None:
    shared = Dense(2, name="shared")
    layer = built(shared, Dense(2, name="other"), shared)
    layer.again = shared  # type: ignore[attr-defined]
    layer.kernel = shared.kernel  # type: ignore[attr-defined]
    assert sorted(names(layer.weights)) == [
        "other/bias",
        "other/kernel",
        "shared/bias",
        "shared/kernel",
    ]
    assert layer.count_params() == 12


def test_layers_that_hold_each_other_end() -> None:
    parent, child = Chain(name="parent"), Chain(name="child")
    parent.child, child.parent = child, parent  # type: ignore[attr-defined]
    child.scale = Variable(1.0, name="scale")  # type: ignore[attr-defined]
    assert names(parent.weights) == names(child.weights) == ["scale"]


def test_freezing_a_parent_freezes_what_is_inside() -> None:
    inner = Dense(2, kernel_regularizer="l2")
    layer = built(Chain(inner), Dense(2, name="head"))
    layer.chain[0].trainable = False
    assert not inner.trainable
    assert names(layer.trainable_weights) == ["head/kernel", "head/bias"]
    assert names(layer.non_trainable_weights) == names(inner.weights)
    assert len(layer.weights) == 4
    assert layer.losses == []
    layer.trainable = True
    assert len(layer.trainable_weights) == 4
    assert len(layer.losses) == 1


def test_losses_come_from_all_sublayers() -> None:
    first = Dense(2, kernel_initializer="ones", kernel_regularizer="l2", bias_regularizer="l1")
    second = Dense(3, kernel_initializer="ones", kernel_regularizer=lambda w: ops.reduce_sum(w))
    layer = built(first, second)
    assert [float(each.numpy()) for each in layer.losses] == pytest.approx([0.04, 0.0, 6.0])
    assert [
        weight is own
        for (weight, _), own in zip(
            layer.regularized_weights, [first.kernel, first.bias, second.kernel], strict=True
        )
    ] == [True] * 3


def test_a_weight_that_does_not_train_has_no_penalty() -> None:
    layer = Layer()
    layer.add_weight(shape=(2,), trainable=False, regularizer="l2")
    trained = layer.add_weight(shape=(2,), regularizer="l2")
    assert len(layer.losses) == 1
    assert layer.regularized_weights[0][0] is trained


def test_added_weights_have_the_layers_dtype_or_their_own() -> None:
    layer = Layer(name="it", dtype="float64")
    own = layer.add_weight(shape=[2], initializer="ones", name="own")
    other = layer.add_weight(shape=(), initializer="zeros", dtype="int32", trainable=False)
    assert (own.dtype, other.dtype) == (ops.float64, ops.int32)
    assert (own.shape, other.shape) == ((2,), ())
    assert names(layer.weights) == ["it/own", "it/variable_1"]


def test_arguments_stand_as_in_keras() -> None:
    """Keras 3.15 takes shape, initializer and dtype by position; the default goes by the dtype."""
    layer = Layer()
    weights = [
        layer.add_weight((300, 200)),
        layer.add_weight((300, 200), None, "float64", name="named"),
        layer.add_weight([2], "ones"),
        layer.add_weight((2,), dtype="int32", trainable=False),
        layer.add_weight((2,), None, "bool", trainable=False),
        layer.add_weight(),
        layer.add_weight(None, "zeros"),
    ]
    assert layer.weights[:3] == weights[:3]
    assert [weight.shape for weight in weights] == [(300, 200)] * 2 + [(2,)] * 3 + [()] * 2
    kinds = ["float32", "float64", "float32", "int32", "bool", "float32", "float32"]
    assert [weight.dtype.name for weight in weights] == kinds
    for weight in weights[:2]:  # Glorot's limit, sqrt(6 / (300 + 200)).
        assert 0.1094 < np.abs(weight.numpy()).max() <= 0.10954451150103323
    assert [weight.numpy().tolist() for weight in weights[2:5]] == [[1, 1], [0, 0], [False] * 2]
    with pytest.raises(TypeError, match="positional arguments"):
        layer.add_weight((2,), "ones", "float32", "name")  # type: ignore[misc]
    with pytest.raises(ValueError, match="`name` must be passed as a keyword argument"):
        layer.add_weight("name", (2,))


@cases(
    ("kwargs", "text"),
    [
        (
            {"shape": (None, 2)},
            "(no `None` dimensions). Received: shape=(None, 2) for variable path='it/w'",
        ),
        ({"shape": (-1,)}, "Negative dimensions are not allowed"),
        ({"shape": (2,), "initializer": "foo"}, "initializer identifier: foo"),
        ({"shape": (2,), "regularizer": "foo"}, "regularizer identifier: foo"),
        (
            {"shape": (2,), "initializer": lambda shape, dtype: np.ones(3)},
            "The initializer of it/w must return the shape (2,). Received: a value of shape (3,)",
        ),
    ],
)
def test_bad_weights_are_refused(kwargs: dict[str, Any], text: str) -> None:
    layer = Layer(name="it")
    with pytest.raises(ValueError, match=re.escape(text)):
        layer.add_weight(name="w", **kwargs)
    assert layer.weights == []


def test_weights_survive_a_round_trip() -> None:
    source, target = built(Dense(3), Dense(2)), built(Dense(3), Dense(2))
    before = source.get_weights()
    assert not np.array_equal(before[0], target.get_weights()[0])
    target.set_weights(before)
    for mine, theirs in zip(target.get_weights(), before, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    before[0][:] = 7
    assert not np.array_equal(source.get_weights()[0], before[0])


def test_values_are_converted_to_the_weights_dtype() -> None:
    layer = built(Dense(1))
    layer.set_weights([[[1], [2]], np.array([3.0], dtype=np.float64)])
    assert [each.dtype for each in layer.get_weights()] == [np.float32, np.float32]
    assert layer(X).numpy().tolist() == [[6.0], [6.0]]


@cases(
    ("weights", "error", "text"),
    [
        (
            [np.ones((2, 3))],
            ValueError,
            "You called `set_weights(weights)` on layer 'head' with a weight list of length 1, "
            "but the layer was expecting 2 weights.",
        ),
        ([np.ones((2, 3))] * 3, ValueError, "with a weight list of length 3"),
        (
            [np.ones((2, 3)), np.ones(4)],
            ValueError,
            "Layer head weight shape (3,) is not compatible with provided weight shape (4,). The "
            "weight is head/bias:0.",
        ),
        ([np.ones((2, 3)), np.array(["a"] * 3)], TypeError, "Layer head weight head/bias:0 takes"),
        ([np.ones((2, 3)), np.array([None] * 3)], TypeError, "Received: a value of dtype object"),
        ([np.ones((2, 3)), np.ones(3, complex)], TypeError, "of dtype complex128"),
    ],
)
def test_all_values_are_checked_before_any_is_set(
    weights: list[Any], error: type[Exception], text: str
) -> None:
    layer = Dense(3, name="head")
    layer.build((None, 2))
    before = layer.get_weights()
    with pytest.raises(error, match=re.escape(text)):
        layer.set_weights(weights)
    for now, then in zip(layer.get_weights(), before, strict=True):
        np.testing.assert_array_equal(now, then)


def test_an_unbuilt_layer_has_no_weights_to_count() -> None:
    layer = Dense(3)
    assert (layer.weights, layer.get_weights()) == ([], [])
    with pytest.raises(ValueError, match="`count_params` on layer 'dense', but the layer isn't"):
        layer.count_params()


def test_a_strategys_scope_mirrors_the_weights(simulate: Any) -> None:
    simulate(3)
    strategy = MirroredStrategy()
    with strategy.scope():
        layer = built(Dense(3, name="a", kernel_regularizer="l2"), Dense(1, name="b"))
    assert names(layer.weights) == ["a/kernel", "a/bias", "b/kernel", "b/bias"]
    assert layer.count_params() == 13
    for weight, value in zip(layer.weights, layer.get_weights(), strict=True):
        assert strategy.owns(weight)
        for each in strategy.experimental_local_results(weight):
            np.testing.assert_array_equal(each.numpy(), value)
    layer.set_weights([np.full(each.shape, 2.0) for each in layer.weights])
    for weight in layer.weights:
        for each in strategy.experimental_local_results(weight):
            np.testing.assert_array_equal(each.numpy(), np.full(weight.shape, 2.0))
    outputs = strategy.run(layer, args=(X,))
    assert [each.device[-5:] for each in outputs.values] == ["GPU:0", "GPU:1", "GPU:2"]
    assert [each.numpy().tolist() for each in outputs.values] == [[[38.0]] * 2] * 3
    assert [float(each.numpy()) for each in layer.losses] == pytest.approx([0.24])


class Part:
    """What the tests look for."""


def test_containers_are_searched_in_order_at_any_depth() -> None:
    a, b, c, d = (Part() for _ in range(4))
    assert find([a, 1, [b, ("x", {"k": c})], None, {"l": [d]}], Part) == [a, b, c, d]


def test_each_object_is_found_once_by_identity() -> None:
    a, b = Part(), Part()
    assert find([a, [b, a], {"again": b}], Part) == [a, b]


def test_a_container_that_holds_itself_ends() -> None:
    part = Part()
    loop: list[object] = [part]
    loop.append(loop)
    assert find([loop], Part) == [part]


def test_other_containers_and_strings_are_not_searched() -> None:
    assert find([deque([Part()]), "Part", iter([Part()]), {1, "a"}], Part) == []


@pytest.mark.behaviour("layers-in-sets")
@pytest.mark.parametrize("kind", [set, frozenset])
def test_sets_are_refused(kind: Callable[[list[Part]], Any]) -> None:
    """Keras looks into them, in an order that differs from process to process."""
    with pytest.raises(ValueError, match=r"that holds <.*Part object.* Use a list or a dict"):
        find([[kind([Part()])]], Part)


def test_a_weight_in_keras_spelling() -> None:
    layer = Layer(name="a")
    weight = layer.add_weight((), "ones", aggregation="mean", synchronization="on_read")
    assert (weight.aggregation.name, weight.synchronization.name) == ("MEAN", "ON_READ")
    assert layer.add_weight((), aggregation=None).aggregation.name == "NONE"
    assert layer.add_weight((), name="w", autocast=False).path == "a/w"
    for name in ("aggregation", "synchronization"):
        with pytest.raises(ValueError, match=f"for argument `{name}`.* Received: {name}='bad'"):
            layer.add_weight((), **{name: "bad"})
    with pytest.raises(ValueError, match="no training in float8"):
        layer.add_weight((), overwrite_with_gradient=True)
    assert len(layer.weights) == 3


def test_a_regularizer_that_is_set_is_a_loss() -> None:
    layer = Dense(1, kernel_initializer="ones")
    layer.build((None, 2))
    layer.kernel.regularizer = lambda weight: ops.reduce_sum(weight) * 3.0
    assert [float(each) for each in layer.losses] == [6.0]
    layer.kernel.regularizer = None
    assert layer.losses == []


COMPUTED: dict[str, tuple[Callable[[type[Any]], Any], type[Any], tuple[int, ...]]] = {
    "kernel of Dense": (lambda cls: cls(2), mr.layers.Dense, (3, 4)),
    "kernel of EinsumDense": (lambda cls: cls("ab,bc->ac", 2), mr.layers.EinsumDense, (3, 4)),
    "kernel of Conv2D": (lambda cls: cls(2, 3), mr.layers.Conv2D, (3, 4, 4, 1)),
    "kernel of Conv1DTranspose": (lambda cls: cls(2, 3), mr.layers.Conv1DTranspose, (3, 4, 1)),
    "kernel of DepthwiseConv1D": (lambda cls: cls(3), mr.layers.DepthwiseConv1D, (3, 4, 1)),
    "pointwise_kernel of SeparableConv1D": (
        lambda cls: cls(2, 3),
        mr.layers.SeparableConv1D,
        (3, 4, 1),
    ),
    "embeddings of Embedding": (lambda cls: cls(2, 3), mr.layers.Embedding, (3, 4)),
}


@cases("case", COMPUTED)
def test_a_subclass_computes_a_weight_by_a_property(case: str) -> None:
    make, base, shape = COMPUTED[case]
    name = case.split()[0]
    doubling = property(lambda layer: 2.0 * getattr(super(Doubled, layer), name))
    Doubled = type("Doubled", (base,), {name: doubling})
    doubled, plain = make(Doubled), make(base)
    x = np.ones(shape, np.float32)
    for layer in (doubled, plain):
        layer(x)
    plain.set_weights(doubled.get_weights())
    assert np.array_equal(doubled(x), 2.0 * plain(x))
    assert [weight.shape for weight in doubled.weights] == [w.shape for w in plain.weights]
