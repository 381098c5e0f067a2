"""Trains a network on 1,797 real handwritten digits, mirrored on several GPUs.

The GPUs are simulated where there are not enough real ones. However many there are, the weights
come out the same, to rounding: ``--gpus`` changes where the work is done, not what is learned.
"""

import argparse
import importlib
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import mirrored as mr


def whole(least: int, most: int) -> Callable[[str], int]:
    """Return a converter for argparse that accepts whole numbers from ``least`` to ``most``."""

    def whole_number(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            wanted = f"must be a whole number from {least} to {most}"
            raise argparse.ArgumentTypeError(f"{wanted}. Received: {text}")
        return int(text)

    return whole_number


def parse_arguments() -> argparse.Namespace:
    """Return the command line, with a plot's folder already checked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--gpus",
        type=whole(0, 64),
        default=4,
        help="number of GPUs (default: 4); 0 trains on the CPU",
    )
    parser.add_argument("--epochs", type=whole(1, 10_000), default=30, help="default: 30")
    parser.add_argument(
        "--batch-size",
        type=whole(1, 1437),
        default=64,
        help="examples per step over all GPUs (default: 64)",
    )
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="save a picture of the learning curves"
    )
    arguments = parser.parse_args()
    if arguments.plot and not arguments.plot.parent.is_dir():
        parser.error(f"--plot: there is no folder {arguments.plot.parent}. Make it first.")
    return arguments


def check_extras(plot: Path | None) -> None:
    """End with one message when what is needed is not installed, or cannot draw such a file."""
    try:
        importlib.import_module("sklearn")
        if plot:
            from matplotlib.figure import Figure

            formats = Figure().canvas.get_supported_filetypes()
            if plot.suffix[1:].lower() not in formats:
                sys.exit(f"--plot: {plot} needs an ending, one of {', '.join(sorted(formats))}.")
    except ImportError as error:
        sys.exit(
            f"This example needs scikit-learn, and matplotlib for --plot ({error}). "
            f"Install both with: {sys.executable} -m pip install scikit-learn matplotlib"
        )


def choose_gpus(count: int) -> None:
    """Make ``count`` GPUs visible: real ones where there are enough, else simulated ones."""
    present = mr.config.list_physical_devices("GPU")
    if len(present) < count:
        print(f"{len(present)} of {count} GPUs are here: simulating {count} in host memory.")
        mr.config.experimental.set_simulated_gpus(count)
        present = mr.config.list_physical_devices("GPU")
    mr.config.set_visible_devices(present[:count], "GPU")


def load_digits() -> list[np.ndarray]:
    """Return training images, held-out images (a fifth of all), and the labels of each."""
    from sklearn import datasets, model_selection

    images, labels = datasets.load_digits(return_X_y=True)
    images = (images / 8.0 - 1.0).astype(np.float32)  # A pixel is 0 to 16: now -1 to 1.
    return model_selection.train_test_split(
        images, labels, test_size=0.2, random_state=0, stratify=labels
    )


def build_model() -> mr.Model:
    """Return a compiled network from 64 pixels to ten probabilities."""
    inputs = mr.layers.Input(shape=(64,))
    hidden = mr.layers.Dense(256, activation="relu")(inputs)
    hidden = mr.layers.Dropout(0.5)(hidden)
    model = mr.Model(inputs, mr.layers.Dense(10, activation="softmax")(hidden))
    model.compile(
        optimizer=mr.optim.SGD(learning_rate=0.1, momentum=0.9),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    return model


def draw_curves(history: dict[str, list[float]], path: Path) -> None:
    """Draw loss and accuracy over the epochs, for training and held-out images."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.5), layout="constrained")
    for axes, name in zip(figure.subplots(1, 2), ["loss", "accuracy"], strict=True):
        epochs = range(1, len(history[name]) + 1)
        axes.plot(epochs, history[name], label="training")
        axes.plot(epochs, history[f"val_{name}"], label="held out")
        axes.set(xlabel="epoch", ylabel=name)
        axes.legend()
    figure.savefig(path)
    print(f"Learning curves are in {path}.")


def main() -> None:
    """Train, and print how many of the held-out images are recognised."""
    arguments = parse_arguments()
    check_extras(arguments.plot)
    choose_gpus(arguments.gpus)
    train_images, test_images, train_labels, test_labels = load_digits()

    mr.random.set_seed(3)
    strategy = mr.MirroredStrategy()
    with strategy.scope():
        model = build_model()
    history = model.fit(
        train_images,
        train_labels,
        batch_size=arguments.batch_size,
        epochs=arguments.epochs,
        validation_data=(test_images, test_labels),
    )
    _, accuracy = model.evaluate(test_images, test_labels, verbose=0)

    print(f"Replicas: {strategy.num_replicas_in_sync}")
    print(f"Held-out accuracy: {accuracy:.2%} of {len(test_labels)} images")
    if arguments.plot:
        draw_curves(history.history, arguments.plot)


if __name__ == "__main__":
    main()
