"""Tells shapes apart in noisy pictures that it draws itself, with a convolutional network.

No file is needed: a picture's shape, place, size and angle follow from its number alone. Each GPU
trains on its part of every batch, and any number of GPUs learns what one learns.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

import mirrored as mr

SIZE = 24  # Pixels.
SHAPES = ("circle", "square", "triangle", "cross", "ring", "star")
PICTURES, HELD_OUT_PICTURES, BATCH = 8000, 2000, 64
NOISE = 0.1


def parse_arguments() -> argparse.Namespace:
    """Return the command line, with a plot's folder already checked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpus", type=int, choices=range(1, 9), default=4, help="default: 4")
    parser.add_argument("--epochs", type=int, default=8, help="default: 8")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="save the pictures that were told wrong"
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


def distances(u: np.ndarray, v: np.ndarray) -> list[np.ndarray]:
    """Return how far points are outside of each shape of radius 1; inside it is negative."""
    radius, angle = np.hypot(u, v), np.arctan2(v, u)
    wide, narrow = np.maximum(abs(u), abs(v)), np.minimum(abs(u), abs(v))
    # A fifth of a star, and its mirror image: from a tip to the corner between two tips.
    turn = abs((angle / (2 * np.pi) * 5 + 0.5) % 1 - 0.5) * 2 * np.pi / 5
    return [
        radius - 0.9,
        wide - 0.75,
        np.maximum(-v, 0.866 * abs(u) + 0.5 * v) - 0.5,
        np.maximum(wide - 0.95, narrow - 0.3),
        abs(radius - 0.7) - 0.2,
        (radius * (np.cos(turn) + 1.38 * np.sin(turn)) - 1.0) * 0.6,
    ]


def draw_pictures(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return pictures of shape (count, SIZE, SIZE, 1), and the number of the shape on each."""
    # Philox counts: the row of a picture is the same however many are drawn.
    rows = np.random.Generator(np.random.Philox(key=[seed, 0])).random((count, 6))
    noise = np.random.Generator(np.random.Philox(key=[seed, 1])).normal(size=(count, SIZE, SIZE))
    kinds = (rows[:, 0] * len(SHAPES)).astype(int)
    x, y, radius, angle, light = rows[:, 1:, np.newaxis, np.newaxis].swapaxes(0, 1)
    radius = 6.0 + 4.0 * radius
    across, down = np.meshgrid(np.arange(SIZE), np.arange(SIZE))
    # The whole shape is in the picture.
    u = (across - radius - x * (SIZE - 1 - 2 * radius)) / radius
    v = (down - radius - y * (SIZE - 1 - 2 * radius)) / radius
    sine, cosine = np.sin(2 * np.pi * angle), np.cos(2 * np.pi * angle)
    outside = distances(u * cosine + v * sine, v * cosine - u * sine)
    outside = np.choose(kinds[:, np.newaxis, np.newaxis], outside) * radius
    pictures = np.clip(0.5 - outside, 0.0, 1.0) * (0.5 + 0.5 * light) + NOISE * noise
    return pictures[..., np.newaxis].astype(np.float32), kinds


def build_model(epochs: int) -> mr.Model:
    """Return a convolutional network, compiled for so many epochs."""
    model = mr.Sequential(
        [
            mr.layers.Input(shape=(SIZE, SIZE, 1)),
            mr.layers.Conv2D(8, 3, activation="relu"),
            mr.layers.MaxPooling2D(),
            mr.layers.Conv2D(32, 3, activation="relu"),
            mr.layers.MaxPooling2D(),
            mr.layers.Conv2D(64, 3, padding="same", activation="relu"),
            mr.layers.Flatten(),
            mr.layers.Dense(64, activation="relu"),
            mr.layers.Dense(len(SHAPES)),
        ]
    )
    loss = mr.losses.SparseCategoricalCrossentropy(from_logits=True)
    # Smaller and smaller steps, down to none.
    rate = mr.optim.schedules.CosineDecay(0.004, epochs * PICTURES // BATCH)
    model.compile(mr.optim.Adam(rate), loss, metrics=["accuracy"])
    return model


def save_plot(pictures: np.ndarray, titles: list[str], path: Path) -> None:
    """Draw the first pictures, each with what it shows and what it was taken for."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    for axes in figure.subplots(2, 6).flat:
        axes.axis("off")
    for axes, picture, title in zip(figure.axes, pictures, titles, strict=False):
        axes.imshow(picture, cmap="gray", vmin=-0.3, vmax=1.3)
        axes.set_title(title, fontsize=8)
    figure.savefig(path)
    print(f"Pictures that were told wrong are in {path}.")


def main() -> None:
    """Train, and print how many of the held-out pictures are told right."""
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

    mr.random.set_seed(1)
    with mr.MirroredStrategy().scope():
        model = build_model(arguments.epochs)
    model.summary()
    model.fit(*draw_pictures(PICTURES, seed=0), batch_size=BATCH, epochs=arguments.epochs)

    pictures, kinds = draw_pictures(HELD_OUT_PICTURES, seed=1)
    answers = model.predict(pictures, verbose=0).argmax(axis=1)
    wrong = np.flatnonzero(answers != kinds)
    print(f"Held-out accuracy: {1 - len(wrong) / len(kinds):.1%} of {len(kinds)} pictures")
    for number in wrong[:5]:
        print(f"Picture {number}: {SHAPES[kinds[number]]}, taken for a {SHAPES[answers[number]]}")
    if arguments.plot:
        titles = [f"{SHAPES[kinds[i]]}, not {SHAPES[answers[i]]}" for i in wrong]
        save_plot(pictures[wrong], titles, arguments.plot)


if __name__ == "__main__":
    main()
