"""Tells which of two pictures shows the larger digit, and so learns how large each digit is.

A model of two inputs: one part, shared by both pictures, gives each a size, and what it learns from
is nothing but which of the two is the larger one.
"""

import argparse
import sys

import numpy as np

import mirrored as mr

PAIRS, HELD_OUT_PAIRS = 6000, 2000


def parse_arguments() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpus", type=int, choices=range(1, 9), default=2, help="default: 2")
    parser.add_argument("--epochs", type=int, default=8, help="default: 8")
    arguments = parser.parse_args()
    if arguments.epochs < 1:
        parser.error(f"--epochs must be 1 or more. Received: {arguments.epochs}")
    return arguments


def load_pictures() -> list[np.ndarray]:
    """Return pictures for training and held-out ones (a fifth of all), and the digits on each."""
    try:
        from sklearn import datasets, model_selection
    except ImportError as error:
        sys.exit(
            f"This example needs scikit-learn ({error}). "
            f"Install it with: {sys.executable} -m pip install scikit-learn"
        )
    pictures, digits = datasets.load_digits(return_X_y=True)
    return model_selection.train_test_split(
        pictures / 16.0, digits, test_size=0.2, random_state=0, stratify=digits
    )


def draw_pairs(
    pictures: np.ndarray, digits: np.ndarray, count: int, rng: np.random.Generator
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return pairs of pictures of different digits, and whether the first digit is the larger."""
    found = rng.integers(len(digits), size=(2 * count, 2))
    found = found[digits[found[:, 0]] != digits[found[:, 1]]][:count]
    one, other = found.T
    return {"one": pictures[one], "other": pictures[other]}, digits[one] > digits[other]


def choose_gpus(count: int) -> None:
    """Make ``count`` GPUs visible, simulated ones where there are not enough."""
    if len(mr.config.list_physical_devices("GPU")) < count:
        mr.config.experimental.set_simulated_gpus(count)
    mr.config.set_visible_devices(mr.config.list_physical_devices("GPU")[:count], "GPU")


def build_model() -> mr.Model:
    """Return a compiled model from two pictures to the probability that the first is larger."""
    one = mr.layers.Input(shape=(64,), name="one")
    other = mr.layers.Input(shape=(64,), name="other")
    size = mr.Sequential(
        [
            mr.layers.Dense(64, activation="relu"),
            mr.layers.Dense(32, activation="relu"),
            mr.layers.Dense(1),
        ],
        name="size",
    )
    # The same weights for both pictures: a layer is shared by calling it twice.
    difference = mr.layers.subtract([size(one), size(other)])
    model = mr.Model({"one": one, "other": other}, mr.sigmoid(difference))
    model.compile(mr.optim.Adam(0.002), "binary_crossentropy", metrics=["accuracy"])
    return model


def main() -> None:
    """Train, and print how many of the held-out pairs are told right, and each digit's size."""
    arguments = parse_arguments()
    pictures, held_out, digits, held_out_digits = load_pictures()
    choose_gpus(arguments.gpus)

    rng = np.random.default_rng(0)
    pairs, larger = draw_pairs(pictures, digits, PAIRS, rng)
    mr.random.set_seed(1)
    with mr.MirroredStrategy().scope():
        model = build_model()
    model.summary()
    model.fit(pairs, larger, batch_size=64, epochs=arguments.epochs)

    pairs, larger = draw_pairs(held_out, held_out_digits, HELD_OUT_PAIRS, rng)
    loss, accuracy = model.evaluate(pairs, larger, verbose=0)
    print(f"Held-out loss: {loss:.4f}, accuracy: {accuracy:.2%} of {len(larger)} pairs")
    # The shared part is a model by itself, which nobody ever told a digit.
    sizes = model.get_layer("size").predict(held_out, verbose=0)[:, 0]
    means = [sizes[held_out_digits == digit].mean() for digit in range(10)]
    print("Mean sizes:", ", ".join(f"{digit} {mean:.1f}" for digit, mean in enumerate(means)))


if __name__ == "__main__":
    main()
