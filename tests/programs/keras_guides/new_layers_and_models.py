"""Keras' guide "Making new layers and models via subclassing"."""

import numpy as np
from known import numbers, set_weights, told_of

X = numbers(22, 6)


def weights_from_the_start(tf):
    class Linear(tf.keras.layers.Layer):
        def __init__(self, units, width):
            super().__init__()
            shape = (width, units)
            self.w = self.add_weight(shape=shape, initializer="random_normal", trainable=True)
            self.b = self.add_weight(shape=(units,), initializer="zeros", trainable=True)

        def call(self, inputs):
            return tf.matmul(inputs, self.w) + self.b

    layer = set_weights(Linear(4, 6))
    same = [each is own for each, own in zip(layer.weights, [layer.w, layer.b], strict=True)]
    return layer(tf.constant(X[:2])), same, len(layer.trainable_weights)


def weights_that_are_not_trained(tf):
    class Sums(tf.keras.layers.Layer):
        def __init__(self, width):
            super().__init__()
            self.total = self.add_weight(initializer="zeros", shape=(width,), trainable=False)

        def call(self, inputs):
            self.total.assign_add(tf.reduce_sum(inputs, axis=0))
            return self.total

    layer = Sums(6)
    sums = [np.array(layer(tf.constant(X[rows]))) for rows in (slice(2), slice(2, 5))]
    counts = [layer.weights, layer.trainable_weights, layer.non_trainable_weights]
    return sums, [len(each) for each in counts]


def _linear(tf):
    class Linear(tf.keras.layers.Layer):
        def __init__(self, units=32, **kwargs):
            super().__init__(**kwargs)
            self.units = units

        def build(self, input_shape):
            shape = (input_shape[-1], self.units)
            self.w = self.add_weight(shape=shape, initializer="random_normal", name="w")
            self.b = self.add_weight(shape=(self.units,), initializer="zeros", name="b")

        def call(self, inputs):
            return tf.matmul(inputs, self.w) + self.b

    return Linear


def weights_with_the_first_input(tf):
    layer = _linear(tf)(4, name="linear")
    before = [layer.built, len(layer.weights)]
    layer(tf.ones((1, 6)))
    shapes = [list(weight.shape) for weight in layer.weights]
    return before, layer.built, shapes, set_weights(layer)(tf.constant(X[:2])), layer.name


