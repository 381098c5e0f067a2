"""Nothing that a subclass overrides goes uncalled: it is called as in Keras, or refused by name."""

import copy
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import _overrides

BASES: dict[str, tuple[type[Any], _overrides.Rules]] = {
    "Layer": (mr.layers.Layer, _overrides.LAYER),
    "Dense": (mr.layers.Dense, _overrides.LAYER),
    "Model": (mr.Model, _overrides.MODEL),
    "Sequential": (mr.Sequential, _overrides.MODEL),
    "Optimizer": (mr.optim.Optimizer, _overrides.OPTIMIZER),
    "SGD": (mr.optim.SGD, _overrides.OPTIMIZER),
    "Loss": (mr.losses.Loss, _overrides.Rules()),
    "MeanSquaredError": (mr.losses.MeanSquaredError, _overrides.Rules()),
    "Dataset": (mr.data.Dataset, _overrides.DATASET),
    "MirroredStrategy": (mr.MirroredStrategy, _overrides.STRATEGY),
    "StrategyExtended": (mr.distribute.StrategyExtended, _overrides.STRATEGY_EXTENDED),
    "CrossDeviceOps": (mr.distribute.CrossDeviceOps, _overrides.CROSS_DEVICE_OPS),
    "ReductionToOneDevice": (mr.distribute.ReductionToOneDevice, _overrides.ALL_REDUCES),
    "NcclAllReduce": (mr.distribute.NcclAllReduce, _overrides.ALL_REDUCES),
}

# What TensorFlow's Keras 3.15 calls by these names, and we call or have no use for. All other
# public methods of its base classes stand in a table of `_overrides`.
CALLED = {
    "Layer": "build call compute_mask compute_output_shape add_weight count_params get_weights "
    "set_weights __call__ compute_output_spec save_own_variables load_own_variables",
    "Optimizer": "build finalize_variable_values update_step save_own_variables load_own_variables",
    "Loss": "call __call__",
    "Metric": "__call__ update_state result reset_state",
    "Model": "train_step test_step predict_step compute_loss compute_metrics get_metrics_result "
    "reset_metrics",
}
# There is no conversion to configurations, no quantization, no export, and no code of JAX that
# would call these, in Keras' place or ours: users alone do.
CALLED_BY_USERS = {
    "Layer": "from_config get_config get_build_config build_from_config stateless_call quantize "
    "quantized_build quantized_call rematerialized_call add_loss add_metric add_variable",
    "Model": "compile compile_from_config get_compile_config fit predict train_on_batch "
    "test_on_batch predict_on_batch stateless_compute_loss get_layer summary save save_weights "
    "load_weights export to_json get_state_tree set_state_tree get_quantization_layer_structure",
    "Optimizer": "from_config get_config stateless_apply set_weights exclude_from_weight_decay "
    "add_variable add_variable_from_reference add_optimizer_variables",
    "Loss": "from_config get_config",
    "Metric": "from_config get_config stateless_reset_state stateless_result add_variable "
    "stateless_update_state add_weight",
}
# The public methods of Keras 3.15's base classes, and the properties that it reads in training.
KERAS = {
    "Layer": "__call__ add_loss add_metric add_variable add_weight build build_from_config call "
    "compute_mask compute_output_shape compute_output_spec count_params from_config "
    "get_build_config get_config get_weights load_own_variables losses metrics "
    "non_trainable_variables non_trainable_weights quantize quantized_build quantized_call "
    "rematerialized_call save_own_variables set_weights stateless_call symbolic_call trainable "
    "trainable_variables trainable_weights variables weights",
    "Model": "compile compile_from_config compute_loss compute_metrics evaluate export fit "
    "get_compile_config get_layer get_metrics_result get_quantization_layer_structure "
    "get_state_tree load_weights make_predict_function make_test_function make_train_function "
    "predict predict_on_batch predict_step reset_metrics save save_weights set_state_tree "
    "stateless_compute_loss summary test_on_batch test_step to_json train_on_batch train_step",
    "Optimizer": "add_optimizer_variables add_variable add_variable_from_reference apply "
    "apply_gradients assign assign_add assign_sub build exclude_from_weight_decay "
    "finalize_variable_values from_config get_config load_own_variables save_own_variables "
    "scale_loss set_weights stateless_apply update_step",
    "Loss": "__call__ call from_config get_config",
    "Metric": "__call__ add_variable add_weight from_config get_config reset_state result "
    "stateless_reset_state stateless_result stateless_update_state update_state",
}


