"""How layers are built and called: modes, placeholders, failures."""

import inspect
import operator
import re
from collections.abc import Callable
from typing import Any, Self

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import config, ops
from mirrored.layers import Dense, Dropout, Input, Layer, initializers
from mirrored.layers.shapes import Shape
from mirrored.ops import Tensor


class Recorder(Layer):
    """Writes down what mode it is called in."""

    def __init__(self) -> None:
        super().__init__()
        self.modes: list[bool] = []

    def call(self, inputs: Tensor, training: bool = False) -> Tensor:
        self.modes.append(training)
        return inputs


class Parent(Layer):
    """Calls a layer without saying in which mode."""

    def __init__(self, child: Layer) -> None:
        super().__init__()
        self.child = child

    def call(self, inputs: Tensor) -> Tensor:
        return self.child(inputs)


class Explicit(Parent):
    """Calls a layer in a mode of its own."""

    def call(self, inputs: Tensor) -> Tensor:
        return self.child(inputs, training=False)


class Scale(Layer):
    """A layer with one weight, as a user writes it."""

    def build(self, input_shape: Shape) -> None:
        self.factor = self.add_weight(
            shape=(input_shape[-1],), initializer="ones", name="factor", regularizer="l2"
        )

    def call(self, inputs: Tensor) -> Tensor:
        return inputs * self.factor


X = np.ones((2, 3))


@cases(("training", "seen"), [(None, False), (False, False), (True, True), (1, True)])
def test_the_mode_reaches_call(training: Any, seen: bool) -> None:
    recorder = Recorder()
    recorder(X, training=training)
    assert recorder.modes == [seen]


@pytest.mark.parametrize("training", [True, False])
def test_sublayers_follow_the_mode_of_the_layer_that_calls_them(training: bool) -> None:
    recorder = Recorder()
    Parent(Parent(recorder))(X, training=training)
    assert recorder.modes == [training]


def test_an_explicit_mode_wins_and_ends_with_the_call() -> None:
    inner, outer = Recorder(), Recorder()

    class Both(Layer):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = Explicit(inner), outer

        def call(self, inputs: Tensor) -> Tensor:
            return self.second(self.first(inputs))

    Both()(X, training=True)
    outer(X)
    assert (inner.modes, outer.modes) == ([False], [True, False])


def test_the_mode_is_restored_after_an_exception() -> None:
    class Broken(Layer):
        def call(self, inputs: Tensor) -> Tensor:
            raise KeyError("no")

    recorder = Recorder()
    with pytest.raises(KeyError):
        Broken()(X, training=True)
    recorder(X)
    assert recorder.modes == [False]


def test_a_default_of_true_in_the_signature_of_call_holds() -> None:
    class Eager(Recorder):
        def call(self, inputs: Tensor, training: bool = True) -> Tensor:
            return super().call(inputs, training)

    layer = Eager()
    layer(X)
    layer(X, training=False)
    assert layer.modes == [True, False]


def test_calling_on_numbers_builds_once() -> None:
    layer = Scale()
    assert not layer.built
    with pytest.raises(AttributeError, match=r"scale has never been called.*no defined input"):
        _ = layer.input_shape
    with pytest.raises(AttributeError, match=r"scale has never been called.*no defined output"):
        _ = layer.output_shape
    layer(X)
    factor = layer.factor
    layer(np.ones((7, 3)))
    layer.build((None, 3))
    assert layer.factor is factor
    assert (layer.built, len(layer.weights)) == (True, 1)
    assert (layer.input_shape, layer.output_shape) == ((None, 3), (None, 3))


def test_build_may_be_called_first_and_extended_by_a_subclass() -> None:
    class Shifted(Scale):
        def build(self, input_shape: Shape) -> None:
            super().build(input_shape)
            self.shift = self.add_weight(shape=(), initializer="zeros", name="shift")

    layer = Shifted()
    layer.build([None, 3])  # type: ignore[arg-type]
    assert layer.input_shape == (None, 3)
    assert [each.name for each in layer.weights] == ["shifted/factor:0", "shifted/shift:0"]


