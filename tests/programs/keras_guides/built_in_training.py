"""Keras' guide "Training & evaluation with the built-in methods"."""

import tempfile
from pathlib import Path

import numpy as np
from known import labels, numbers, set_weights, told_of

X, Y = numbers(30, 6), labels(30, 3)
HELD_OUT = numbers(11, 6, phase=1.0), labels(11, 3)


def _model(tf, **options):
    inputs = tf.keras.Input(shape=(6,), name="digits")
    hidden = tf.keras.layers.Dense(8, activation="tanh", name="hidden")(inputs)
    outputs = tf.keras.layers.Dense(3, activation="softmax", name="predictions")(hidden)
    model = set_weights(tf.keras.Model(inputs=inputs, outputs=outputs))
    if options:
        model.compile(**options)
    return model


def _compiled(tf):
    return _model(
        tf,
        optimizer=tf.keras.optimizers.SGD(0.2),
        loss="sparse_categorical_crossentropy",
        metrics=["sparse_categorical_accuracy"],
    )


def from_arrays_to_predictions(tf):
    model = _model(
        tf,
        optimizer=tf.keras.optimizers.Adam(0.01),
        loss=tf.keras.losses.SparseCategoricalCrossentropy(),
        metrics=[tf.keras.metrics.SparseCategoricalAccuracy()],
    )
    history = model.fit(
        X, Y, batch_size=8, epochs=2, validation_data=HELD_OUT, shuffle=False, verbose=0
    )
    results = model.evaluate(*HELD_OUT, batch_size=4, verbose=0)
    named = model.evaluate(*HELD_OUT, batch_size=4, verbose=0, return_dict=True)
    predictions = model.predict(X[:3], verbose=0)
    return told_of(history), np.float32(results), list(named), predictions


def a_loss_that_is_a_function(tf):
    def squares(y_true, y_pred):
        return tf.keras.ops.mean(tf.keras.ops.square(y_true - y_pred), axis=-1)

    model = _model(tf, optimizer=tf.keras.optimizers.SGD(0.5), loss=squares)
    rows = tf.keras.ops.one_hot(Y.astype("float32"), num_classes=3)
    history = model.fit(X, rows, batch_size=8, epochs=2, shuffle=False, verbose=0)
    return told_of(history), model.get_weights()


def a_loss_that_is_a_class(tf):
    class Humble(tf.keras.losses.Loss):
        def __init__(self, factor=0.1, name="humble"):
            super().__init__(name=name)
            self.factor = factor

        def call(self, y_true, y_pred):
            errors = tf.reduce_mean(tf.square(y_true - y_pred), axis=-1)
            return errors + self.factor * tf.reduce_mean(tf.square(0.5 - y_pred), axis=-1)

    rows = tf.one_hot(Y, depth=3)
    found = []
    for weights in (None, np.linspace(0, 2, 30, dtype=np.float32)):
        model = _model(tf, optimizer=tf.keras.optimizers.SGD(0.5), loss=Humble(0.3))
        history = model.fit(X, rows, batch_size=8, sample_weight=weights, shuffle=False, verbose=0)
        found.append([told_of(history), model.get_weights()])
    return found


def a_metric_of_ones_own(tf):
    class RightOnes(tf.keras.metrics.Metric):
        def __init__(self, name="right_ones", **kwargs):
            super().__init__(name=name, **kwargs)
            self.count = self.add_variable(shape=(), name="count", initializer="zeros")

        def update_state(self, y_true, y_pred, sample_weight=None):
            found = tf.reshape(tf.argmax(y_pred, axis=1), (-1, 1))
            wanted = tf.reshape(tf.cast(y_true, "int32"), (-1, 1))
            right = tf.cast(wanted == tf.cast(found, "int32"), "float32")
            if sample_weight is not None:
                right = right * tf.reshape(tf.cast(sample_weight, "float32"), (-1, 1))
            self.count.assign_add(tf.reduce_sum(right))

        def result(self):
            return self.count

        def reset_state(self):
            self.count.assign(0.0)

    found = []
    for which in ("metrics", "weighted_metrics"):
        options = {"optimizer": "sgd", "loss": "sparse_categorical_crossentropy"}
        model = _model(tf, **options, **{which: [RightOnes()]})
        given = {"sample_weight": (Y + 1) * 0.5, "shuffle": False, "verbose": 0}
        found.append(told_of(model.fit(X, Y, batch_size=8, epochs=2, **given)))
    return found