@cases("kind", KERAS)
def test_every_method_of_keras_is_called_or_refused(kind: str) -> None:
    table = BASES[kind][1].never_called if kind in BASES else {}
    rest = {*CALLED.get(kind, "").split(), *CALLED_BY_USERS[kind].split()}
    assert rest.isdisjoint(table)
    assert set(KERAS[kind].split()) <= rest | set(table)


@pytest.mark.behaviour("overrides")
@cases("kind", BASES)
def test_overrides_that_nothing_calls_are_refused(kind: str) -> None:
    base, (table, *_) = BASES[kind]
    for name in table:
        mixin = type("Mixin", (), {name: lambda self, *args: None})
        for bases, namespace, owner in [
            ((base,), {name: len}, "Mine"),
            ((mixin, base), {}, "Mixin"),
        ]:
            with pytest.raises(TypeError) as caught:
                type("Mine", bases, namespace)
            text = str(caught.value)
            assert text.startswith(f"`{name}` of Mine: mirrored does not use it as ")
            assert f"Received: its definition in class {owner}. {table[name]}" in text
        # Keras would not call that of a class that comes later either.
        assert type("Mine", (base, mixin), {}).mro()[-2] is mixin


@pytest.mark.parametrize(
    "base", [mr.distribute.ReductionToOneDevice, mr.distribute.HierarchicalCopyAllReduce]
)
def test_a_reduce_of_ones_own_goes_with_an_all_reduce_of_ones_own(base: Any) -> None:
    both = ("reduce_implementation", "batch_all_reduce_implementation")
    ops = type("Mine", (base,), {name: lambda self, op, value, *rest: "mine" for name in both})()
    assert ops.reduce("sum", [mr.constant(1.0)], "CPU:0") == "mine"


@pytest.mark.behaviour("overrides")
@cases(
    ("base", "name"),
    [
        (mr.layers.Layer, "_call_results"),
        (mr.Sequential, "_announced_results"),
        (mr.optim.SGD, "_weight_decay_for"),
        (mr.metrics.Mean, "set_totals"),
        (mr.distribute.CrossDeviceOps, "_check"),
        (mr.layers.Layer, "as_outputs"),
        (mr.Model, "build_for"),
        (mr.losses.Loss, "shard"),
        (mr.metrics.Mean, "accumulate"),
        (mr.optim.SGD, "slots"),
    ],
)
@cases("value", [lambda self: None, property(lambda self: []), True, None])
def test_a_name_that_is_taken_is_refused(base: type[Any], name: str, value: Any) -> None:
    """A helper of the user's would be called in place of the base's own."""
    mixin = type("Mixin", (), {name: value})
    for bases, namespace in (((base,), {name: value}), ((mixin, base), {})):
        with pytest.raises(TypeError, match=f"`{name}` of Mine: .* Choose another name"):
            type("Mine", bases, namespace)
    assert type("Mine", (base,), {"_helper": lambda self: None, "_training": True})


# The private names that subclasses cannot have: those of methods that some of our layers define,
# and that no user would choose.
OF_LAYERS = "_announced_dtype _announced_results _call_results"
OF_OPTIMIZERS = "_get_variable_index _slot_groups _weight_decay_for"
PRIVATE: dict[str, tuple[Any, str]] = {
    "Layer": (mr.layers.Layer, OF_LAYERS),
    "Model": (mr.Model, OF_LAYERS),
    "Optimizer": (mr.optim.Optimizer, OF_OPTIMIZERS),
    "Adam": (mr.optim.Adam, OF_OPTIMIZERS),
    "LossScaleOptimizer": (mr.optim.LossScaleOptimizer, f"{OF_OPTIMIZERS} _inner_of _wrap"),
    "Loss": (mr.losses.Loss, "_loss_values _mask_of_values _reduced_loss"),
    "Dataset": (mr.data.Dataset, ""),
    "Metric": (mr.metrics.Metric, ""),
    "MirroredStrategy": (mr.MirroredStrategy, "_all_reduced _distributed _keep_counts _rows_along"),
}
PUBLIC = {
    "Layer": _overrides.LAYER.ours,
    "Model": _overrides.MODEL.ours,
    "Loss": _overrides.LOSS.ours,
    **dict.fromkeys(("Optimizer", "Adam", "LossScaleOptimizer"), _overrides.OPTIMIZER.ours),
}


