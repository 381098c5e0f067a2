"""A program with a training loop of its own: distributed batches, steps in replicas, checkpoints.

It is held to TensorFlow's numbers, on any number of replicas, interrupted or not.
"""

import ast
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

# 22 examples in batches of 5: few batches are divided evenly, and the last has two examples.
PROGRAM = """
import os
import sys

import numpy as np
import mirrored as tf

REPLICAS, MODE, EPOCHS = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
CHECKPOINTS = sys.argv[4]
GLOBAL_BATCH_SIZE = 5

rng = np.random.default_rng(5)
train_images = rng.normal(size=(22, 4)).astype('float32')
train_labels = train_images[:, :3].argmax(axis=1)
test_images = rng.normal(size=(9, 4)).astype('float32')
test_labels = test_images[:, :3].argmax(axis=1)
shapes = [(4, 4), (4,), (4, 3), (3,)]
initial_weights = [rng.normal(scale=0.5, size=shape) for shape in shapes]

gpus = tf.config.list_logical_devices('GPU')
strategy = tf.distribute.MirroredStrategy(devices=[gpu.name for gpu in gpus[:REPLICAS]])
print('Number of devices:', strategy.num_replicas_in_sync)

train_dataset = tf.data.Dataset.from_tensor_slices(
    (train_images, train_labels)).batch(GLOBAL_BATCH_SIZE)
test_dataset = tf.data.Dataset.from_tensor_slices(
    (test_images, test_labels)).batch(GLOBAL_BATCH_SIZE)
train_dist_dataset = strategy.experimental_distribute_dataset(train_dataset)
test_dist_dataset = strategy.experimental_distribute_dataset(test_dataset)

with strategy.scope():
    loss_object = tf.keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, reduction=tf.keras.losses.Reduction.NONE)

    def compute_loss(labels, predictions):
        per_example_loss = loss_object(labels, predictions)
        return tf.nn.compute_average_loss(
            per_example_loss, global_batch_size=GLOBAL_BATCH_SIZE)

    test_loss = tf.keras.metrics.Mean(name='test_loss')
    train_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name='train_accuracy')
    test_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name='test_accuracy')

    model = tf.keras.Sequential([
        tf.keras.layers.Input(shape=(4,)),
        tf.keras.layers.Dense(4, activation='tanh'),
        tf.keras.layers.Dense(3),
    ])
    model.set_weights(initial_weights)
    optimizer = tf.keras.optimizers.Adam(learning_rate=0.1)

epoch = tf.Variable(0)
checkpoint = tf.train.Checkpoint(optimizer=optimizer, model=model, epoch=epoch)
checkpoint_prefix = os.path.join(CHECKPOINTS, 'ckpt')
checkpoint.restore(tf.train.latest_checkpoint(CHECKPOINTS))


def train_step(inputs):
    images, labels = inputs
    with tf.GradientTape() as tape:
        predictions = model(images, training=True)
        loss = compute_loss(labels, predictions)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    train_accuracy.update_state(labels, predictions)
    return loss


def test_step(inputs):
    images, labels = inputs
    predictions = model(images, training=False)
    test_loss.update_state(loss_object(labels, predictions))
    test_accuracy.update_state(labels, predictions)


def distributed_train_step(dataset_inputs):
    per_replica_losses = strategy.run(train_step, args=(dataset_inputs,))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica_losses, axis=None)


def distributed_test_step(dataset_inputs):
    return strategy.run(test_step, args=(dataset_inputs,))


if MODE == 'steps':
    distributed_train_step = tf.function(distributed_train_step)
    distributed_test_step = tf.function(distributed_test_step)


@tf.function
def train_steps(iterator, steps):
    total_loss = 0.0
    for _ in range(steps):
        total_loss += distributed_train_step(next(iterator))
    return total_loss


while epoch.numpy() < EPOCHS:
    if MODE == 'iterator':
        total_loss = train_steps(iter(train_dist_dataset), 5)
    else:
        total_loss = 0.0
        for x in train_dist_dataset:
            total_loss += distributed_train_step(x)
    for x in test_dist_dataset:
        distributed_test_step(x)
    epoch.assign_add(1)
    print([int(epoch.numpy()), float(total_loss / 5), float(train_accuracy.result()),
           float(test_loss.result()), float(test_accuracy.result())])
    test_loss.reset_state()
    train_accuracy.reset_state()
    test_accuracy.reset_state()

checkpoint.save(checkpoint_prefix)
print([weights.tolist() for weights in model.get_weights()])
"""

