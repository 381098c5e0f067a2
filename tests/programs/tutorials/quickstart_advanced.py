"""TensorFlow's tutorial "TensorFlow 2 quickstart for experts"."""

import numpy as np
from known import draw_weights, pictures, shadows


def a_model_and_its_steps(tf):
    from tensorflow.keras import Model
    from tensorflow.keras.layers import Conv2D, Dense, Flatten

    (x_train, y_train), (x_test, y_test) = pictures(40), pictures(21)
    x_train, x_test = x_train[..., 0] / 255.0, x_test[..., 0] / 255.0
    x_train = x_train[..., tf.newaxis].astype("float32")
    x_test = x_test[..., tf.newaxis].astype("float32")
    train_ds = tf.data.Dataset.from_tensor_slices((x_train, y_train)).batch(16)
    test_ds = tf.data.Dataset.from_tensor_slices((x_test, y_test)).batch(16)

    class MyModel(Model):
        def __init__(self):
            super().__init__()
            self.conv1 = Conv2D(8, 3, activation="relu")
            self.flatten = Flatten()
            self.d1 = Dense(16, activation="relu")
            self.d2 = Dense(4)

        def call(self, x):
            x = self.conv1(x)
            x = self.flatten(x)
            x = self.d1(x)
            return self.d2(x)

    model = MyModel()
    model(x_train[:1])
    draw_weights(model)
    loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = tf.keras.optimizers.Adam()
    train_loss = tf.keras.metrics.Mean(name="train_loss")
    train_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="train_accuracy")
    test_loss = tf.keras.metrics.Mean(name="test_loss")
    test_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="test_accuracy")

    @tf.function
    def train_step(images, labels):
        with tf.GradientTape() as tape:
            predictions = model(images, training=True)
            loss = loss_object(labels, predictions)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        train_loss(loss)
        train_accuracy(labels, predictions)

    @tf.function
    def test_step(images, labels):
        predictions = model(images, training=False)
        test_loss(loss_object(labels, predictions))
        test_accuracy(labels, predictions)

    seen = []
    for _ in range(3):
        for metric in (train_loss, train_accuracy, test_loss, test_accuracy):
            metric.reset_state()
        for images, labels in train_ds:
            train_step(images, labels)
        for test_images, test_labels in test_ds:
            test_step(test_images, test_labels)
        seen.append(
            [
                np.float32(metric.result())
                for metric in (train_loss, train_accuracy, test_loss, test_accuracy)
            ]
        )
    return seen, shadows(model.get_weights())
