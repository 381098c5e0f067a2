"""Keras' guide "Customizing what happens in fit() with TensorFlow"."""

import numpy as np
from known import numbers, set_weights, told_of

X, Y = numbers(22, 6), numbers(22, 1, phase=0.3)
WEIGHTS = np.linspace(0.2, 1.8, 22, dtype=np.float32)[:, np.newaxis]


def _of(tf, kind):
    inputs = tf.keras.Input(shape=(6,))
    return set_weights(kind(inputs, tf.keras.layers.Dense(1)(inputs)))


def _fitted(tf, model, *data, **options):
    history = model.fit(*data, batch_size=8, epochs=2, shuffle=False, verbose=0, **options)
    return told_of(history), model.get_weights()


def _stepping(tf):
    class Steps(tf.keras.Model):
        def train_step(self, data):
            x, y, *weights = data
            weights = weights[0] if weights else None
            with tf.GradientTape() as tape:
                y_pred = self(x, training=True)
                loss = self.compute_loss(y=y, y_pred=y_pred, sample_weight=weights)
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply(gradients, self.trainable_variables)
            for metric in self.metrics:
                if metric.name == "loss":
                    metric.update_state(loss)
                else:
                    metric.update_state(y, y_pred, sample_weight=weights)
            return {metric.name: metric.result() for metric in self.metrics}

    return Steps


def a_step_with_the_compiled_loss(tf):
    model = _of(tf, _stepping(tf))
    model.compile(optimizer=tf.keras.optimizers.Adam(0.01), loss="mse", metrics=["mse"])
    return _fitted(tf, model, X, Y)


def a_step_with_weights(tf):
    model = _of(tf, _stepping(tf))
    model.compile(optimizer=tf.keras.optimizers.SGD(0.1), loss="mse", weighted_metrics=["mse"])
    by_example = _fitted(tf, model, X, Y, sample_weight=WEIGHTS)
    kinds = (Y > 0).astype(np.int32)
    return by_example, _fitted(tf, model, X, kinds, class_weight={0: 1.0, 1: 3.0})


def a_step_with_a_loss_and_metrics_of_its_own(tf):
    class Lower(tf.keras.Model):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.seen = tf.keras.metrics.Mean(name="loss")
            self.errors = tf.keras.metrics.MeanSquaredError(name="errors")
            self.loss_fn = tf.keras.losses.MeanSquaredError()

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                y_pred = self(x, training=True)
                loss = self.loss_fn(y, y_pred)
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply(gradients, self.trainable_variables)
            self.seen.update_state(loss)
            self.errors.update_state(y, y_pred)
            return {"loss": self.seen.result(), "errors": self.errors.result()}

        @property
        def metrics(self):
            return [self.seen, self.errors]

    model = _of(tf, Lower)
    model.compile(optimizer=tf.keras.optimizers.SGD(0.1))
    return _fitted(tf, model, X, Y)


def an_evaluation_step(tf):
    class Tests(tf.keras.Model):
        def test_step(self, data):
            x, y = data
            y_pred = self(x, training=False)
            loss = self.compute_loss(y=y, y_pred=y_pred)
            for metric in self.metrics:
                if metric.name == "loss":
                    metric.update_state(loss)
                else:
                    metric.update_state(y, y_pred)
            return {metric.name: metric.result() for metric in self.metrics}

    model = _of(tf, Tests)
    model.compile(loss="mse", metrics=["mse"])
    return np.float32(model.evaluate(X, Y, batch_size=11, verbose=0))


def a_generator_against_a_discriminator(tf):
    layers, keras = tf.keras.layers, tf.keras

    class Game(keras.Model):
        def __init__(self, discriminator, generator):
            super().__init__()
            self.discriminator, self.generator = discriminator, generator
            self.d_seen = keras.metrics.Mean(name="d_loss")
            self.g_seen = keras.metrics.Mean(name="g_loss")
            self.seeds = keras.random.SeedGenerator(1337)

        @property
        def metrics(self):
            return [self.d_seen, self.g_seen]

        def compile(self, d_optimizer, g_optimizer, loss_fn):
            super().compile()
            self.d_optimizer, self.g_optimizer = d_optimizer, g_optimizer
            self.loss_fn = loss_fn

        def train_step(self, real):
            size = tf.shape(real)[0]
            drawn = keras.random.normal(shape=(size, 2), seed=self.seeds)
            both = tf.concat([self.generator(drawn), real], axis=0)
            kinds = tf.concat([tf.ones((size, 1)), tf.zeros((size, 1))], axis=0) * 0.95
            with tf.GradientTape() as tape:
                d_loss = self.loss_fn(kinds, self.discriminator(both))
            slopes = tape.gradient(d_loss, self.discriminator.trainable_weights)
            self.d_optimizer.apply(slopes, self.discriminator.trainable_weights)
            with tf.GradientTape() as tape:
                drawn = keras.random.normal(shape=(size, 2), seed=self.seeds)
                judged = self.discriminator(self.generator(drawn))
                g_loss = self.loss_fn(tf.zeros((size, 1)), judged)
            slopes = tape.gradient(g_loss, self.generator.trainable_weights)
            self.g_optimizer.apply(slopes, self.generator.trainable_weights)
            self.d_seen.update_state(d_loss)
            self.g_seen.update_state(g_loss)
            return {"d_loss": self.d_seen.result(), "g_loss": self.g_seen.result()}

    judge = [keras.Input((6,)), layers.Dense(4, activation="tanh"), layers.Dense(1)]
    maker = [keras.Input((2,)), layers.Dense(4, activation="tanh"), layers.Dense(6)]
    game = Game(*(set_weights(keras.Sequential(each)) for each in (judge, maker)))
    game.compile(
        d_optimizer=keras.optimizers.Adam(learning_rate=0.01),
        g_optimizer=keras.optimizers.SGD(learning_rate=0.1),
        loss_fn=keras.losses.BinaryCrossentropy(from_logits=True),
    )
    history = game.fit(tf.data.Dataset.from_tensor_slices(X).batch(8), epochs=2, verbose=0)
    return told_of(history), game.discriminator.get_weights(), game.generator.get_weights()
