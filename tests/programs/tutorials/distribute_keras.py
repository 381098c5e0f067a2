"""TensorFlow's tutorial "Distributed training with Keras"."""

import os
import tempfile

import numpy as np
from known import draw_weights, pictures, shadows, told_of

BATCH = 12  # Of all replicas together, so that their number does not matter.
BUFFER = 100


def _scaled(tf):
    def scale(image, label):
        image = tf.cast(image, tf.float32)
        image /= 255
        return image, label

    return scale


def _datasets(tf):
    data = [tf.data.Dataset.from_tensor_slices(pictures(count)) for count in (44, 22)]
    train, test = (each.map(_scaled(tf)) for each in data)
    return train.cache().batch(BATCH), test.batch(BATCH)


def _model(tf):
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Conv2D(8, 3, activation="relu", input_shape=(12, 12, 1)),
            tf.keras.layers.MaxPooling2D(),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(16, activation="relu"),
            tf.keras.layers.Dense(4),
        ]
    )
    model.compile(
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        optimizer=tf.keras.optimizers.SGD(learning_rate=0.1),
        metrics=["accuracy"],
    )
    return model


def _decay(epoch):
    if epoch < 1:
        return 1e-1
    if 1 <= epoch < 2:
        return 3e-2
    return 1e-2


def a_network_from_its_training_to_its_file(tf):
    strategy = tf.distribute.MirroredStrategy()
    train, test = _datasets(tf)
    with strategy.scope():
        model = _model(tf)
    draw_weights(model)
    rates = []

    class PrintRate(tf.keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            rates.append(self.model.optimizer.learning_rate.numpy())

    with tempfile.TemporaryDirectory() as folder:
        prefix = os.path.join(folder, "ckpt_{epoch}.weights.h5")
        callbacks = [
            tf.keras.callbacks.ModelCheckpoint(filepath=prefix, save_weights_only=True),
            tf.keras.callbacks.LearningRateScheduler(_decay),
            PrintRate(),
        ]
        history = model.fit(train, epochs=3, callbacks=callbacks, verbose=0)
        names = sorted(each for each in os.listdir(folder) if each.endswith(".h5"))
        model.load_weights(os.path.join(folder, names[1]))
        second = model.evaluate(test, verbose=0)
        path = os.path.join(folder, "my_model.keras")
        model.save(path)
        alone = tf.keras.models.load_model(path)
        alone.compile(
            loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            optimizer=tf.keras.optimizers.Adam(),
            metrics=["accuracy"],
        )
        unreplicated = alone.evaluate(test, verbose=0)
        with strategy.scope():
            replicated = tf.keras.models.load_model(path)
        again = replicated.evaluate(test, verbose=0)
    scores = [np.float32(each) for each in (second, unreplicated, again)]
    return told_of(history), rates, names, scores, shadows(model.get_weights())
