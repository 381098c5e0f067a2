"""Models and what they are made of are pickled and copied, and training goes on as before."""

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 4)).astype(np.float32)
Y = (X.sum(1) > 0).astype(np.int32)
Simulate = Callable[..., Any]


def through_joblib(value: Any) -> Any:
    import joblib

    file = io.BytesIO()
    joblib.dump(value, file)
    file.seek(0)
    return joblib.load(file)


HOW: dict[str, Callable[[Any], Any]] = {
    "pickled": lambda x: pickle.loads(pickle.dumps(x)),
    "copied": copy.deepcopy,
}
JOBLIB = pytest.param(through_joblib, marks=pytest.mark.slow, id="joblib")
each_way = pytest.mark.parametrize("how", [*HOW.values(), JOBLIB], ids=[*HOW, None])


class Own(mr.Model):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = [mr.layers.Dense(5, activation="relu", kernel_regularizer="l2")]
        self.shared = self.hidden[0]
        self.dropout = mr.layers.Dropout(0.3)
        self.last = mr.layers.Dense(2, activation="softmax")
        self.scale = mr.constant(0.5)
        self.twice = mr.function(self._twice)

    def _twice(self, x: Any) -> Any:
        return self(x) * 2.0

    def call(self, inputs: Any, training: bool = False) -> Any:
        hidden = self.hidden[0](inputs) * self.scale
        return self.last(self.dropout(hidden, training=training))


def functional() -> Any:
    inputs = mr.layers.Input((4,))
    hidden = mr.layers.Dropout(0.3)(mr.layers.Dense(5, activation="tanh")(inputs))
    return mr.Model(inputs, mr.layers.Dense(2, activation="softmax")(hidden))


def sequential() -> Any:
    return mr.Sequential(
        [mr.layers.Dense(5), mr.layers.Dropout(0.2), mr.layers.Dense(2, "softmax")]
    )


MODELS = {"subclass": Own, "functional": functional, "sequential": sequential}


def trained(make: Callable[[], Any], strategy: Any) -> Any:
    with strategy.scope():
        model = make()
        model.compile(
            mr.optim.Adam(0.01, amsgrad=True),
            "sparse_categorical_crossentropy",
            metrics=["accuracy"],
        )
    model.fit(X, Y, batch_size=6, epochs=1, verbose=0)
    return model


def state(model: Any) -> Any:
    values = [np.asarray(each.numpy()) for each in (*model.weights, *model.optimizer.variables)]
    return [(each.shape, each.dtype, each.tobytes()) for each in values]


@pytest.mark.behaviour("models-travel")
@cases(
    ("model", "replicas", "how"),
    [
        ("subclass", 2, "pickled"),
        ("functional", 2, "copied"),
        ("sequential", 1, "pickled"),
    ],
)
def test_training_goes_on_with_the_same_bits(
    simulate: Simulate, model: Any, replicas: int, how: str
) -> None:
    simulate(2)
    strategy = mr.MirroredStrategy() if replicas > 1 else mr.distribute.get_strategy()
    model = trained(MODELS[model], strategy)
    again = HOW[how](model)
    assert again.distribute_strategy is strategy
    assert state(again) == state(model)
    assert {id(each) for each in again.weights}.isdisjoint(id(each) for each in model.weights)
    ends = []
    for each in (model, again):
        mr.random.set_seed(5)  # The order of examples comes from the global stream.
        history = each.fit(X, Y, batch_size=6, verbose=0).history
        ends.append((state(each), history, each.evaluate(X, Y, verbose=0)))
    assert ends[0] == ends[1]


def test_a_mirrored_model_in_another_process(simulate: Simulate) -> None:
    simulate(2)
    model = trained(functional, mr.MirroredStrategy())
    pickled, before = pickle.dumps(model), state(model)
    mr.config.experimental.reset_devices()
    simulate(1)
    with pytest.raises(ValueError, match="does not have its devices"):
        pickle.loads(pickled)
    mr.config.experimental.reset_devices()
    simulate(2)
    again = pickle.loads(pickled)
    assert state(again) == before
    assert again.distribute_strategy.num_replicas_in_sync == 2
    assert again.weights[0].copies[1].device.endswith("GPU:1")
    again.fit(X, Y, verbose=0)


