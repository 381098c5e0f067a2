"""TensorFlow's guide "Training checkpoints"."""

import os
import tempfile

import numpy as np


def _parts(tf):
    net = tf.keras.Sequential([tf.keras.layers.Input((1,)), tf.keras.layers.Dense(5)])
    net.set_weights([np.linspace(-1, 1, 5).reshape(1, 5), np.zeros(5)])
    optimizer = tf.keras.optimizers.Adam(0.1)
    inputs = tf.range(10.0)[:, None]
    labels = inputs * 5.0 + tf.range(5.0)[None, :]
    data = tf.data.Dataset.from_tensor_slices(dict(x=inputs, y=labels)).repeat().batch(2)
    return net, optimizer, data


def train(tf, net, optimizer, iterator, step, count):
    losses = []
    for _ in range(count):
        example = next(iterator)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.abs(net(example["x"]) - example["y"]))
        variables = net.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        step.assign_add(1)
        losses.append(loss)
    return losses


def kept_by_a_manager(tf):
    net, optimizer, data = _parts(tf)
    iterator, step = iter(data), tf.Variable(1)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = tf.train.Checkpoint(step=step, optimizer=optimizer, net=net, iterator=iterator)
        manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=3)
        restored = manager.latest_checkpoint
        losses = []
        for _ in range(4):
            losses += train(tf, net, optimizer, iterator, step, 5)
            manager.save()
        kept = [os.path.basename(each) for each in manager.checkpoints]
        later = train(tf, net, optimizer, iterator, step, 3)
        checkpoint.restore(manager.latest_checkpoint)
        again = train(tf, net, optimizer, iterator, step, 3)
    return [restored, kept, losses[::6], later, again, step.numpy()]


def restored_into_new_objects(tf):
    net, optimizer, data = _parts(tf)
    step = tf.Variable(1)
    with tempfile.TemporaryDirectory() as folder:
        losses = train(tf, net, optimizer, iter(data), step, 3)
        path = tf.train.Checkpoint(step=step, net=net).save(f"{folder}/ckpt")
        other, number = _parts(tf)[0], tf.Variable(0)
        status = tf.train.Checkpoint(step=number, net=other).restore(path)
        status.assert_existing_objects_matched()
        found = os.path.basename(tf.train.latest_checkpoint(folder))
    same = [
        np.array_equal(a, b) for a, b in zip(net.get_weights(), other.get_weights(), strict=True)
    ]
    return [losses, found, number.numpy(), same]


def only_a_part(tf):
    net = _parts(tf)[0]
    kernel, bias = net.layers[-1].kernel, net.layers[-1].bias
    bias.assign([1.0, 2.0, 3.0, 4.0, 5.0])
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(l1=net.layers[-1]).save(f"{folder}/ckpt")
        kernel.assign(tf.zeros((1, 5)))
        bias.assign(tf.zeros(5))
        tf.train.Checkpoint(l1=net.layers[-1]).restore(path).assert_existing_objects_matched()
    return [tf.convert_to_tensor(kernel), tf.convert_to_tensor(bias)]


def lists_and_dicts(tf):
    class Holder(tf.Module):
        def __init__(self, value):
            super().__init__()
            self.listed = [tf.Variable(value), tf.Variable(value + 1.0)]
            self.mapped = {"one": tf.Variable(value + 2.0)}

    one, other = Holder(1.0), Holder(10.0)
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(holder=one).save(f"{folder}/ckpt")
        tf.train.Checkpoint(holder=other).restore(path)
    return [each.numpy() for each in (*other.listed, other.mapped["one"])]
