"""Keras' guide "Understanding masking & padding", with attention instead of recurrent layers."""

import numpy as np
from known import numbers, set_weights, told_of

WORDS = np.array([[7, 6, 1, 0, 0], [3, 8, 2, 5, 9], [4, 0, 0, 0, 0], [1, 6, 4, 5, 0]], np.int32)
WIDE = np.concatenate([WORDS, WORDS[::-1], WORDS[1:]])
Y = numbers(11, 1)
STEPS = numbers(11, 5, 3) * (WIDE != 0)[..., np.newaxis]


def padding(tf):
    rows = [[711, 632, 71], [73, 8, 3215, 55, 927], [83, 91]]
    pad = tf.keras.utils.pad_sequences
    return pad(rows, padding="post"), pad(rows, maxlen=3, truncating="post", value=-1.0)


def _embedding(tf):
    layer = tf.keras.layers.Embedding(10, 4, mask_zero=True)
    layer.build((None, 5))
    return set_weights(layer)


def where_masks_come_from(tf):
    by_embedding = _embedding(tf)(WORDS)
    by_values = tf.keras.layers.Masking()(STEPS[:3])
    return by_embedding._keras_mask, by_values._keras_mask


def attention_to_what_is_there(tf):
    inputs = tf.keras.Input((5,), dtype="int32")
    x = tf.keras.layers.Embedding(10, 4, mask_zero=True)(inputs)
    x = tf.keras.layers.MultiHeadAttention(2, 3)(x, x)
    x = tf.keras.layers.GlobalAveragePooling1D()(x)
    model = set_weights(tf.keras.Model(inputs, tf.keras.layers.Dense(1)(x)))
    model.compile(tf.keras.optimizers.SGD(0.1), "mse")
    history = model.fit(WIDE, Y, batch_size=4, shuffle=False, verbose=0)
    return told_of(history), model.get_weights()


def a_mask_by_hand(tf):
    embedding = _embedding(tf)
    mask = embedding.compute_mask(WORDS)
    return tf.keras.layers.GlobalAveragePooling1D()(numbers(4, 5, 3), mask=mask)


def a_layer_that_changes_masks(tf):
    class Halves(tf.keras.layers.Layer):
        def call(self, inputs):
            return tf.split(inputs, [2, 3], axis=1)

        def compute_mask(self, inputs, mask=None):
            return None if mask is None else tf.split(mask, [2, 3], axis=1)

    halves = Halves()(_embedding(tf)(WORDS))
    return [[each, each._keras_mask] for each in halves]


def layers_that_carry_masks_and_one_that_reads_them(tf):
    class Shares(tf.keras.layers.Layer):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.supports_masking = True

        def call(self, inputs, mask=None):
            there = tf.cast(tf.expand_dims(mask, -1), inputs.dtype)
            each = tf.exp(inputs) * there
            return each / tf.reduce_sum(each, axis=1, keepdims=True)

    inputs = tf.keras.Input((5,), dtype="int32")
    x = tf.keras.layers.Embedding(10, 4, mask_zero=True)(inputs)
    x = tf.keras.layers.Dropout(0.0)(tf.keras.layers.Dense(1)(x))
    model = set_weights(tf.keras.Model(inputs, Shares()(x)))
    return model.predict(WORDS, verbose=0)


def masks_in_losses(tf):
    layers = [
        tf.keras.Input((5, 3)),
        tf.keras.layers.Masking(),
        tf.keras.layers.TimeDistributed(tf.keras.layers.Dense(2, activation="tanh")),
    ]
    model = set_weights(tf.keras.Sequential(layers))
    model.compile(tf.keras.optimizers.SGD(0.1), "mse", metrics=["mae"])
    history = model.fit(STEPS, numbers(11, 5, 2), batch_size=11, shuffle=False, verbose=0)
    return told_of(history), model.get_weights()