@pytest.mark.behaviour("tensors-travel")
def test_what_is_one_stays_one() -> None:
    model = trained(Own, mr.distribute.get_strategy())
    copied, layer, weight, history = copy.deepcopy(
        (model, model.shared, model.weights[0], model.history)
    )
    assert copied.hidden[0] is copied.shared is layer
    assert copied.weights[0] is weight
    assert copied.history is history
    assert history.model is copied
    assert copied.twice.python_function.__self__ is copied
    np.testing.assert_array_equal(copied.twice(X).numpy(), model.twice(X).numpy())


def test_a_shallow_copy_leaves_the_model_as_it_is() -> None:
    model = trained(functional, mr.distribute.get_strategy())
    shallow = copy.copy(model)
    assert shallow.weights[0] is model.weights[0]
    assert model.history.model is model


def test_a_copied_network_can_be_built_on() -> None:
    model = copy.deepcopy(functional())
    longer = mr.Model(model.inputs, mr.layers.Dense(3)(model.outputs[0]))
    assert longer.predict(X, verbose=0).shape == (len(X), 3)
    shorter = copy.deepcopy(mr.Sequential([mr.layers.Input((4,)), *(mr.layers.Dense(3),) * 1]))
    shorter.add(mr.layers.Dense(2))
    assert shorter.pop().name == "dense_4"
    assert shorter.output_shape == (None, 3)


def test_models_are_as_deep_as_they_are() -> None:
    """What leads from layer to layer is gone through in a loop, not by calls."""
    model = mr.Sequential([mr.layers.Input((1,)), *(mr.layers.Flatten() for _ in range(300))])
    for how in (copy.deepcopy, HOW["pickled"]):
        assert how(model).predict([[1.0], [2.0]], verbose=0).tolist() == [[1.0], [2.0]]


@pytest.mark.behaviour("models-travel")
def test_history_travels_without_its_model() -> None:
    model = trained(functional, mr.distribute.get_strategy())
    history = pickle.loads(pickle.dumps(model.history))
    assert (history.history, history.epoch) == (model.history.history, [0])
    assert history.model is None
    assert model.history.model is model


def built(layer: Any) -> Any:
    layer(X)
    return layer


def stepped(optimizer: Any) -> Any:
    optimizer.apply_gradients([(mr.constant([1.0, -2.0]), mr.Variable([1.0, 1.0]))])
    return optimizer


def updated(metric: Any) -> Any:
    metric.update_state([1, 0, 1], [[0.2, 0.8], [0.1, 0.9], [0.4, 0.6]])
    return metric


PARTS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "dense": (lambda: built(mr.layers.Dense(3, "relu")), lambda each: each(X)),
    "dropout": (
        lambda: mr.layers.Dropout(0.5, seed=3),
        lambda each: [each(X, training=True) for _ in range(2)],
    ),
    "unbuilt layer": (
        lambda: mr.layers.Dense(3, kernel_initializer=mr.initializers.GlorotNormal(seed=1)),
        lambda each: each(X),
    ),
    "initializer": (
        lambda: mr.initializers.TruncatedNormal(seed=2),
        lambda each: each((3, 3)),
    ),
    "regularizer": (
        lambda: mr.keras.regularizers.L1L2(0.1, 0.2),
        lambda each: each(mr.constant([1.0, -2.0])),
    ),
    "loss": (
        lambda: mr.losses.BinaryCrossentropy(from_logits=True),
        lambda each: each([[0.0], [1.0]], [[0.3], [-2.0]]),
    ),
    "metric": (
        lambda: updated(mr.metrics.SparseCategoricalAccuracy()),
        lambda each: each.result(),
    ),
    "sgd": (
        lambda: stepped(mr.optim.SGD(0.1, momentum=0.9, clipnorm=1.0, use_ema=True)),
        lambda each: [*each.variables, each.clipnorm, each.momentum],
    ),
    "adam": (lambda: stepped(mr.optim.Adam()), lambda each: each.variables),
    "policy": (lambda: mr.keras.mixed_precision.Policy("float64"), lambda each: each.name),
}