def an_end_point_with_the_loss_in_it(tf):
    class EndPoint(tf.keras.layers.Layer):
        def __init__(self, name=None):
            super().__init__(name=name)
            self.loss_fn = tf.keras.losses.BinaryCrossentropy(from_logits=True)

        def call(self, targets, logits, sample_weights=None):
            self.add_loss(self.loss_fn(targets, logits, sample_weights))
            return tf.nn.softmax(logits)

    inputs, targets = tf.keras.Input((6,), name="inputs"), tf.keras.Input((3,), name="targets")
    logits = tf.keras.layers.Dense(3)(inputs)
    outputs = EndPoint(name="predictions")(targets, logits)
    model = set_weights(tf.keras.Model(inputs=[inputs, targets], outputs=outputs))
    model.compile(optimizer=tf.keras.optimizers.SGD(0.5))
    data = {"inputs": X, "targets": (numbers(30, 3) > 0) * 1.0}
    history = model.fit(data, batch_size=8, epochs=2, shuffle=False, verbose=0)
    return told_of(history), model.get_weights()


def rows_held_out_from_the_end(tf):
    history = _compiled(tf).fit(
        X, Y, batch_size=8, validation_split=0.2, epochs=2, shuffle=False, verbose=0
    )
    return told_of(history)


def datasets(tf):
    training = tf.data.Dataset.from_tensor_slices((X, Y)).batch(8)
    held_out = tf.data.Dataset.from_tensor_slices(HELD_OUT).batch(4)
    found = []
    for data, options in (
        (training, {"epochs": 3}),
        (training.repeat(), {"epochs": 3, "steps_per_epoch": 3}),
        (training, {"validation_data": held_out}),
        (training, {"validation_data": held_out, "validation_steps": 1}),
    ):
        model = _compiled(tf)
        found.append(told_of(model.fit(data, verbose=0, **options)))
    results = dict(zip(model.metrics_names, model.evaluate(held_out, verbose=0), strict=True))
    return found, list(results), np.float32([*results.values()])