def layers_of_layers(tf):
    linear = _linear(tf)

    class Block(tf.keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.third = linear(5), linear(4), linear(1)

        def call(self, inputs):
            hidden = tf.keras.activations.relu(self.first(inputs))
            return self.third(tf.nn.relu(self.second(hidden)))

    block = Block()
    block(tf.ones((3, 6)))
    counts = [len(block.weights), len(block.trainable_weights)]
    model = tf.keras.Sequential([tf.keras.Input((6,)), set_weights(block)])
    model.compile(optimizer=tf.keras.optimizers.SGD(0.1), loss="mse")
    history = model.fit(X, X[:, :1], batch_size=8, epochs=2, shuffle=False, verbose=0)
    return counts, told_of(history), model.get_weights()


def penalties_of_inner_layers(tf):
    class Outer(tf.keras.layers.Layer):
        def __init__(self):
            super().__init__()
            penalty = tf.keras.regularizers.l2(1e-3)
            self.dense = tf.keras.layers.Dense(3, kernel_regularizer=penalty)

        def call(self, inputs):
            return self.dense(inputs)

    layer = Outer()
    before = len(layer.losses)
    layer(tf.zeros((1, 6)))
    set_weights(layer)
    model = tf.keras.Sequential([tf.keras.Input((6,)), layer])
    model.compile(optimizer=tf.keras.optimizers.SGD(0.1), loss="mse")
    history = model.fit(X, X[:, :3], batch_size=8, shuffle=False, verbose=0)
    return before, [np.array(each) for each in layer.losses], told_of(history)


def penalties_on_what_a_layer_gives(tf):
    class Activity(tf.keras.layers.Layer):
        def __init__(self, rate=1e-2):
            super().__init__()
            self.rate = rate

        def call(self, inputs):
            self.add_loss(self.rate * tf.reduce_mean(tf.square(inputs)))
            return inputs

    class Outer(tf.keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.inner = Activity(0.3)

        def call(self, inputs):
            return self.inner(inputs)

    outer = Outer()
    counts = [len(outer.losses)]
    for _ in range(2):
        outer(tf.ones((1, 6)))
        counts.append(len(outer.losses))
    inputs = tf.keras.Input((6,))
    model = tf.keras.Model(inputs, Outer()(tf.keras.layers.Dense(3)(inputs)))
    set_weights(model)
    found = []
    for options in ({}, {"loss": "mse"}, {}):  # The last one keeps the loss.
        model.compile(optimizer=tf.keras.optimizers.SGD(0.1), **options)
        targets = X[:, :3] if found else None
        history = model.fit(X, targets, batch_size=8, shuffle=False, verbose=0)
        found.append(told_of(history))
    return counts, np.array(outer.losses[0]), found, model.get_weights()


def a_layer_that_acts_otherwise_in_training(tf):
    class Doubles(tf.keras.layers.Layer):
        def call(self, inputs, training=False):
            return inputs * 2.0 if training else inputs

    inputs = tf.keras.Input((6,))
    model = tf.keras.Model(inputs, Doubles()(tf.keras.layers.Dense(1)(inputs)))
    set_weights(model).compile(optimizer=tf.keras.optimizers.SGD(0.1), loss="mse")
    history = model.fit(
        X, X[:, :1], batch_size=8, epochs=2, shuffle=False, validation_split=0.3, verbose=0
    )
    given = X[:2]
    return told_of(history), [model(given), model(given, training=True)]


def a_layer_that_drops(tf):
    class Drops(tf.keras.layers.Layer):
        def __init__(self, rate, **kwargs):
            super().__init__(**kwargs)
            self.rate, self.seeds = rate, tf.keras.random.SeedGenerator(7)

        def call(self, inputs, training=None):
            if training:
                return tf.keras.random.dropout(inputs, rate=self.rate, seed=self.seeds)
            return inputs

    model = tf.keras.Sequential([tf.keras.Input((6,)), Drops(0.3), tf.keras.layers.Dense(1)])
    set_weights(model).compile(optimizer=tf.keras.optimizers.SGD(0.1), loss="mse")
    history = model.fit(X, X[:, :1], batch_size=8, epochs=2, shuffle=False, verbose=0)
    return told_of(history), model.predict(X[:3], verbose=0), len(model.weights)


def _autoencoder(tf):
    layers = tf.keras.layers

    class Sampling(layers.Layer):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.seeds = tf.keras.random.SeedGenerator(1337)

        def call(self, inputs):
            mean, log_variance = inputs
            drawn = tf.keras.random.normal(shape=tf.shape(mean), seed=self.seeds)
            return mean + tf.exp(0.5 * log_variance) * drawn

    class Encoder(layers.Layer):
        def __init__(self, code, hidden, name="encoder", **kwargs):
            super().__init__(name=name, **kwargs)
            self.hidden = layers.Dense(hidden, activation="tanh")
            self.mean, self.log_variance = layers.Dense(code), layers.Dense(code)
            self.sampling = Sampling()

        def call(self, inputs):
            hidden = self.hidden(inputs)
            mean, log_variance = self.mean(hidden), self.log_variance(hidden)
            return mean, log_variance, self.sampling((mean, log_variance))

    class Autoencoder(tf.keras.Model):
        def __init__(self, width, hidden=5, code=2, name="autoencoder", **kwargs):
            super().__init__(name=name, **kwargs)
            self.encoder = Encoder(code, hidden)
            self.decoder = tf.keras.Sequential(
                [layers.Dense(hidden, activation="tanh"), layers.Dense(width)]
            )

        def call(self, inputs):
            mean, log_variance, code = self.encoder(inputs)
            squares = tf.square(mean) + tf.exp(log_variance)
            self.add_loss(0.5 * tf.reduce_mean(squares - log_variance - 1.0))
            return self.decoder(code)

    model = Autoencoder(6)
    model(tf.zeros((1, 6)))
    return set_weights(model)


def a_variational_autoencoder(tf):
    model = _autoencoder(tf)
    adam = tf.keras.optimizers.Adam(learning_rate=0.01)
    model.compile(adam, loss=tf.keras.losses.MeanSquaredError())
    history = model.fit(X, X, epochs=2, batch_size=8, shuffle=False, verbose=0)
    names = [model.name, *(layer.name for layer in model.layers[:1])]
    return told_of(history), names, len(model.trainable_weights), model.get_weights()
