"""Keras' guide "Writing a training loop from scratch in TensorFlow", for any strategy."""

import numpy as np
from known import labels, numbers, set_weights

X, Y = numbers(22, 6), labels(22, 3)
BATCH = 8


def _model(tf, *between):
    inputs = tf.keras.Input(shape=(6,), name="digits")
    hidden = tf.keras.layers.Dense(5, activation="tanh")(inputs)
    for layer in between:
        hidden = layer(hidden)
    outputs = tf.keras.layers.Dense(3, name="predictions")(hidden)
    return set_weights(tf.keras.Model(inputs=inputs, outputs=outputs))


def _shares(tf, *columns):
    dataset = tf.data.Dataset.from_tensor_slices(columns).batch(BATCH)
    return tf.distribute.get_strategy().experimental_distribute_dataset(dataset)


def _loss(tf, labels, logits, examples):
    each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return tf.nn.compute_average_loss(each, global_batch_size=examples)


def _sum(tf, values):
    strategy = tf.distribute.get_strategy()
    return strategy.reduce(tf.distribute.ReduceOp.SUM, values, axis=None)


def _loop(tf, decorate):
    strategy, keras = tf.distribute.get_strategy(), tf.keras
    model, adam = _model(tf), keras.optimizers.Adam(learning_rate=0.01)
    right = keras.metrics.SparseCategoricalAccuracy()
    held_out = keras.metrics.SparseCategoricalAccuracy()

    def train(x, y):
        with tf.GradientTape() as tape:
            logits = model(x, training=True)
            loss = _loss(tf, y, logits, BATCH)
        adam.apply(tape.gradient(loss, model.trainable_weights), model.trainable_weights)
        right.update_state(y, logits)
        return loss

    def test(x, y):
        held_out.update_state(y, model(x, training=False))

    @decorate
    def train_step(x, y):
        return _sum(tf, strategy.run(train, args=(x, y)))

    @decorate
    def test_step(x, y):
        strategy.run(test, args=(x, y))

    seen = []
    for _ in range(2):
        losses = [np.float32(train_step(x, y)) for x, y in _shares(tf, X, Y)]
        for x, y in _shares(tf, X[:5], Y[:5]):
            test_step(x, y)
        seen.append([losses, np.float32(right.result()), np.float32(held_out.result())])
        right.reset_state()
        held_out.reset_state()
    return seen, model.get_weights()


def a_loop_of_eager_steps(tf):
    return _loop(tf, lambda function: function)


def a_loop_of_recorded_steps(tf):
    return _loop(tf, tf.function)


def a_generator_against_a_discriminator(tf):
    strategy, keras = tf.distribute.get_strategy(), tf.keras
    dense = keras.layers.Dense
    judge = [keras.Input((6,)), dense(4, activation="tanh"), dense(1)]
    maker = [keras.Input((2,)), dense(4, activation="tanh"), dense(6)]
    judge, maker = (set_weights(keras.Sequential(each)) for each in (judge, maker))
    d_optimizer, g_optimizer = keras.optimizers.Adam(0.01), keras.optimizers.SGD(0.1)

    def loss_of(kinds, judged):
        each = tf.nn.sigmoid_cross_entropy_with_logits(labels=kinds, logits=judged)
        return tf.nn.compute_average_loss(each, global_batch_size=BATCH)

    def step(real):
        drawn = tf.sin(7.0 * real[:, :2])  # What a guide draws at random.
        made = maker(drawn)
        ones, zeros = tf.ones((real.shape[0], 1)), tf.zeros((real.shape[0], 1))
        with tf.GradientTape() as tape:
            judged = judge(tf.concat([made, real], axis=0))
            d_loss = loss_of(tf.concat([ones, zeros], axis=0), judged)
        slopes = tape.gradient(d_loss, judge.trainable_weights)
        d_optimizer.apply(slopes, judge.trainable_weights)
        with tf.GradientTape() as tape:
            g_loss = loss_of(zeros, judge(maker(-drawn)))
        slopes = tape.gradient(g_loss, maker.trainable_weights)
        g_optimizer.apply(slopes, maker.trainable_weights)
        return d_loss, g_loss

    @tf.function
    def train_step(real):
        return [_sum(tf, each) for each in strategy.run(step, args=(real,))]

    seen = [[np.float32(each) for each in train_step(real)] for (real,) in _shares(tf, X)]
    return seen, judge.get_weights(), maker.get_weights()


def losses_that_layers_add(tf):
    class Activity(tf.keras.layers.Layer):
        def call(self, inputs):
            self.add_loss(1e-2 * tf.reduce_sum(inputs**2) / BATCH)
            return inputs

    strategy, model = tf.distribute.get_strategy(), _model(tf, Activity())
    adam = tf.keras.optimizers.Adam(learning_rate=0.01)

    def train(x, y):
        with tf.GradientTape() as tape:
            logits = model(x, training=True)
            loss = _loss(tf, y, logits, BATCH) + sum(model.losses)
        adam.apply(tape.gradient(loss, model.trainable_weights), model.trainable_weights)
        return loss

    @tf.function
    def train_step(x, y):
        return _sum(tf, strategy.run(train, args=(x, y)))

    return [np.float32(train_step(x, y)) for x, y in _shares(tf, X, Y)], model.get_weights()