def a_dataset_in_python(tf):
    class Rows(tf.keras.utils.PyDataset):
        def __init__(self, x, y, batch_size, **kwargs):
            super().__init__(**kwargs)
            self.x, self.y, self.batch_size = x, y, batch_size

        def __len__(self):
            return -(-len(self.x) // self.batch_size)

        def __getitem__(self, index):
            rows = slice(index * self.batch_size, (index + 1) * self.batch_size)
            return self.x[rows], self.y[rows]

    model, held_out = _compiled(tf), Rows(*HELD_OUT, 4)
    history = model.fit(Rows(X, Y, 8), epochs=2, shuffle=False, validation_data=held_out, verbose=0)
    return told_of(history), np.float32(model.evaluate(held_out, verbose=0))


def classes_and_examples_that_count_more(tf):
    weights = np.ones(30)
    weights[Y == 1] = 2.0
    triples = tf.data.Dataset.from_tensor_slices((X, Y, weights)).batch(8)
    options = {"batch_size": 8, "shuffle": False, "verbose": 0}
    by_class = _compiled(tf).fit(X, Y, class_weight={0: 1.0, 1: 2.0, 2: 1.0}, **options)
    by_example = _compiled(tf).fit(X, Y, sample_weight=weights, **options)
    by_dataset = _compiled(tf).fit(triples, verbose=0)
    return [told_of(history) for history in (by_class, by_example, by_dataset)]


IMAGES, SERIES = numbers(30, 4, 2), numbers(30, 5, 3, phase=0.4)
TARGETS = {"score": X[:, :1] ** 2, "class": numbers(30, 3) ** 2}


def _two_outputs(tf, **options):
    layers = tf.keras.layers
    image = tf.keras.Input(shape=(4, 2), name="image")
    series = tf.keras.Input(shape=(None, 3), name="series")
    found = tf.keras.ops.max(layers.Dense(3)(series), axis=1)
    joined = layers.concatenate([layers.Dense(3)(layers.Flatten()(image)), found])
    score = layers.Dense(1, name="score")(joined)
    kind = layers.Dense(3, activation="softmax", name="class")(joined)
    model = tf.keras.Model(inputs=[image, series], outputs=[score, kind])
    set_weights(model).compile(optimizer=tf.keras.optimizers.SGD(0.1), **options)
    return model


def losses_and_metrics_of_two_outputs(tf):
    losses, metrics = tf.keras.losses, tf.keras.metrics
    squares, many = losses.MeanSquaredError(), losses.CategoricalCrossentropy()

    def measured():
        return [["mse", metrics.BinaryAccuracy()], [metrics.CategoricalAccuracy()]]

    found = []
    for options in (
        {"loss": [squares, many]},
        {"loss": [squares, many], "metrics": measured()},
        {
            "loss": {"score": squares, "class": many},
            "metrics": dict(zip(TARGETS, measured(), strict=True)),
            "loss_weights": {"score": 2.0, "class": 1.0},
        },
        {"loss": [None, many]},
    ):
        model = _two_outputs(tf, **options)
        targets = [*TARGETS.values()]
        history = model.fit([IMAGES, SERIES], targets, batch_size=10, shuffle=False, verbose=0)
        found.append([told_of(history), model.metrics_names, model.get_weights()[-1]])
    return found


def data_of_two_outputs(tf):
    given = {"image": IMAGES, "series": SERIES}
    dataset = tf.data.Dataset.from_tensor_slices((given, TARGETS)).batch(10)
    model = _two_outputs(tf, loss=["mse", "categorical_crossentropy"])
    options = {"shuffle": False, "verbose": 0}
    by_name = model.fit(given, TARGETS, batch_size=10, **options)
    by_dataset = model.fit(dataset, **options)
    predictions = model.predict(given, batch_size=10, verbose=0)
    scores = model.evaluate(dataset, verbose=0, return_dict=True)
    named = [list(scores), np.float32([*scores.values()])]
    return told_of(by_name), told_of(by_dataset), predictions, named


def the_end_of_progress(tf):
    stop = tf.keras.callbacks.EarlyStopping(monitor="val_loss", min_delta=1e-2, patience=2)
    slower = tf.keras.callbacks.ReduceLROnPlateau(min_delta=0.05, patience=1, factor=0.5)
    options = {"batch_size": 8, "validation_split": 0.2, "shuffle": False, "verbose": 0}
    stopped = _compiled(tf).fit(X, Y, epochs=20, callbacks=[stop], **options)
    slowed = _compiled(tf).fit(X, Y, epochs=4, callbacks=[slower], **options)
    return told_of(stopped), stop.stopped_epoch, told_of(slowed)


def losses_of_every_batch(tf):
    class Losses(tf.keras.callbacks.Callback):
        def on_train_begin(self, logs):
            self.seen = []

        def on_batch_end(self, batch, logs):
            self.seen.append(np.float32(logs.get("loss")))

    losses = Losses()
    _compiled(tf).fit(X, Y, batch_size=8, shuffle=False, verbose=0, callbacks=[losses])
    return losses.seen


def weights_of_the_best_epoch(tf):
    ending = ".weights.h5" if tf.__name__ == "tensorflow" else ".safetensors"
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/{{epoch}}-{{loss:.2f}}{ending}"
        keeps = tf.keras.callbacks.ModelCheckpoint(
            path, monitor="val_loss", save_best_only=True, save_weights_only=True
        )
        model = _compiled(tf)
        options = {"batch_size": 8, "shuffle": False, "verbose": 0}
        model.fit(X, Y, epochs=4, validation_split=0.2, callbacks=[keeps], **options)
        files = sorted(Path(folder).iterdir())
        model.load_weights(files[-1])
        names = [file.name.removesuffix(ending) for file in files]
        return names, model.predict(X[:3], verbose=0)


def schedules_by_hand(tf):
    def rate(epoch, now):
        return now if epoch < 2 else now * 0.5

    by_epoch = tf.keras.callbacks.LearningRateScheduler(rate)
    options = {"batch_size": 8, "shuffle": False, "verbose": 0}
    return told_of(_compiled(tf).fit(X, Y, epochs=4, callbacks=[by_epoch], **options))
