"""TensorFlow's guides "Distributed training" and "Use a GPU", on one device."""

import numpy as np

X = np.linspace(-1, 1, 40, dtype=np.float32).reshape(20, 2)
Y = (X @ np.array([[1.0], [-2.0]], np.float32)) + 0.5


def a_keras_model(tf):
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Input((2,)), tf.keras.layers.Dense(1)])
        model.compile(loss="mse", optimizer=tf.keras.optimizers.SGD(0.1))
    model.set_weights([np.array([[0.1], [0.2]]), np.array([0.0])])
    history = model.fit(X, Y, batch_size=10, epochs=3, shuffle=False, verbose=0)
    losses = [np.float32(each) for each in history.history["loss"]]
    return [losses, model.get_weights(), strategy.num_replicas_in_sync]


def a_loop_of_ones_own(tf):
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Input((2,)), tf.keras.layers.Dense(1)])
        optimizer = tf.keras.optimizers.SGD(0.1)
    model.set_weights([np.array([[0.1], [0.2]]), np.array([0.0])])
    dataset = tf.data.Dataset.from_tensor_slices((X, Y)).batch(10)
    shares = strategy.experimental_distribute_dataset(dataset)

    def step(inputs):
        features, targets = inputs
        with tf.GradientTape() as tape:
            errors = tf.reduce_sum((model(features, training=True) - targets) ** 2, axis=1)
            loss = tf.nn.compute_average_loss(errors, global_batch_size=10)
        slopes = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(slopes, model.trainable_variables, strict=True))
        return loss

    @tf.function
    def train_step(inputs):
        losses = strategy.run(step, args=(inputs,))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    return [[train_step(inputs) for inputs in shares] for _ in range(2)]


def a_product_on_a_device(tf):
    with tf.device("/CPU:0"):
        a = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        b = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    return [tf.matmul(a, b), len(tf.config.list_physical_devices("CPU"))]


def values_of_replicas(tf):
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])

    def value(context):
        return tf.constant(float(context.replica_id_in_sync_group + 1))

    values = strategy.experimental_distribute_values_from_function(value)
    total = strategy.run(lambda x: x * 2.0, args=(values,))
    return [
        strategy.experimental_local_results(total),
        strategy.gather(tf.reshape(total, [1]), axis=0),
    ]