@cases("kind", PRIVATE)
def test_few_names_are_taken(kind: str) -> None:
    """What is none of Keras' is in parts, such as an optimizer's `slots` and a layer's state."""
    base, private = PRIVATE[kind][0].__declaring__, PRIVATE[kind][1]
    taken = {name for name in dir(base) if _overrides._is_taken(name, base)}
    assert taken == {*private.split(), *PUBLIC.get(kind, ())}


COMMON = (
    "_add _added _begin _build _built _call _chain _compilation _compile _compiled _config _data "
    "_dtype _end _form _get_config _graph _history _init _input_dtype _input_shape _layers _loss "
    "_losses _make _metrics _name _names _optimizer _output_shape _part _path _predict _prepare "
    "_add_moving _meeting _moments _normalize _results _run _save _shape _shared_config _state "
    "_statistic _step _store _strategy _train _trainable _training _traces _update _walk _weights "
    "_zeros _added_weights _assign_attribute _begin_tensors _call_form _called_beside _declaring "
    "_elsewhere _for_itself _never_called _mirrored _named_as _prepare_call "
    "_replica_attributes _run_call _state_of _take_dtype_policy _tracker _weights_scope"
)


def _forbidden(*_: Any) -> None:
    raise AssertionError("It was called in place of the library's own.")


def _with_names(base: type[Any], how: str) -> type[Any]:
    """Return a subclass with the common names: methods, class attributes or an instance's own."""
    if how == "methods":
        return type("Mine", (base,), dict.fromkeys(COMMON.split(), _forbidden))
    if how == "class attributes":
        return type("Mine", (base,), dict.fromkeys(COMMON.split(), 7))

    def init(self: Any, *args: Any, **options: Any) -> None:
        base.__init__(self, *args, **options)
        for name in COMMON.split():
            setattr(self, name, "mine")

    return type("Mine", (base,), {"__init__": init} if how == "attributes" else {})


class _Scale(mr.layers.Layer):
    def build(self, input_shape: Any) -> None:
        self.factor = self.add_weight((input_shape[-1],), "ones", name="factor")

    def call(self, inputs: Any) -> Any:
        self.add_loss(mr.reduce_mean(inputs * self.factor) * 0.1)
        return inputs * self.factor


class _Net(mr.Model):
    def __init__(self, scale: Any, normalized: Any) -> None:
        super().__init__()
        self.scale = scale
        self.normalized = normalized
        self.dense = mr.layers.Dense(1, kernel_initializer="ones")

    def call(self, inputs: Any) -> Any:
        return self.dense(self.normalized(self.scale(inputs)))


@cases("kind", ["subclass", "functional", "sequential"])
def test_common_private_names_are_users(kind: str) -> None:
    """As in Keras a subclass may have them, and trains, copies and predicts as one without."""
    x = np.random.default_rng(1).normal(size=(8, 2)).astype(np.float32)
    y = x[:, :1] - x[:, 1:]

    def trained(how: str) -> list[list[Any]]:
        scale = _with_names(_Scale, how)()
        normalized = _with_names(mr.layers.BatchNormalization, how)()
        dense = mr.layers.Dense(1, kernel_initializer="ones")
        if kind == "subclass":
            model = _with_names(_Net, how)(scale, normalized)
        elif kind == "functional":
            begin = mr.layers.Input((2,))
            model = _with_names(mr.Model, how)(begin, dense(normalized(scale(begin))))
        else:
            model = _with_names(mr.Sequential, how)([scale, normalized, dense])
        model.compile(mr.optim.SGD(0.1), "mse", metrics=["mae"])
        model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0)
        copied = copy.deepcopy(model)
        assert copied.predict(x, verbose=0).tolist() == model.predict(x, verbose=0).tolist()
        logs = [model.train_on_batch(x, y), model.evaluate(x, y, verbose=0)]
        return [*logs, *(weight.tolist() for weight in model.get_weights())]

    expected = trained("plain")
    for how in ("methods", "class attributes", "attributes"):
        assert trained(how) == expected


@cases(
    ("make", "name"),
    [
        (mr.Model, "_call_results"),
        (mr.Model, "fitted_shape"),
        (mr.losses.MeanSquaredError, "per_example"),
        (mr.optim.Adam, "prepare"),
    ],
)
def test_an_attribute_whose_name_is_taken_is_refused(make: Any, name: str) -> None:
    one = make()
    with pytest.raises(TypeError, match=f"`{name}` of .* Received: an assignment .* another name"):
        setattr(one, name, 3)
    one._helper = 3
    assert callable(getattr(one, name))