def values(result: Any) -> Any:
    if isinstance(result, list | tuple):
        return [values(each) for each in result]
    return np.asarray(result.numpy() if hasattr(result, "numpy") else result).tolist()


@pytest.mark.behaviour("models-travel")
@each_way
@pytest.mark.parametrize(("make", "use"), PARTS.values(), ids=PARTS)
def test_parts_of_models(
    make: Callable[[], Any], use: Callable[[Any], Any], how: Callable[[Any], Any]
) -> None:
    part = make()
    again = how(part)
    assert again is not part
    assert values(use(again)) == values(use(part))


def test_slots_belong_to_the_variables_that_came_along() -> None:
    variable = mr.Variable([1.0, 1.0])
    optimizer = mr.optim.SGD(0.1, momentum=0.9)
    optimizer.apply_gradients([([1.0, 1.0], variable)])
    alone = copy.deepcopy(variable), pickle.loads(pickle.dumps(optimizer))
    together = copy.deepcopy((variable, optimizer))
    for copied, made in (alone, together):
        made.apply_gradients([([1.0, 1.0], copied)])
    optimizer.apply_gradients([([1.0, 1.0], variable)])
    assert together[0].numpy().tolist() == variable.numpy().tolist()
    assert alone[0].numpy().tolist() != variable.numpy().tolist()  # Another variable: new slots.


@mr.function
def doubled(x: Any) -> Any:
    return x * 2.0


COPIES = (pickle.dumps, copy.deepcopy)


def tape() -> Any:
    with mr.GradientTape() as tape:
        mr.Variable(1.0) * 2.0
    return tape


@pytest.mark.behaviour("tensors-travel")
@cases("how", COPIES)
@cases(
    ("make", "advice"),
    [
        (lambda: mr.function(lambda x: x), "create the function again"),
        (tape, "Compute its gradients"),
        (lambda: iter(mr.data.Dataset.range(3)), "Iterate over the dataset again"),
        (
            lambda: iter(
                mr.distribute.get_strategy().experimental_distribute_dataset([[1.0], [2.0]])
            ),
            "Iterate over the dataset again",
        ),
    ],
    ids=["function", "tape", "iterator", "iterator of a strategy"],
)
def test_what_does_not_travel_says_so(
    make: Callable[[], Any], advice: str, how: Callable[[Any], Any]
) -> None:
    with pytest.raises(TypeError, match=advice):
        how({"a": [make()]})


def test_a_function_of_a_module_is_known_by_its_name() -> None:
    assert copy.deepcopy([doubled])[0] is doubled
    assert pickle.loads(pickle.dumps(doubled)) is doubled


@pytest.mark.behaviour("models-travel")
@cases("method", ["fit", "evaluate", "predict"])
def test_a_model_that_runs(method: str) -> None:
    texts = []

    class Try(mr.callbacks.Callback):
        def attempt(self, *_: Any) -> None:
            for how in COPIES:
                with pytest.raises(RuntimeError, match=f"while `{method}` runs") as caught:
                    how(self.model)
                texts.append(str(caught.value))

        on_train_end = on_test_end = on_predict_end = attempt

    model = trained(functional, mr.distribute.get_strategy())
    data = (X,) if method == "predict" else (X, Y)
    getattr(model, method)(*data, verbose=0, callbacks=[Try()])
    assert "get_weights()" in texts[1]
    copy.deepcopy(model)


def test_outputs_of_a_pickle_without_their_means_have_them() -> None:
    """An earlier version computed them each time, so its pickles have none."""
    x = mr.layers.Input((4,))
    model = mr.Model(x, [mr.layers.Dense(1)(x), mr.layers.Dense(1)(x)])
    model.compile("sgd", "mse")
    expected = model.evaluate(X, [Y, Y], verbose=0)
    outputs = model.__state__.compilation.outputs
    means = outputs.trackers
    del vars(outputs)["trackers"]
    assert len(means) == 2
    assert outputs.trackers == means
    assert pickle.loads(pickle.dumps(model)).evaluate(X, [Y, Y], verbose=0) == expected
