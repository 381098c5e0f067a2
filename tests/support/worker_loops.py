"""Training in each way that there is, the same on any number of replicas and of workers."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import mirrored as mr
from mirrored import devices, layers, ops

FEATURES, CLASSES, EXAMPLES, BATCH = 4, 3, 17, 8
Left = dict[str, Any]
Way = Callable[[mr.distribute.Strategy], Left]


def run(way: Way, replicas: int, strategy_of: Callable[[], mr.distribute.Strategy]) -> Left:
    """Return what a way of training leaves, in float64, with so many simulated GPUs."""
    devices.reset_devices()
    layers.reset_names()
    mr.keras.backend.set_floatx("float64")
    mr.random.set_seed(5)
    mr.config.experimental.set_simulated_gpus(replicas)
    strategy = strategy_of()
    return {name: np.asarray(value) for name, value in way(strategy).items()}


def data() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(3)
    return rng.normal(size=(EXAMPLES, FEATURES)), rng.integers(0, CLASSES, size=EXAMPLES)


def dataset() -> Any:
    return mr.data.Dataset.from_tensor_slices(data()).shuffle(EXAMPLES, seed=2).batch(BATCH)


def network(kind: type[mr.Model] = mr.Model) -> mr.Model:
    x = mr.layers.Input(shape=(FEATURES,))
    hidden = mr.layers.Dense(6, activation="tanh")(x)
    hidden = mr.layers.BatchNormalization()(hidden)
    hidden = mr.layers.Dropout(0.3)(hidden)
    return kind(x, mr.layers.Dense(CLASSES, activation="softmax")(hidden))


def weights(model: mr.Model) -> Left:
    return {each.name: each.numpy() for each in model.variables}


def spread(y_true: Any, y_pred: Any) -> Any:
    """Return a number of a batch that is no mean over its examples."""
    return mr.reduce_max(y_pred) - mr.reduce_min(y_pred)


class Largest(mr.metrics.Metric):
    """The largest prediction, and the number of batches."""

    def __init__(self) -> None:
        super().__init__()
        self.value = self.add_weight(name="value", initializer="zeros")
        self.batches = self.add_weight(name="batches", initializer="zeros")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        self.value.assign(mr.maximum(self.value, mr.reduce_max(y_pred)))
        self.batches.assign_add(1.0)

    def result(self) -> Any:
        return {"largest": self.value, "batches": self.batches}


def compiled(strategy: mr.distribute.Strategy, kind: type[mr.Model], **options: Any) -> mr.Model:
    with strategy.scope():
        model = network(kind)
        optimizer = mr.optim.LossScaleOptimizer(mr.optim.Adam(0.01, epsilon=0.1), initial_scale=8.0)
        metrics = ["accuracy", spread] if kind is mr.Model else ["accuracy", Largest(), spread]
        model.compile(optimizer, "sparse_categorical_crossentropy", metrics=metrics, **options)
    return model


def fitted(strategy: mr.distribute.Strategy, kind: type[mr.Model] = mr.Model, **how: Any) -> Left:
    model = compiled(strategy, kind, **how)
    history = model.fit(
        dataset(), epochs=2, validation_data=data(), validation_batch_size=5, verbose=0
    )
    logs = {f"history {name}": each for name, each in history.history.items()}
    outputs = model.predict(dataset().map(lambda x, y: x), verbose=0)
    return {**weights(model), **logs, "outputs": outputs}


def eagerly(strategy: mr.distribute.Strategy) -> Left:
    return fitted(strategy, run_eagerly=True)


class Own(mr.Model):
    """Has a step of its own, with metrics, and a number that is the same on all replicas."""

    def train_step(self, data: Any) -> dict[str, Any]:
        x, y = data
        with mr.GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_loss(x, y, y_pred)
            scaled = self.optimizer.scale_loss(loss)
        gradients = tape.gradient(scaled, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {**self.compute_metrics(x, y, y_pred), "own": loss * 2.0, "seven": ops.constant(7)}


def own_step(strategy: mr.distribute.Strategy) -> Left:
    return fitted(strategy, Own)


def own_step_eagerly(strategy: mr.distribute.Strategy) -> Left:
    return fitted(strategy, Own, run_eagerly=True)


def looped(strategy: mr.distribute.Strategy, *, recorded: bool = True) -> Left:
    """Return what a loop of one's own leaves: weights, losses, metrics, and values reduced."""
    with strategy.scope():
        model = network()
        optimizer = mr.optim.SGD(0.1, momentum=0.5)
        accuracy = mr.metrics.SparseCategoricalAccuracy()
        seen = mr.Variable(
            0,
            trainable=False,
            synchronization=mr.VariableSynchronization.ON_READ,
            aggregation=mr.VariableAggregation.SUM,
        )
        mean = mr.Variable(
            0.0, dtype="float64", trainable=False, aggregation=mr.VariableAggregation.MEAN
        )
        first = mr.Variable(
            0.0,
            dtype="float64",
            trainable=False,
            aggregation=mr.VariableAggregation.ONLY_FIRST_REPLICA,
        )
        loss_of = mr.losses.SparseCategoricalCrossentropy(reduction="none")

    def step(x: Any, y: Any) -> Any:
        context = mr.distribute.get_replica_context()
        with mr.GradientTape() as tape:
            y_pred = model(x, training=True)
            loss = mr.nn.compute_average_loss(loss_of(y, y_pred), global_batch_size=BATCH)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        accuracy.update_state(y, y_pred)
        seen.assign_add(x.shape[0])
        largest = context.all_reduce("sum", mr.reduce_sum(x))
        mean.assign(largest * 0.5)
        first.assign(largest)
        return loss, loss_of(y, y_pred)

    def whole(x: Any, y: Any) -> Any:
        losses, each = strategy.run(step, args=(x, y))
        return strategy.reduce("sum", losses, axis=None), strategy.reduce("mean", each, axis=0)

    taken = mr.function(whole) if recorded else whole
    left: Left = {}
    batches = strategy.experimental_distribute_dataset(dataset())
    for i, (x, y) in enumerate(batches):
        total, average = taken(x, y)
        left |= {f"loss {i}": float(total), f"mean {i}": float(average)}
    left["gathered"] = strategy.gather(x, axis=0).numpy()
    left |= {"accuracy": float(accuracy.result()), "seen": int(seen)}
    return left | weights(model) | {"averaged": float(mean), "first": float(first)}


