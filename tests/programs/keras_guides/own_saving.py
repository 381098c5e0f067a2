"""Keras' guide "Customizing Saving and Serialization"."""

import tempfile
from pathlib import Path

import numpy as np
from known import numbers, set_weights, told_of

X, Y = numbers(22, 6), np.eye(4, dtype=np.float32)[np.arange(22) % 4]


def _reloaded(tf, model, *known):
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model.keras")
        names = {each.__name__: each for each in known}
        return tf.keras.models.load_model(f"{folder}/model.keras", custom_objects=names)


def what_a_layer_is_built_with(tf):
    class Starting(tf.keras.layers.Layer):
        def __init__(self, units, **kwargs):
            super().__init__(**kwargs)
            self.units = units

        def build(self, input_shape, first):
            self.shape, self.first = tuple(input_shape), first
            self.w = self.add_weight(shape=(input_shape[-1], self.units), initializer=first)

        def call(self, inputs):
            return tf.matmul(inputs, self.w)

        def get_config(self):
            return {**super().get_config(), "units": self.units}

        def get_build_config(self):
            return {"input_shape": self.shape, "first": self.first}

        def build_from_config(self, config):
            self.build(config["input_shape"], config["first"])

    layer = Starting(3)
    layer.build((None, 6), first="ones")
    config = tf.keras.utils.serialize_keras_object(layer)
    again = tf.keras.utils.deserialize_keras_object(config, custom_objects={"Starting": Starting})
    return config["build_config"], again.built, again(tf.constant(X[:2]))


def more_than_variables(tf):
    class Noted(tf.keras.layers.Dense):
        def save_own_variables(self, store):
            super().save_own_variables(store)
            store["notes"] = self.notes

        def load_own_variables(self, store):
            self.notes = np.array(store["notes"])
            for i, weight in enumerate(self.weights):
                weight.assign(store[f"{i}"])

    model = set_weights(tf.keras.Sequential([tf.keras.Input((6,)), Noted(2)]))
    model.layers[0].notes = numbers(3)
    again = _reloaded(tf, model, Noted)
    return again.layers[0].notes, again.predict(X[:3], verbose=0)


def files_of_a_layer(tf):
    class Words(tf.keras.layers.Layer):
        def __init__(self, words=(), **kwargs):
            super().__init__(**kwargs)
            self.words = words

        def call(self, inputs):
            return inputs * float(len(self.words))

        def save_assets(self, folder):
            Path(folder, "words.txt").write_text("\n".join(self.words), encoding="utf-8")

        def load_assets(self, folder):
            self.words = Path(folder, "words.txt").read_text(encoding="utf-8").split("\n")

        def get_config(self):
            return super().get_config()

    model = tf.keras.Sequential([tf.keras.Input((6,)), Words(["a", "b", "c"])])
    again = _reloaded(tf, model, Words)
    return again.layers[0].words, again(X[:1])


def what_a_model_is_compiled_with(tf):
    class Rated(tf.keras.Model):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.one = tf.keras.layers.Dense(8, activation="relu")
            self.last = tf.keras.layers.Dense(4, activation="softmax")

        def call(self, inputs):
            return self.last(self.one(inputs))

        def compile(self, rated, loss_fn, metrics):
            super().compile(optimizer=rated, loss=loss_fn, metrics=metrics)
            self.given = {"rated": rated, "loss_fn": loss_fn, "metrics": metrics}

        def get_compile_config(self):
            return self.given

        def compile_from_config(self, config):
            self.compile(
                **{
                    name: tf.keras.utils.deserialize_keras_object(each)
                    for name, each in config.items()
                }
            )

    def squares(y_true, y_pred):
        return tf.reduce_sum(tf.square(y_true - y_pred), -1)

    model = Rated()
    model(X)
    set_weights(model)
    model.compile(tf.keras.optimizers.SGD(0.1), squares, ["accuracy"])
    first = told_of(model.fit(X, Y, batch_size=8, shuffle=False, verbose=0))
    again = _reloaded(tf, model, Rated, squares)
    second = told_of(again.fit(X, Y, batch_size=8, shuffle=False, verbose=0))
    return first, second, again.loss is squares
