"""Keras' guide "Save, serialize, and export models"."""

import tempfile
import zipfile
from pathlib import Path

import numpy as np
from known import numbers, set_weights, told_of

X, Y = numbers(22, 6), numbers(22, 2, phase=0.3)


def _fitted(model):
    return told_of(model.fit(X, Y, batch_size=8, shuffle=False, verbose=0)), model.get_weights()


def _model(tf, units=2):
    inputs = tf.keras.Input(shape=(6,))
    x = tf.keras.layers.Dense(4, activation="tanh", name="one")(inputs)
    return set_weights(tf.keras.Model(inputs, tf.keras.layers.Dense(units, name="last")(x)))


def _reloaded(tf, model, **options):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.keras")
        model.save(path)
        return tf.keras.models.load_model(path, **options)


def a_model_goes_on_where_it_was_saved(tf):
    model = _model(tf)
    rate = tf.keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)
    model.compile(tf.keras.optimizers.SGD(rate, momentum=0.9), "mse", metrics=["mae"])
    first = _fitted(model)
    again = _reloaded(tf, model)
    kept = [np.array_equal(*pair) for pair in zip(model.weights, again.weights, strict=True)]
    return first, kept, int(again.optimizer.iterations), _fitted(again), _fitted(model)


def without_what_it_was_compiled_with(tf):
    model = _model(tf)
    model.compile("adam", "mse")
    again = _reloaded(tf, model, compile=False)
    return model.compiled, again.compiled, again.predict(X, verbose=0)


def classes_and_functions_of_ones_own(tf):
    class Scaled(tf.keras.layers.Layer):
        def __init__(self, factor, **kwargs):
            super().__init__(**kwargs)
            self.factor = factor

        def call(self, inputs):
            return inputs * self.factor

        def get_config(self):
            return {**super().get_config(), "factor": self.factor}

    def squared(x):
        return x**2

    inputs = tf.keras.Input((6,))
    outputs = tf.keras.layers.Dense(3, activation=squared)(Scaled(2.0, name="scaled")(inputs))
    model = set_weights(tf.keras.Model(inputs, outputs))
    known = {"Scaled": Scaled, "squared": squared}
    with tf.keras.utils.custom_object_scope(known):
        scoped = _reloaded(tf, model)
    given = _reloaded(tf, model, custom_objects=known)
    return given.get_layer("scaled").factor, given(X[:2]), scoped(X[:2])


def the_files_inside(tf):
    with tempfile.TemporaryDirectory() as folder:
        _model(tf).save(f"{folder}/model.keras")
        with zipfile.ZipFile(f"{folder}/model.keras") as file:
            return sorted(file.namelist())


def weights_alone(tf):
    model, other = _model(tf), _model(tf)
    model.set_weights([each + 1.0 for each in model.get_weights()])
    with tempfile.TemporaryDirectory() as folder:
        model.save_weights(f"{folder}/kept.weights.h5")
        other.load_weights(f"{folder}/kept.weights.h5")
    return other.get_weights()


def weights_of_layers_between_which_others_are(tf):
    model = _model(tf)
    inputs = tf.keras.Input((6,))
    x = tf.keras.layers.Dropout(0.5)(tf.keras.layers.Dense(4, activation="tanh")(inputs))
    other = tf.keras.Model(inputs, tf.keras.layers.Dense(2)(x))
    other.set_weights(model.get_weights())
    return other.predict(X[:3], verbose=0)


def weights_for_a_part(tf):
    whole = _model(tf)
    part = tf.keras.Model(whole.inputs, whole.get_layer("one").output)
    top = tf.keras.layers.Dense(3)
    joined = tf.keras.Sequential([part, top])
    joined.build((None, 6))
    set_weights(top)
    return joined.predict(X[:3], verbose=0), joined.count_params()


def configurations(tf):
    layer = tf.keras.layers.Dense(3, activation="relu", name="dense")
    again = tf.keras.layers.Dense.from_config({**layer.get_config(), "name": "another"})
    model = tf.keras.models.model_from_json(_model(tf).to_json())
    return layer.get_config(), again.name, [each.name for each in model.layers[1:]]


def copies(tf):
    model = _model(tf)
    model.compile(tf.keras.optimizers.SGD(0.1), "mse", metrics=["mae"])
    first = _fitted(model)
    copy = set_weights(tf.keras.models.clone_model(model))
    return first, _fitted(copy), int(copy.optimizer.iterations)
