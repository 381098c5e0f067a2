"""Keras' example "Text classification with Transformer", and a model of the next word."""

import numpy as np
from known import labels, numbers, set_weights, told_of

WORDS = np.arange(22 * 6).reshape(22, 6) * 7 % 20
Y = labels(22, 2)


def _fitted(tf, model, x, y, **options):
    loss = tf.keras.losses.SparseCategoricalCrossentropy()
    model.compile(tf.keras.optimizers.SGD(0.1), loss, metrics=["accuracy"])
    history = model.fit(x, y, batch_size=11, shuffle=False, verbose=0, **options)
    return told_of(history), model.predict(x[:2], verbose=0)


def _embedded(tf):
    layers = tf.keras.layers

    class Embedded(layers.Layer):
        def __init__(self):
            super().__init__()
            self.words, self.places = layers.Embedding(20, 8), layers.Embedding(6, 8)

        def call(self, inputs):
            places = tf.keras.ops.arange(0, tf.keras.ops.shape(inputs)[-1], 1)
            return self.words(inputs) + self.places(places)

    return Embedded()


def a_block_as_a_layer(tf):
    layers = tf.keras.layers

    class Block(layers.Layer):
        def __init__(self):
            super().__init__()
            self.attention = layers.MultiHeadAttention(num_heads=2, key_dim=4)
            self.dense = tf.keras.Sequential([layers.Dense(16, activation="relu"), layers.Dense(8)])
            self.first = layers.LayerNormalization(epsilon=1e-3)
            self.last = layers.LayerNormalization(epsilon=1e-3)

        def call(self, inputs):
            x = self.first(inputs + self.attention(inputs, inputs))
            return self.last(x + self.dense(x))

    inputs = tf.keras.Input((6,))
    x = layers.GlobalAveragePooling1D()(Block()(_embedded(tf)(inputs)))
    model = set_weights(tf.keras.Model(inputs, layers.Dense(2, activation="softmax")(x)))
    return _fitted(tf, model, WORDS, Y, validation_data=(WORDS[:7], Y[:7])), model.count_params()


def the_next_word(tf):
    layers = tf.keras.layers
    inputs = tf.keras.Input((5,))
    x = _embedded(tf)(inputs)
    x = layers.LayerNormalization(epsilon=1e-3)(
        x + layers.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True)
    )
    model = set_weights(tf.keras.Model(inputs, layers.Dense(20, activation="softmax")(x)))
    return _fitted(tf, model, WORDS[:, :-1], WORDS[:, 1:])


def what_is_attended_to(tf):
    layer = tf.keras.layers.MultiHeadAttention(2, 3)
    query, value = numbers(2, 4, 6), numbers(2, 5, 6, phase=0.2)
    layer.build(query.shape, value.shape)
    set_weights(layer)
    return layer(query, value, return_attention_scores=True)
