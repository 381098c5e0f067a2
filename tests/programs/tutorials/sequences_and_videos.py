"""TensorFlow's tutorials "Time series forecasting" and "Video classification"."""

import numpy as np
from known import draw_weights, numbers, shadows, told_of


def a_convolution_over_a_window_of_hours(tf):
    width, shift = 6, 3
    values = np.cumsum(numbers(60, 2), axis=0).astype(np.float32)
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = tf.keras.Sequential(
            [
                tf.keras.layers.Lambda(lambda x: x[:, -width:, :]),
                tf.keras.layers.Conv1D(8, activation="relu", kernel_size=(width)),
                tf.keras.layers.Dense(shift * 2),
                tf.keras.layers.Reshape([shift, 2]),
            ]
        )
        model.compile(
            loss=tf.keras.losses.MeanSquaredError(),
            optimizer=tf.keras.optimizers.SGD(0.01),
            metrics=[tf.keras.metrics.MeanAbsoluteError()],
        )

    def split_window(features):
        inputs, labels = features[:, :8, :], features[:, 8:, :]
        inputs.set_shape([None, 8, None])
        labels.set_shape([None, shift, None])
        return inputs, labels

    dataset = tf.keras.utils.timeseries_dataset_from_array(
        data=values,
        targets=None,
        sequence_length=8 + shift,
        sequence_stride=1,
        shuffle=False,
        batch_size=8,
    ).map(split_window)
    with strategy.scope():
        model(next(iter(dataset))[0])
    draw_weights(model)
    early_stopping = tf.keras.callbacks.EarlyStopping(monitor="loss", patience=2, mode="min")
    history = model.fit(dataset, epochs=3, callbacks=[early_stopping], verbose=0)
    score = model.evaluate(dataset, verbose=0, return_dict=True)
    return told_of(history), {name: np.float32(score[name]) for name in score}


def a_convolution_over_frames(tf):
    keras, layers = tf.keras, tf.keras.layers

    class Conv2Plus1D(keras.layers.Layer):
        def __init__(self, filters, kernel_size, padding):
            super().__init__()
            self.seq = keras.Sequential(
                [
                    layers.Conv3D(
                        filters=filters,
                        kernel_size=(1, kernel_size[1], kernel_size[2]),
                        padding=padding,
                    ),
                    layers.Conv3D(
                        filters=filters, kernel_size=(kernel_size[0], 1, 1), padding=padding
                    ),
                ]
            )

        def call(self, x):
            return self.seq(x)

    class ResidualMain(keras.layers.Layer):
        def __init__(self, filters, kernel_size):
            super().__init__()
            self.seq = keras.Sequential(
                [
                    Conv2Plus1D(filters=filters, kernel_size=kernel_size, padding="same"),
                    layers.LayerNormalization(),
                    layers.ReLU(),
                    Conv2Plus1D(filters=filters, kernel_size=kernel_size, padding="same"),
                    layers.LayerNormalization(),
                ]
            )

        def call(self, x):
            return self.seq(x)

    with tf.distribute.MirroredStrategy().scope():
        frames = layers.Input(shape=(4, 6, 6, 2))
        x = Conv2Plus1D(filters=4, kernel_size=(3, 3, 3), padding="same")(frames)
        x = layers.BatchNormalization()(x)
        x = layers.ReLU()(x)
        x = layers.AveragePooling3D(pool_size=(1, 2, 2))(x)
        x = layers.add([x, ResidualMain(4, (3, 3, 3))(x)])
        x = layers.GlobalAveragePooling3D()(x)
        x = layers.Flatten()(x)
        model = keras.Model(frames, layers.Dense(3)(x))
        model.compile(
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            optimizer=keras.optimizers.SGD(learning_rate=0.05),
            metrics=["accuracy"],
        )
    draw_weights(model)
    videos, kinds = numbers(10, 4, 6, 6, 2), np.arange(10) % 3
    dataset = tf.data.Dataset.from_tensor_slices((videos, kinds)).batch(4)
    history = model.fit(dataset, epochs=2, verbose=0)
    actual = tf.concat([labels for _, labels in dataset], axis=0)
    predicted = tf.argmax(tf.concat(model.predict(dataset, verbose=0), axis=0), axis=1)
    return (
        told_of(history),
        tf.math.confusion_matrix(actual, predicted),
        shadows(model.get_weights()),
    )
