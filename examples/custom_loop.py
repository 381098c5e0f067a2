"""Trains on handwritten digits with a training loop of its own, which can be stopped and resumed.

digits.py leaves the loop to ``fit``; here each part can be seen and changed, and a run with
``--checkpoints FOLDER`` goes on later, with more ``--epochs`` and another number of ``--gpus``.
"""

import argparse
import os
import sys

import numpy as np

import mirrored as mr

BATCH_SIZE = 64  # Over all replicas together.


def parse_arguments() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--gpus", type=int, default=4, help="number of GPUs (default: 4); 0 trains on the CPU"
    )
    parser.add_argument(
        "--epochs",
        type=int,
        default=8,
        help="epochs in total, before and after a resume (default: 8)",
    )
    parser.add_argument(
        "--checkpoints", metavar="FOLDER", help="folder to save checkpoints in and to resume from"
    )
    arguments = parser.parse_args()
    for name, least, most in (("gpus", 0, 64), ("epochs", 1, 10_000)):
        number = getattr(arguments, name)
        if not least <= number <= most:
            parser.error(f"--{name} must be from {least} to {most}. Received: {number}")
    if arguments.checkpoints:
        try:
            os.makedirs(arguments.checkpoints, exist_ok=True)
        except OSError as error:
            parser.error(f"--checkpoints: {error}")
        if not os.access(arguments.checkpoints, os.W_OK):
            parser.error(f"--checkpoints: {arguments.checkpoints} is read-only")
    return arguments


def choose_gpus(count: int) -> None:
    """Make ``count`` GPUs visible: real ones where there are enough, else simulated ones."""
    present = len(mr.config.list_physical_devices("GPU"))
    if present < count:
        print(f"{present} of {count} GPUs are here: simulating {count} in host memory.")
        mr.config.experimental.set_simulated_gpus(count)
    mr.config.set_visible_devices(mr.config.list_physical_devices("GPU")[:count], "GPU")


def load_digits() -> list[np.ndarray]:
    """Return training images, held-out images (a fifth of all), and the labels of each."""
    try:
        from sklearn import datasets, model_selection
    except ImportError as error:
        sys.exit(
            f"This example needs scikit-learn ({error}). "
            f"Install it with: {sys.executable} -m pip install scikit-learn"
        )
    images, labels = datasets.load_digits(return_X_y=True)
    images = (images / 8.0 - 1.0).astype(np.float32)  # A pixel is 0 to 16: now -1 to 1.
    return model_selection.train_test_split(
        images, labels, test_size=0.2, random_state=0, stratify=labels
    )


class Training:
    """A model, its optimizer and its metrics, with the steps that are taken with them.

    Args:
        strategy: What has the replicas.
    """

    def __init__(self, strategy: mr.distribute.Strategy) -> None:
        """Make everything that has variables in the scope: each replica gets a copy."""
        self.strategy = strategy
        with strategy.scope():
            self.model = mr.Sequential(
                [
                    mr.layers.Input(shape=(64,)),
                    mr.layers.Dense(128, activation="relu"),
                    mr.layers.Dropout(0.3),
                    mr.layers.Dense(10),
                ]
            )
            self.optimizer = mr.optim.SGD(learning_rate=0.1, momentum=0.9)
            self.loss = mr.metrics.Mean()
            self.accuracy = mr.metrics.SparseCategoricalAccuracy()
            self.held_out = mr.metrics.SparseCategoricalAccuracy()
        # One loss an example: what they are divided by is decided below.
        self.losses = mr.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

    def train_replica(self, images: mr.Tensor, labels: mr.Tensor) -> None:
        """Take a step with one replica's part of the batch."""
        with mr.GradientTape() as tape:
            logits = self.model(images, training=True)
            losses = self.losses(labels, logits)
            # Divided by the examples of all replicas: their gradients are then summed.
            loss = mr.nn.compute_average_loss(losses, global_batch_size=BATCH_SIZE)
        variables = self.model.trainable_variables
        gradients = tape.gradient(loss, variables)
        # Here the replicas meet: their gradients are summed, and each updates its copy.
        self.optimizer.apply_gradients(zip(gradients, variables, strict=True))
        self.loss.update_state(losses)
        self.accuracy.update_state(labels, logits)

    def test_replica(self, images: mr.Tensor, labels: mr.Tensor) -> None:
        """Count what is recognised in one replica's part of the batch."""
        self.held_out.update_state(labels, self.model(images, training=False))

    @mr.function  # Recorded at the first call, and replayed from then on.
    def train_step(
        self, images: mr.distribute.PerReplica, labels: mr.distribute.PerReplica
    ) -> None:
        """Take a step with a batch."""
        self.strategy.run(self.train_replica, args=(images, labels))

    @mr.function
    def test_step(self, images: mr.distribute.PerReplica, labels: mr.distribute.PerReplica) -> None:
        """Count what is recognised in a batch."""
        self.strategy.run(self.test_replica, args=(images, labels))

    def epoch(self, number: int, train: mr.data.Dataset, test: mr.data.Dataset) -> None:
        """Train on every batch, look at the held-out images, and print what came of it."""
        for metric in (self.loss, self.accuracy, self.held_out):
            metric.reset_state()
        for images, labels in self.strategy.experimental_distribute_dataset(train):
            self.train_step(images, labels)
        for images, labels in self.strategy.experimental_distribute_dataset(test):
            self.test_step(images, labels)
        # Read outside the replicas, a metric is that of all of them.
        print(
            f"Epoch {number}: loss {float(self.loss.result()):.3f}, "
            f"accuracy {float(self.accuracy.result()):.2%}, "
            f"held-out accuracy {float(self.held_out.result()):.2%}"
        )


def main() -> None:
    """Train from the latest checkpoint on, if there is one, and save another one at the end."""
    arguments = parse_arguments()
    choose_gpus(arguments.gpus)
    train_images, test_images, train_labels, test_labels = load_digits()
    train = mr.data.Dataset.from_tensor_slices((train_images, train_labels))
    test = mr.data.Dataset.from_tensor_slices((test_images, test_labels)).batch(BATCH_SIZE)

    mr.random.set_seed(3)
    training = Training(mr.MirroredStrategy())
    done = mr.Variable(0)
    checkpoint = mr.train.Checkpoint(model=training.model, optimizer=training.optimizer, done=done)
    if arguments.checkpoints:
        latest = mr.train.latest_checkpoint(arguments.checkpoints)
        checkpoint.restore(latest)  # Of None it restores nothing.
        if latest:
            print(f"Resumed after epoch {int(done)}, from {latest}")

    print(f"Replicas: {training.strategy.num_replicas_in_sync}")
    for number in range(int(done) + 1, arguments.epochs + 1):
        # An order of its own for each epoch, also for one that is resumed.
        shuffled = train.shuffle(len(train), seed=number)
        training.epoch(number, shuffled.batch(BATCH_SIZE).prefetch(mr.data.AUTOTUNE), test)
        done.assign(number)

    if arguments.checkpoints:
        path = checkpoint.save(os.path.join(arguments.checkpoints, "digits"))
        print(f"Saved {path}")


if __name__ == "__main__":
    main()