# Printed by TensorFlow 2.21 with Keras 3.15 in the mode "eager", on 1 to 4 replicas: the epoch, the
# loss, the accuracy in training, then loss and accuracy in the test.
EPOCHS = [
    [1, 0.9512679, 0.4545455, 0.7882264, 0.7777778],
    [2, 0.4970668, 0.7727273, 0.5462157, 0.7777778],
    [3, 0.2787265, 0.9090909, 0.2214288, 1.0],
    [4, 0.1528022, 1.0, 0.09764804, 1.0],
]
WEIGHTS = [
    [
        [-0.5805141, 0.3598624, 1.364566, -1.406034],
        [-0.704393, -1.005339, -0.6996506, 1.224675],
        [1.363995, 0.9255692, 0.09427271, 0.5136956],
        [-0.03876595, -0.07929057, 0.7718048, 0.3058008],
    ],
    [-0.2612335, 0.4544228, 0.4653843, 0.4512569],
    [
        [-0.5760366, -1.044326, 2.386063],
        [0.3278021, -0.8350014, 1.25842],
        [0.7161399, -1.184182, -1.424859],
        [-1.140384, 0.5875264, 0.3992434],
    ],
    [0.1716657, -0.3742937, -0.3353778],
]


def check(lines: list[str]) -> None:
    """Hold what was printed, the number of devices left out, to TensorFlow's numbers."""
    *epochs, weights = map(ast.literal_eval, lines)
    np.testing.assert_allclose(epochs, EPOCHS, rtol=1e-5)
    for ours, theirs in zip(weights, WEIGHTS, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


SLOW = pytest.mark.slow


@pytest.mark.parametrize("replicas", [pytest.param(1, marks=SLOW), 3, pytest.param(4, marks=SLOW)])
def test_the_numbers_are_tensorflows_and_the_bits_the_same_however_it_is_run(
    run_program: Callable[..., Any], replicas: int
) -> None:
    steps, eager, iterator = (
        run_program(PROGRAM, replicas, mode, 4, f"ckpt-{mode}", gpus=4).out
        for mode in ("steps", "eager", "iterator")
    )
    assert steps[0] == f"Number of devices: {replicas}"
    check(steps[1:])
    assert eager == steps
    assert iterator == steps


@pytest.mark.parametrize(
    ("before", "after"),
    [pytest.param(1, 3, marks=SLOW), pytest.param(2, 4, marks=SLOW), (4, 1)],
)
def test_a_checkpoint_is_continued_on_another_number_of_replicas(
    run_program: Callable[..., Any], before: int, after: int
) -> None:
    first = run_program(PROGRAM, before, "steps", 2, "checkpoints", gpus=4).out
    second = run_program(PROGRAM, after, "steps", 4, "checkpoints", gpus=4).out
    assert [first[0], second[0]] == [f"Number of devices: {each}" for each in (before, after)]
    check([*first[1:3], *second[1:]])


def test_a_checkpoint_is_continued_with_the_bits_of_a_run_that_never_stopped(
    run_program: Callable[..., Any],
) -> None:
    whole = run_program(PROGRAM, 3, "steps", 4, "whole", gpus=4).out
    first = run_program(PROGRAM, 3, "iterator", 1, "parts", gpus=4).out
    second = run_program(PROGRAM, 3, "steps", 4, "parts", gpus=4).out
    assert first[:2] == whole[:2]
    assert second == [whole[0], *whole[2:]]
