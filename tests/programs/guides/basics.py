"""TensorFlow's guide "Basics": tensors, variables, tapes, functions, modules, a first training."""

import numpy as np

X = np.linspace(-2, 2, 41, dtype=np.float32)
Y = X**2 + 0.5 * X - 0.25 + 0.1 * np.sin(17 * X).astype(np.float32)


def tensors(tf):
    x = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    return {
        "shape": tuple(x.shape),
        "dtype": x.dtype == tf.float32,
        "sum": x + x,
        "times five": 5 * x,
        "product": x @ tf.transpose(x),
        "joined": tf.concat([x, x, x], axis=0),
        "softmax": tf.nn.softmax(x, axis=-1),
        "total": tf.reduce_sum(x),
        "from a list": tf.convert_to_tensor([1, 2, 3]),
        "a list taken for a tensor": tf.reduce_sum([1, 2, 3]),
    }


def variables(tf):
    variable = tf.Variable([0.0, 0.0, 0.0])
    variable.assign([1, 2, 3])
    variable.assign_add([1, 1, 1])
    return {"value": variable, "dtype": variable.dtype == tf.float32}


def differentiation(tf):
    x = tf.Variable(1.0)

    def f(x):
        return x**2 + 2 * x - 5

    with tf.GradientTape() as tape:
        y = f(x)
    return {"f": f(x), "slope": tape.gradient(y, x)}


def functions(tf):
    traced = []

    @tf.function
    def total(x):
        traced.append(tuple(x.shape))
        return tf.reduce_sum(x)

    values = [total(tf.constant(each)) for each in ([1, 2, 3], [10, 9, 8], [1, 1])]
    values.append(total(tf.constant([10.0, 9.1, 8.2])))
    return {"values": values, "traced": len(traced)}


def a_module(tf):
    class Scaled(tf.Module):
        def __init__(self, value):
            super().__init__()
            self.weight = tf.Variable(value)

        @tf.function
        def multiply(self, x):
            return x * self.weight

    module = Scaled(3)
    return [module.multiply(tf.constant([1, 2, 3])), len(module.variables)]


def a_training_loop(tf):
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.hidden = tf.Variable(np.linspace(-1, 1, 8, dtype=np.float32).reshape(1, 8))
            self.bias = tf.Variable(np.linspace(1, -1, 8, dtype=np.float32))
            self.out = tf.Variable(np.cos(np.arange(8, dtype=np.float32)).reshape(8, 1))

        @tf.function
        def __call__(self, x):
            hidden = tf.nn.relu(tf.expand_dims(x, 1) @ self.hidden + self.bias)
            return tf.squeeze(hidden @ self.out, 1)

    model, losses = Model(), []
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(20)
    for _ in range(4):
        for x, y in data:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(model(x) - y))
            gradients = tape.gradient(loss, model.variables)
            for g, v in zip(gradients, model.variables, strict=True):
                v.assign_sub(0.02 * g)
        losses.append(tf.reduce_mean(tf.square(model(X) - Y)))
    return {"losses": losses, "weights": [each.numpy() for each in model.variables]}


def a_keras_model(tf):
    model = tf.keras.Sequential([tf.keras.layers.Input((2,)), tf.keras.layers.Dense(1)])
    model.set_weights([np.array([[0.5], [-0.5]]), np.array([0.1])])
    model.compile(loss=tf.keras.losses.MSE, optimizer=tf.keras.optimizers.SGD(0.05))
    history = model.fit(
        np.stack([X, X**2], 1), Y, epochs=3, batch_size=10, shuffle=False, verbose=0
    )
    return {
        "loss": [np.float32(each) for each in history.history["loss"]],
        "all": model.get_weights(),
    }
