"""Keras' guide "Transfer learning & fine-tuning"."""

import tempfile
import warnings

import numpy as np
from guides import error_of
from known import labels, numbers, set_weights, told_of

X, Y = numbers(22, 6), labels(22, 2)


def _base(tf):
    layers = tf.keras.layers
    inputs = tf.keras.Input((6,))
    x = layers.Dense(8, activation="relu")(inputs)
    scaled = layers.BatchNormalization()
    outputs = layers.Dense(4, activation="tanh")(scaled(x))
    model = set_weights(tf.keras.Model(inputs, outputs, name="base"))
    scaled.set_weights([np.abs(each) for each in scaled.get_weights()])
    return model


def _counts(layer):
    kinds = (layer.weights, layer.trainable_weights, layer.non_trainable_weights)
    return [len(each) for each in kinds]


def what_can_be_trained(tf):
    told = []
    for layer in (tf.keras.layers.Dense(3), tf.keras.layers.BatchNormalization()):
        layer.build((None, 4))
        told.append(_counts(layer))
        layer.trainable = False
        told.append(_counts(layer))
    return told


def freezing_reaches_what_is_inside(tf):
    base = _base(tf)
    model = tf.keras.Sequential([base, tf.keras.layers.Dense(1)])
    model.build((None, 6))
    base.trainable = False
    frozen = [base.layers[1].trainable, *_counts(model)]
    base.layers[-1].trainable = True  # Alone it does nothing, in what is frozen.
    thawed = _counts(model)
    base.trainable = True
    return frozen, thawed, _counts(model)


def frozen_normalization_keeps_its_statistics(tf):
    layer = tf.keras.layers.BatchNormalization()
    layer.build((None, 6))
    layer.trainable = False
    outputs = layer(tf.constant(X[:4]), training=True)
    return outputs, layer.get_weights()


def a_new_top_and_then_all(tf):
    base = _base(tf)
    base.trainable = False
    inputs = tf.keras.Input((6,))
    x = tf.keras.layers.Rescaling(0.5, offset=-0.1)(inputs)
    top = tf.keras.layers.Dense(1)
    model = tf.keras.Model(inputs, top(base(x, training=False)))
    set_weights(top)
    loss = tf.keras.losses.BinaryCrossentropy(from_logits=True)
    told = []
    for rate in (0.1, 0.01):
        model.compile(tf.keras.optimizers.SGD(rate), loss, metrics=["binary_accuracy"])
        history = model.fit(X, Y, batch_size=8, epochs=2, shuffle=False, verbose=0)
        told += [told_of(history), model.get_weights()]
        base.trainable = True
        base.layers[2].trainable = False
    return told


def features_of_a_layer(tf):
    base = _base(tf)
    features = tf.keras.Model(base.inputs, [each.output for each in base.layers[1:]])
    features.trainable = False
    return features.predict(X[:3], verbose=0), _counts(base)


def weights_that_do_not_fit(tf):
    def model(*units):
        layers = [tf.keras.layers.Dense(each) for each in units]
        return set_weights(tf.keras.Sequential([tf.keras.Input((6,)), *layers]))

    other, same = model(3, 5), model(3, 2)
    other.set_weights([each - 1.0 for each in other.get_weights()])
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model(3, 2).save_weights(f"{folder}/kept.weights.h5")
        refused = error_of(other.load_weights, f"{folder}/kept.weights.h5")
        other.load_weights(f"{folder}/kept.weights.h5", skip_mismatch=True)
        same.set_weights([np.zeros_like(each) for each in same.get_weights()])
        same.load_weights(f"{folder}/kept.weights.h5", objects_to_skip=[same.layers[0]])
    return refused, len(seen) > 0, other.get_weights(), same.get_weights()
