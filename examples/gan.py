"""Trains two networks against each other, with an optimizer each, in a ``train_step`` of one's own.

The generator makes points of random numbers; the discriminator tells them from real ones, which lie
in eight clusters on a circle. Nobody tells the generator where: it learns what passes for real.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

import mirrored as mr

NOISE, POINTS, CLUSTERS = 8, 8192, 8
NEAR = 0.15  # Three standard deviations of a cluster.


def parse_arguments() -> argparse.Namespace:
    """Return the command line, with a plot's folder already checked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpus", type=int, choices=range(1, 9), default=2, help="default: 2")
    parser.add_argument("--epochs", type=int, default=30, help="default: 30")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="save a picture of both kinds of points"
    )
    arguments = parser.parse_args()
    if arguments.epochs < 1:
        parser.error(f"--epochs must be 1 or more. Received: {arguments.epochs}")
    if arguments.plot and not arguments.plot.parent.is_dir():
        parser.error(f"--plot: there is no folder {arguments.plot.parent}. Make it first.")
    return arguments


def choose_gpus(count: int) -> None:
    """Make ``count`` GPUs visible, simulated ones where there are not enough."""
    if len(mr.config.list_physical_devices("GPU")) < count:
        mr.config.experimental.set_simulated_gpus(count)
    mr.config.set_visible_devices(mr.config.list_physical_devices("GPU")[:count], "GPU")


class Adversaries(mr.Model):
    """A generator and a discriminator, trained against each other."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = build_network(NOISE, 2)
        self.discriminator = build_network(2, 1)

    def compile(self, generator_optimizer: Any, discriminator_optimizer: Any) -> None:
        """Take two optimizers."""
        super().compile()
        self.generator_optimizer = generator_optimizer
        self.discriminator_optimizer = discriminator_optimizer

    def train_step(self, real: Any) -> dict[str, Any]:
        """Update the discriminator, then the generator by what passes with it.

        Each replica is given its shard of the batch. Both losses are means over its examples, so
        that any number of replicas trains as one; the optimizers put the gradients together.
        """
        noise = mr.random.normal((mr.shape(real)[0], NOISE))
        made = self.generator(noise)
        with mr.GradientTape() as tape:
            # Softplus is the logistic loss: of real points as real, and of made ones as made.
            told = mr.nn.softplus(-self.discriminator(real)) + mr.nn.softplus(
                self.discriminator(made)
            )
            discriminator_loss = mr.reduce_mean(told)
        weights = self.discriminator.trainable_variables
        self.discriminator_optimizer.apply(tape.gradient(discriminator_loss, weights), weights)

        with mr.GradientTape() as tape:
            passed = mr.nn.softplus(-self.discriminator(self.generator(noise)))
            generator_loss = mr.reduce_mean(passed)
        weights = self.generator.trainable_variables
        self.generator_optimizer.apply(tape.gradient(generator_loss, weights), weights)
        return {"discriminator_loss": discriminator_loss, "generator_loss": generator_loss}


def build_network(inputs: int, outputs: int) -> mr.Sequential:
    """Return a network with two hidden layers."""
    return mr.Sequential(
        [
            mr.layers.Input(shape=(inputs,)),
            mr.layers.Dense(64, activation="relu"),
            mr.layers.Dense(64, activation="relu"),
            mr.layers.Dense(outputs),
        ]
    )


def build_model() -> Adversaries:
    """Return both networks, compiled."""
    model = Adversaries()
    model.compile(mr.optim.Adam(0.002, beta_1=0.5), mr.optim.Adam(0.002, beta_1=0.5))
    return model


def cluster_centres() -> np.ndarray:
    """Return the points in whose midst the clusters are."""
    angles = np.arange(CLUSTERS) * 2.0 * np.pi / CLUSTERS
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def draw_points(count: int) -> np.ndarray:
    """Return real points."""
    rng = np.random.default_rng(0)
    points = cluster_centres()[rng.integers(CLUSTERS, size=count)]
    return (points + rng.normal(scale=NEAR / 3, size=points.shape)).astype(np.float32)


def save_plot(real: np.ndarray, made: np.ndarray, path: Path) -> None:
    """Draw real points and made ones side by side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4), layout="constrained")
    both = {"real": real, "made": made}
    for axes, (title, points) in zip(figure.subplots(1, 2), both.items(), strict=True):
        axes.scatter(*points.T, s=4)
        axes.set(title=title, xlim=(-1.5, 1.5), ylim=(-1.5, 1.5), aspect="equal")
    figure.savefig(path)
    print(f"Real and made points are in {path}.")


def main() -> None:
    """Train, and print how many of the points that are made would pass for real."""
    arguments = parse_arguments()
    if arguments.plot:
        try:
            import matplotlib.figure  # noqa: F401
        except ImportError as error:
            sys.exit(
                f"--plot needs matplotlib ({error}). "
                f"Install it with: {sys.executable} -m pip install matplotlib"
            )
    choose_gpus(arguments.gpus)

    real = draw_points(POINTS)
    mr.random.set_seed(1)
    with mr.MirroredStrategy().scope():
        model = build_model()
    model.fit(real, batch_size=256, epochs=arguments.epochs)

    made = model.generator.predict(mr.random.normal((1000, NOISE)), verbose=0)
    distances = np.linalg.norm(made[:, np.newaxis] - cluster_centres(), axis=-1)
    near = distances.min(axis=1) < NEAR
    found = len(np.unique(distances.argmin(axis=1)[near]))
    print(f"Made points in a cluster: {near.mean():.0%} of {len(made)}")
    print(f"Clusters found: {found} of {CLUSTERS}")
    if arguments.plot:
        save_plot(real[:1000], made, arguments.plot)


if __name__ == "__main__":
    main()
