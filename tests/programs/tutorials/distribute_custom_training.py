"""TensorFlow's tutorial "Custom training with tf.distribute.Strategy"."""

import os
import tempfile

import numpy as np
from known import draw_weights, pictures, shadows

BATCH = 12  # Of all replicas together, so that their number does not matter.


def _images(count):
    images, labels = pictures(count)
    return images[..., 0][..., None] / np.float32(255), labels


def _create_model(tf):
    regularizer = tf.keras.regularizers.L2(1e-3)
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Input(shape=(12, 12, 1)),
            layers.Conv2D(8, 3, activation="relu", kernel_regularizer=regularizer),
            layers.MaxPooling2D(),
            layers.Conv2D(12, 3, activation="relu", kernel_regularizer=regularizer),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(16, activation="relu", kernel_regularizer=regularizer),
            layers.Dense(4, kernel_regularizer=regularizer),
        ]
    )
    return draw_weights(model)


def _trainer(tf, strategy, global_batch_size=BATCH):
    """Return the model, its optimizer, the two steps and the three metrics."""
    with strategy.scope():
        loss_object = tf.keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, reduction=None
        )

        def compute_loss(labels, predictions, model_losses):
            per_example_loss = loss_object(labels, predictions)
            loss = tf.nn.compute_average_loss(per_example_loss, global_batch_size=global_batch_size)
            if model_losses:
                loss += tf.nn.scale_regularization_loss(tf.add_n(model_losses))
            return loss

        test_loss = tf.keras.metrics.Mean(name="test_loss")
        train_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="train_accuracy")
        test_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="test_accuracy")
        model = _create_model(tf)
        optimizer = tf.keras.optimizers.SGD(learning_rate=0.05, momentum=0.9)

    def train_step(inputs):
        images, labels = inputs
        with tf.GradientTape() as tape:
            predictions = model(images, training=True)
            loss = compute_loss(labels, predictions, model.losses)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        train_accuracy.update_state(labels, predictions)
        return loss

    def test_step(inputs):
        images, labels = inputs
        predictions = model(images, training=False)
        test_loss.update_state(loss_object(labels, predictions))
        test_accuracy.update_state(labels, predictions)

    return model, optimizer, train_step, test_step, (train_accuracy, test_loss, test_accuracy)


def _distributed(tf, strategy, *counts):
    for count in counts:
        dataset = tf.data.Dataset.from_tensor_slices(_images(count)).batch(BATCH)
        yield strategy.experimental_distribute_dataset(dataset)


def a_loop_of_epochs(tf):
    strategy = tf.distribute.MirroredStrategy()
    train, test = _distributed(tf, strategy, 44, 22)
    model, optimizer, train_step, test_step, metrics = _trainer(tf, strategy)

    @tf.function
    def distributed_train_step(dataset_inputs):
        per_replica_losses = strategy.run(train_step, args=(dataset_inputs,))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica_losses, axis=None)

    @tf.function
    def distributed_test_step(dataset_inputs):
        return strategy.run(test_step, args=(dataset_inputs,))

    seen = []
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = tf.train.Checkpoint(optimizer=optimizer, model=model)
        for epoch in range(3):
            total_loss, num_batches = 0.0, 0
            for x in train:
                total_loss += distributed_train_step(x)
                num_batches += 1
            for x in test:
                distributed_test_step(x)
            if epoch % 2 == 0:
                checkpoint.save(os.path.join(folder, "ckpt"))
            seen.append(
                [total_loss / num_batches, *(np.float32(each.result()) for each in metrics)]
            )
            for each in metrics:
                each.reset_state()

        eval_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="eval_accuracy")
        new_model, new_optimizer = _create_model(tf), tf.keras.optimizers.SGD(0.05, momentum=0.9)
        restored = tf.train.Checkpoint(optimizer=new_optimizer, model=new_model)
        restored.restore(tf.train.latest_checkpoint(folder))

        @tf.function
        def eval_step(images, labels):
            eval_accuracy(labels, new_model(images, training=False))

        for images, labels in tf.data.Dataset.from_tensor_slices(_images(22)).batch(BATCH):
            eval_step(images, labels)
    return (
        seen,
        np.float32(eval_accuracy.result()),
        shadows(model.get_weights()),
        shadows(new_model.get_weights()),
    )


def a_loop_by_an_iterator(tf):
    strategy = tf.distribute.MirroredStrategy()
    (train,) = _distributed(tf, strategy, 44)
    model, _, train_step, _, (accuracy, _, _) = _trainer(tf, strategy)

    @tf.function
    def distributed_train_step(dataset_inputs):
        per_replica_losses = strategy.run(train_step, args=(dataset_inputs,))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica_losses, axis=None)

    seen = []
    for _ in range(2):
        total_loss, train_iter = 0.0, iter(train)
        for _ in range(3):
            total_loss += distributed_train_step(next(train_iter))
        seen.append([total_loss / 3, np.float32(accuracy.result())])
        accuracy.reset_state()
    return seen, shadows(model.get_weights())


def a_loop_within_a_function(tf):
    strategy = tf.distribute.MirroredStrategy()
    (train,) = _distributed(tf, strategy, 44)
    model, _, train_step, _, (accuracy, _, _) = _trainer(tf, strategy)

    @tf.function
    def distributed_train_epoch(dataset):
        total_loss, num_batches = 0.0, 0
        for x in dataset:
            per_replica_losses = strategy.run(train_step, args=(x,))
            total_loss += strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica_losses, axis=None)
            num_batches += 1
        return total_loss / tf.cast(num_batches, dtype=tf.float32)

    seen = [[distributed_train_epoch(train), np.float32(accuracy.result())] for _ in range(2)]
    return seen, shadows(model.get_weights())