def test_a_build_that_fails_leaves_nothing_behind() -> None:
    class Fragile(Scale):
        failing = True

        def build(self, input_shape: Shape) -> None:
            super().build(input_shape)
            if self.failing:
                raise MemoryError("full")

    layer = Fragile()
    with pytest.raises(MemoryError, match="full"):
        layer(X)
    assert (layer.built, layer.weights, layer.losses) == (False, [], [])
    assert not hasattr(layer, "factor")
    layer.failing = False
    layer(X)
    assert (len(layer.weights), len(layer.losses)) == (1, 1)


def test_a_layer_out_of_memory_gives_back_what_its_build_took(simulate: Any) -> None:
    simulate(1, memory_limit=3)
    x = ops.zeros((1, 200))
    layer = Dense(1000, bias_initializer=lambda shape, dtype: ops.zeros((1000, 1000)))
    before = config.experimental.get_memory_info("GPU:0")["current"]
    with pytest.raises(MemoryError):
        layer(x)
    assert config.experimental.get_memory_info("GPU:0")["current"] == before
    layer.bias_initializer = initializers.Zeros()
    assert layer(x).shape == (1, 1000)


def test_output_shapes_are_found_by_running_where_none_is_announced() -> None:
    class Sums(Layer):
        def call(self, inputs: Tensor) -> Tensor:
            return ops.reduce_sum(inputs, axis=1)

    assert Sums()(Input((3, 4))).shape == (None, 4)
    assert Sums()(Input((3, 4), batch_size=5)).shape == (5, 4)
    assert Parent(Dense(6))(Input((3,))).shape == (None, 6)
    assert Scale().compute_output_shape((None, 3)) == (None, 3)
    assert Sums()(Input((None, 4))).shape == (None, 4)


class Trains(Recorder):
    """A layer that trains unless it is told not to."""

    def call(self, inputs: Tensor, training: bool = True) -> Tensor:
        return super().call(inputs, training)


class Infers(Parent):
    """A layer that does not train unless it is told to, with another inside."""

    def call(self, inputs: Tensor, training: bool = False) -> Tensor:
        return super().call(inputs)


@cases(
    ("outer", "training", "seen"),
    [
        (lambda layer: layer, None, True),
        (Parent, None, True),
        (lambda layer: Parent(Parent(layer)), False, False),
        (Infers, None, False),
        (Infers, True, True),
        (lambda layer: mr.Sequential([layer]), None, True),
        (lambda layer: mr.Sequential([layer]), False, False),
    ],
)
def test_a_default_mode_holds_where_no_outer_layer_says_one(
    outer: Callable[[Layer], Layer], training: bool | None, seen: bool
) -> None:
    """As in Keras 3.15; layers that have no `training` pass on what they were called in."""
    inner = Trains()
    layer = outer(inner)
    layer.build((None, 3))
    inner.modes.clear()
    layer(X, training=training)
    assert inner.modes == [seen]


@pytest.mark.behaviour("layer-arguments")
@cases("value", [True, False, 3.0, "yes"])
def test_what_is_no_input_is_not_passed_by_position(value: Any) -> None:
    """In Keras 3.15's words: a factor, say, would be taken for the mode."""
    recorder = Recorder()
    with pytest.raises(ValueError, match="Only input tensors may be passed as positional argument"):
        recorder(X, value)
    with pytest.raises(ValueError, match=r"expects 1 input\(s\), but it received 2 input tensors"):
        recorder(X, X)
    for options in ({"scale": 2.0}, {"mask": X}, {"trainig": True}):
        (name,) = options
        with pytest.raises(TypeError, match=f"got an unexpected keyword argument '{name}'"):
            recorder(X, **options)
    assert recorder.modes == []
    recorder(X, None, mask=None)  # type: ignore[call-overload]
    assert recorder.modes == [False]