@cases(
    ("make", "name"),
    [
        (lambda: mr.layers.Dense(1), "input_shape"),
        (mr.Model, "loss"),
        (mr.Model, "inputs"),
        (mr.metrics.Mean, "variables"),
    ],
)
def test_a_property_that_cannot_be_set_says_so(make: Any, name: str) -> None:
    """In Keras 3.15 the first three can be set: they are none of its properties."""
    with pytest.raises(AttributeError, match=f"`{name}` of .* cannot be set. .* another name"):
        setattr(make(), name, 3)


def test_advice_is_one_sentence_or_more() -> None:
    for _, (table, *_) in BASES.values():
        assert all(advice[0] != " " and advice.endswith(".") for advice in table.values())


@pytest.mark.behaviour("overrides")
@cases(
    ("make", "name"),
    [
        (mr.Model, "make_train_function"),
        (mr.Sequential, "evaluate"),
        (lambda: mr.layers.Dense(1), "symbolic_call"),
        (mr.optim.SGD, "apply_gradients"),
        (lambda: mr.layers.Dense(1), "input_spec"),
        (mr.optim.Adam, "lr"),
    ],
)
def test_assignments_to_instances_are_refused(make: Any, name: str) -> None:
    instance = make()
    with pytest.raises(TypeError, match=f"`{name}` of .* an assignment on an instance"):
        setattr(instance, name, lambda *args: None)
    assert name not in vars(instance)


def test_properties_that_can_be_set_are_set() -> None:
    layer = mr.layers.Dense(1)
    layer.trainable = False
    assert layer.trainable is False
    with pytest.raises(AttributeError, match="cannot be set"):
        layer.weights = []  # type: ignore[misc]


@pytest.mark.behaviour("overrides")
@cases("part", ["model", "layer", "optimizer"])
def test_what_is_assigned_to_a_class_is_refused_by_compile(part: str) -> None:
    class Net(mr.Model):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner(1)

        def call(self, inputs: Any) -> Any:
            return self.inner(inputs)

    class Inner(mr.layers.Dense):
        pass

    class Descent(mr.optim.SGD):
        pass

    class Error(mr.losses.MeanSquaredError):
        pass

    class Score(mr.metrics.MeanSquaredError):
        pass

    model = Net()
    parts = {
        "model": (Net, "make_train_function"),
        "layer": (Inner, "symbolic_call"),
        "optimizer": (Descent, "apply_gradients"),
    }
    cls, name = parts[part]
    setattr(cls, name, lambda *args: None)
    with pytest.raises(TypeError, match=f"`{name}` of {cls.__name__}: mirrored does not use it"):
        model.compile(Descent(), Error(), metrics=[Score()])
    assert model.optimizer is None


def test_a_class_with_the_documented_hooks_is_used() -> None:
    """What Keras' guides define in layers, losses and models that need no step of their own."""
    called = set()

    class Scale(mr.layers.Layer):
        def __init__(self, factor: float, **options: Any) -> None:
            super().__init__(**options)
            self.factor = factor

        def build(self, input_shape: Any) -> None:
            called.add("build")
            self.w = self.add_weight(shape=(input_shape[-1],), initializer="ones", name="w")
            super().build(input_shape)

        def call(self, inputs: Any) -> Any:
            called.add("call")
            return inputs * self.w * self.factor

        def compute_output_shape(self, input_shape: Any) -> Any:
            called.add("compute_output_shape")
            return input_shape

        def get_config(self) -> dict[str, Any]:
            return {"factor": self.factor}

    class Absolute(mr.losses.Loss):
        def call(self, y_true: Any, y_pred: Any) -> Any:
            called.add("loss")
            return mr.abs(y_true - y_pred)

    class Largest(mr.metrics.Mean):
        def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
            called.add("update_state")
            super().update_state(y_pred)

    inputs = mr.layers.Input((2,))
    model = mr.Model(inputs, Scale(2.0)(inputs))
    model.compile("sgd", Absolute(), metrics=[Largest()])
    model.fit([[1.0, 2.0]], [[1.0, 2.0]], verbose=0)
    assert called == {"build", "call", "compute_output_shape", "loss", "update_state"}


