"""TensorFlow's guide "Basic training loops"."""

import numpy as np

X = np.linspace(-2, 2, 201, dtype=np.float32)
Y = 3.0 * X + 2.0 + np.sin(40 * X).astype(np.float32)


def loss_of(tf, target, predicted):
    return tf.reduce_mean(tf.square(target - predicted))


def a_linear_model(tf):
    class Linear(tf.Module):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.w, self.b = tf.Variable(5.0), tf.Variable(0.0)

        def __call__(self, x):
            return self.w * x + self.b

    model, seen = Linear(), []
    for _ in range(10):
        with tf.GradientTape() as tape:
            loss = loss_of(tf, Y, model(X))
        dw, db = tape.gradient(loss, [model.w, model.b])
        model.w.assign_sub(0.1 * dw)
        model.b.assign_sub(0.1 * db)
        seen.append([model.w.numpy(), model.b.numpy(), loss_of(tf, Y, model(X))])
    return seen


def the_same_with_keras(tf):
    class Linear(tf.keras.Model):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.w = self.add_weight(shape=(), initializer="ones", name="w")
            self.b = self.add_weight(shape=(), initializer="zeros", name="b")

        def call(self, x):
            return self.w * x + self.b

    model = Linear()
    model.compile(
        run_eagerly=False,
        optimizer=tf.keras.optimizers.SGD(learning_rate=0.1),
        loss=tf.keras.losses.MeanSquaredError(),
    )
    history = model.fit(X, Y, epochs=5, batch_size=100, shuffle=False, verbose=0)
    losses = [np.float32(each) for each in history.history["loss"]]
    return [losses, model.w.numpy(), model.b.numpy()]