def test_placeholders_do_not_train() -> None:
    recorder = Recorder()
    recorder(Input((3,)))
    assert set(recorder.modes) == {False}


def test_a_parent_builds_its_sublayers() -> None:
    parent = Parent(Dense(4))
    assert parent.weights == []
    parent(X)
    assert [each.shape for each in parent.weights] == [(3, 4), (4,)]


def test_a_missing_call_is_named() -> None:
    class Empty(Layer):
        pass

    with pytest.raises(NotImplementedError, match="Layer Empty does not have a `call` method"):
        Empty()(X)


def test_a_call_that_returns_nothing_is_named() -> None:
    class Forgetful(Layer):
        def call(self, inputs: Tensor) -> Tensor:
            return None  # type: ignore[return-value]

    with pytest.raises(ValueError, match='The `call` method of layer "forgetful" returned None'):
        Forgetful()(X)


def test_new_of_a_subclass_may_leave_out_that_of_layers() -> None:
    class Doubled(Layer):
        def __new__(cls) -> Self:
            return object.__new__(cls)

        def call(self, inputs: Tensor) -> Tensor:
            return inputs * 2.0

    layer = Doubled()
    assert layer.name.startswith("doubled")
    assert layer([3.0]).numpy().tolist() == [6.0]


def test_a_forgotten_super_is_named() -> None:
    class Hasty(Layer):
        def __init__(self) -> None:
            self.dense = Dense(1)

        def call(self, inputs: Tensor) -> Tensor:
            return self.dense(inputs)

    with pytest.raises(
        RuntimeError, match=re.escape("In layer 'Hasty', you forgot to call `super")
    ):
        Hasty()(X)


def test_errors_inside_say_in_which_layers_they_were_raised() -> None:
    class Wrong(Layer):
        def call(self, inputs: Tensor) -> Tensor:
            return ops.matmul(inputs, inputs)

    with pytest.raises(ValueError, match="Matrix size-incompatible") as caught:
        Parent(Wrong(name="inner"))(X)
    assert caught.value.__notes__ == [
        "Raised in layer <Wrong name=inner, built=True>, called on shape (2, 3).",
        "Raised in layer <Parent name=parent, built=True>, called on shape (2, 3).",
    ]


def test_reprs_are_kerass() -> None:
    layer = Dropout(0.5)
    assert repr(layer) == "<Dropout name=dropout, built=False>"


@cases("dtype", ["foo", "complex64", object])
def test_dtypes_that_tensors_cannot_have_are_refused(dtype: Any) -> None:
    with pytest.raises(TypeError, match="Received"):
        Dense(1, dtype=dtype)


def _uses(base: type[Layer]) -> dict[str, Any]:
    """Return the properties of a class but for those that its class alone answers, and methods."""
    kinds = {name: inspect.getattr_static(base, name) for name in dir(base) if name[0] != "_"}
    names = {name for name, kind in kinds.items() if isinstance(kind, property)}
    names -= {"has_call", "supports_masking"}
    methods: dict[str, Any] = {
        "call": lambda layer: layer(X),
        "build": lambda layer: layer.build((None, 2)),
        "add_weight": lambda layer: layer.add_weight(shape=(1,)),
        "set_weights": lambda layer: layer.set_weights([]),
        "set trainable": lambda layer: setattr(layer, "trainable", False),
        **{
            name: operator.methodcaller(name)
            for name in ("__repr__", "count_params", "get_weights", "get_config")
        },
    }
    if base is not Layer:
        methods |= {
            "compile": lambda model: model.compile("sgd", "mse"),
            "fit": lambda model: model.fit(X, X),
            "predict": lambda model: model.predict(X),
            "get_layer": lambda model: model.get_layer(index=0),
            **{
                name: operator.methodcaller(name)
                for name in ("summary", "reset_metrics", "get_compile_config", "to_json")
            },
        }
    return {**{name: operator.attrgetter(name) for name in names}, **methods}