def test_a_build_that_is_inherited_from_a_mixin_runs_once() -> None:
    class Builds:
        def build(self, input_shape: Any) -> None:
            self.w = self.add_weight(shape=(3,), initializer="ones")  # type: ignore[attr-defined]

    class Mixed(Builds, mr.layers.Layer):
        def call(self, inputs: Any) -> Any:
            return inputs * self.w

    class More(Builds, mr.layers.Dense):
        def build(self, input_shape: Any) -> None:
            super().build(input_shape)
            mr.layers.Dense.build(self, input_shape)

    for layer, count in ((Mixed(), 1), (More(2), 3)):
        first = [layer([[1.0, 2.0, 3.0]]), layer.weights]
        assert layer.built
        layer([[1.0, 2.0, 3.0]])
        assert len(first[1]) == len(layer.weights) == count
        assert all(a is b for a, b in zip(first[1], layer.weights, strict=True))


@pytest.mark.behaviour("layer-metrics")
def test_metrics_in_layers_are_reported() -> None:
    """Beside those of `compile`, as in Keras 3.15."""

    class Watched(mr.layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.watched = {"mean": mr.metrics.Mean("activation")}

        def call(self, inputs: Any) -> Any:
            self.watched["mean"].update_state(inputs)
            return inputs

    model = mr.Sequential([mr.layers.Dense(1, kernel_initializer="ones"), Watched()])
    model.compile("sgd", "mse", metrics=["mse"])
    logs = model.evaluate([[1.0], [2.0]], [1.0, 3.0], verbose=0, return_dict=True)
    assert logs == {"loss": 0.5, "mse": 0.5, "activation": 1.5}
    history = model.fit([[1.0], [2.0]], [1.0, 3.0], verbose=0, epochs=2).history
    first = {name: values[0] for name, values in history.items()}
    assert first == {"activation": 1.5, "loss": 0.5, "mse": 0.5}
    assert model.metrics_names == ["loss", "compile_metrics", "activation"]


def test_a_rule_of_ones_own_is_elementwise_where_it_says_so() -> None:
    """A norm of each variable would be one of all of them together, were they one vector."""

    class Normed(mr.optim.SGD):
        def update(self, gradient: Any, value: Any, slots: Any, rate: Any, step: Any) -> Any:
            norm = mr.sqrt(mr.reduce_sum(gradient * gradient))
            return super().update(gradient / norm, value, slots, rate, step)

    class Doubled(mr.optim.SGD):
        elementwise = True

        def update(self, gradient: Any, value: Any, slots: Any, rate: Any, step: Any) -> Any:
            return super().update(gradient * 2.0, value, slots, rate, step)

    kinds = (mr.optim.SGD, Normed, type("Nested", (Normed,), {}), Doubled)
    assert [kind.elementwise for kind in kinds] == [True, False, False, True]
    results = []
    for eagerly in (True, False):
        model = mr.Sequential([mr.layers.Dense(2, "tanh", input_shape=(2,)), mr.layers.Dense(1)])
        model.set_weights([np.full(weight.shape, 0.5) for weight in model.weights])
        model.compile(Normed(0.1), "mse", run_eagerly=eagerly)
        model.fit([[1.0, 2.0]], [4.0], epochs=2, verbose=0)
        results.append(model.get_weights())
    for eager, recorded in zip(*results, strict=True):
        np.testing.assert_allclose(recorded, eager, rtol=1e-6)


@cases("recorded", [True, False])
@cases(
    "hook",
    ["reduce_implementation", "batch_reduce_implementation", "batch_all_reduce_implementation"],
)
def test_collectives_of_ones_own_sum_gradients(hook: str, recorded: bool) -> None:
    calls = []

    class Mine(mr.distribute.CrossDeviceOps):
        def reduce_implementation(
            self, reduce_op: Any, values: Any, destination: Any, options: Any
        ) -> Any:
            with mr.device(destination.name):
                return mr.add_n(list(values))

    def noted(self: Any, *args: Any) -> Any:
        calls.append(hook)
        return getattr(Mine, hook)(self, *args)

    ops = type("Noted", (Mine,), {hook: noted})()
    mr.config.experimental.set_simulated_gpus(2)
    strategy = mr.MirroredStrategy(["GPU:0", "GPU:1"], cross_device_ops=ops)
    with strategy.scope():
        model = mr.Sequential([mr.layers.Dense(1, input_shape=(1,))])
        model.compile("sgd", "mse", run_eagerly=not recorded)
    model.fit([[1.0], [2.0]], [1.0, 2.0], verbose=0)
    assert calls