def looped_eagerly(strategy: mr.distribute.Strategy) -> Left:
    return looped(strategy, recorded=False)


def attending(strategy: mr.distribute.Strategy) -> Left:
    """Return what a network with attention leaves, with weights of examples and penalties."""
    rng = np.random.default_rng(8)
    rows, sample_weight = rng.normal(size=(EXAMPLES, 5, 4)), rng.uniform(0.5, 2.0, EXAMPLES)
    with strategy.scope():
        x = mr.layers.Input(shape=(5, 4))
        hidden = mr.layers.MultiHeadAttention(2, 3, dropout=0.2, use_bias=False)(x, x)
        hidden = mr.layers.LayerNormalization()(hidden)
        hidden = mr.layers.Dense(CLASSES, kernel_regularizer="l2")(mr.layers.Flatten()(hidden))
        model = mr.Model(x, mr.layers.Activation("softmax")(hidden))
        optimizer = mr.optim.RMSprop(0.01, epsilon=0.1, global_clipnorm=0.5)
        model.compile(optimizer, "sparse_categorical_crossentropy", weighted_metrics=["accuracy"])
    given = {"batch_size": BATCH, "sample_weight": sample_weight, "verbose": 0}
    history = model.fit(rows, data()[1], epochs=2, **given)
    return {**weights(model), **history.history}


def compared(strategy: mr.distribute.Strategy) -> Left:
    """Return what a network leaves that reads rows of words, by a loss of pairs of examples."""
    words = np.random.default_rng(9).integers(0, 9, size=(EXAMPLES, 5))
    with strategy.scope():
        x = mr.layers.Input(shape=(5,), dtype="int32")
        hidden = mr.layers.Embedding(9, 6, mask_zero=True)(x)
        hidden = mr.layers.GlobalAveragePooling1D()(hidden)
        model = mr.Model(x, mr.layers.UnitNormalization()(mr.layers.Dense(4)(hidden)))
        model.compile("sgd", mr.losses.Circle())
    history = model.fit(words, data()[1], batch_size=BATCH, epochs=2, verbose=0)
    return {**weights(model), **history.history}


def called_back(strategy: mr.distribute.Strategy) -> Left:
    """Return what `fit` leaves whose callbacks look at its logs, and write to a worker's folder.

    It is fed by a generator, with batches of sizes that differ.
    """
    x, y = data()

    def batches() -> Iterator[Any]:
        for begin, end in ((0, 1), (1, 7), (7, 9), (9, EXAMPLES)):
            yield x[begin:end], y[begin:end]

    columns = (mr.TensorSpec((None, FEATURES), "float64"), mr.TensorSpec((None,), "int64"))
    model = compiled(strategy, mr.Model)
    with tempfile.TemporaryDirectory() as folder:
        best, log = Path(folder, "best.weights.safetensors"), Path(folder, "log.csv")
        history = model.fit(
            mr.data.Dataset.from_generator(batches, output_signature=columns),
            epochs=9,
            validation_data=data(),
            validation_batch_size=5,
            verbose=0,
            callbacks=[
                mr.callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=1, min_delta=0.2),
                mr.callbacks.EarlyStopping("val_accuracy", patience=3, restore_best_weights=True),
                mr.callbacks.ModelCheckpoint(best, save_best_only=True, save_weights_only=True),
                mr.callbacks.CSVLogger(log),
            ],
        )
        rows = [line.split(",") for line in log.read_text().splitlines()]
        stopped = weights(model)
        model.load_weights(best)
    left = {f"best {name}": each for name, each in weights(model).items()}
    logged = {f"log {name}": [*map(float, each)] for name, *each in zip(*rows, strict=True)}
    return {**stopped, **left, **history.history, **logged}


def by_batch(strategy: mr.distribute.Strategy) -> Left:
    """Return what single steps leave, and steps of which several are taken at a time."""
    x, y = data()
    model = compiled(strategy, mr.Model)
    left: Left = {}
    for i, (begin, end) in enumerate(((0, 8), (8, 11), (11, 12))):
        left[f"trained {i}"] = model.train_on_batch(x[begin:end], y[begin:end])
    left["tested"] = model.test_on_batch(x[:5], y[:5])
    left["predicted"] = model.predict_on_batch(x[:3])
    model.steps_per_execution = 2
    model.fit(x, y, batch_size=3, epochs=2, class_weight={0: 1.0, 1: 2.0, 2: 0.5}, verbose=0)
    return {**left, **weights(model), "evaluated": model.evaluate(x, y, batch_size=7, verbose=0)}


WAYS: dict[str, Way] = {
    "fit": fitted,
    "fit eagerly": eagerly,
    "own step": own_step,
    "own step eagerly": own_step_eagerly,
    "attention": attending,
    "pairs": compared,
    "callbacks": called_back,
    "by batch": by_batch,
    "loop": looped,
    "loop eagerly": looped_eagerly,
}