@cases("base", [Layer, mr.Model, mr.Sequential])
def test_every_use_says_that_init_was_forgotten(base: type[Layer]) -> None:
    """An error of both kinds: `call` raises RuntimeError in Keras, attributes AttributeError."""

    class Forgetful(base):  # type: ignore[misc,valid-type]
        def __init__(self) -> None:
            self.units = 3
            self.inner = Dense(1)

        def call(self, inputs: Any) -> Any:
            return inputs

    text = r"In layer 'Forgetful', you forgot to call `super\(\).__init__\(\)` .* Go add it!"
    for name, use in _uses(base).items():
        with pytest.raises(RuntimeError, match=text) as caught:
            use(Forgetful())
        assert isinstance(caught.value, AttributeError), name
    assert Forgetful().units == 3


def test_an_absent_attribute_is_named() -> None:
    with pytest.raises(AttributeError, match="'Scale' object has no attribute 'colour'"):
        _ = Scale().colour


@cases(("given", "kept"), [(None, None), ([28, None], (28, None)), ((), ())])
def test_the_shape_of_an_example_is_kept(given: Any, kept: Shape | None) -> None:
    layer = Dense(2, input_shape=given)
    assert layer.example_shape == kept
    assert not layer.built


@cases("shape", [3, "3", (-1,), (2.5,)])
def test_an_example_s_shape_that_is_none(shape: Any) -> None:
    with pytest.raises(ValueError, match="Cannot convert"):
        Dense(2, input_shape=shape)


def test_arguments_that_keras_still_takes() -> None:
    model = mr.Sequential([Dense(1, input_dim=3), Dense(1)])
    assert model.input_shape == (None, 3)
    with pytest.warns(UserWarning, match="Argument `input_length` is deprecated. Just remove it."):
        mr.layers.Embedding(3, 2, input_length=4)  # type: ignore[call-arg]
    with pytest.warns(UserWarning, match="Argument `alpha` is deprecated. Use `negative_slope`"):
        layer = mr.layers.LeakyReLU(alpha=0.25)  # type: ignore[call-arg]
    assert layer.get_config()["negative_slope"] == 0.25


def test_an_activation_can_be_set() -> None:
    layer = Dense(1, kernel_initializer="ones")
    assert layer(np.ones((1, 2))).numpy().tolist() == [[2.0]]
    layer.activation = lambda x: -x
    assert layer(np.ones((1, 2))).numpy().tolist() == [[-2.0]]


class _Whole(Layer):
    def compute_output_spec(self, x: Any, factor: float = 1.0) -> Any:
        return mr.keras.KerasTensor(x.shape, "int32"), mr.keras.KerasTensor((x.shape[0], 7))

    def call(self, x: Any, factor: float = 1.0) -> Any:
        if x.shape[0] != 4:  # It runs where there are values alone.
            raise RuntimeError
        return ops.cast(x * factor, "int32"), ops.ones((x.shape[0], 7))


def test_a_subclass_says_its_outputs() -> None:
    inputs = Input((2,))
    first, second = _Whole()(inputs, factor=3.0)
    assert (first.shape, first.dtype.name, second.shape) == ((None, 2), "int32", (None, 7))
    model = mr.Model(inputs, [first, second])
    assert model(np.ones((4, 2)))[0].numpy().tolist() == [[3, 3]] * 4
    assert Dense(3).compute_output_spec(mr.keras.KerasTensor((4, 2))).shape == (4, 3)
    wrong = type(
        "Wrong", (Layer,), {"compute_output_spec": lambda self, x: 3, "call": ops.identity}
    )

    with pytest.raises(TypeError, match="`compute_output_spec` must return"):
        wrong()(inputs)


@pytest.mark.slow  # It needs pandas.
def test_columns_of_a_frame_are_inputs() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    begin = {name: Input((1,), name=name) for name in "ab"}
    model = mr.Model(begin, mr.layers.Concatenate()([begin["a"], begin["b"]]))
    assert model(dict(frame)).numpy().tolist() == [[1.0, 3.0], [2.0, 4.0]]
