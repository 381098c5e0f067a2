"""Looks words up by a small transformer: attention finds what is asked for in lists of any length.

A list holds words of a key and a value each, and one key in front, whose value is the answer. Lists
are filled up with zeros, which a mask hides from attention, on any number of GPUs.
"""

import argparse

import numpy as np

import mirrored as mr

KEYS, VALUES, LONGEST = 8, 6, 8
WORDS = 1 + KEYS + KEYS * VALUES  # 0 fills up, then keys alone, then keys with values.


def parse_arguments() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpus", type=int, choices=range(1, 9), default=2, help="default: 2")
    parser.add_argument("--epochs", type=int, default=5, help="default: 5")
    arguments = parser.parse_args()
    if arguments.epochs < 1:
        parser.error(f"--epochs must be 1 or more. Received: {arguments.epochs}")
    return arguments


def make_lists(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return lists of words, (count, 1 + LONGEST), and the value that each asks for."""
    draws = np.random.default_rng(seed)
    keys = draws.permuted(np.tile(np.arange(KEYS), (count, 1)), axis=1)[:, :LONGEST]
    values = draws.integers(VALUES, size=keys.shape)
    lengths = draws.integers(1, LONGEST + 1, size=count)
    asked = draws.integers(lengths)
    words = 1 + KEYS + keys * VALUES + values
    words[np.arange(LONGEST) >= lengths[:, None]] = 0
    each = np.arange(count)
    return np.column_stack([1 + keys[each, asked], words]), values[each, asked]


def choose_gpus(count: int) -> None:
    """Make ``count`` GPUs visible, simulated ones where there are not enough."""
    if len(mr.config.list_physical_devices("GPU")) < count:
        mr.config.experimental.set_simulated_gpus(count)
    mr.config.set_visible_devices(mr.config.list_physical_devices("GPU")[:count], "GPU")


def block(inputs: mr.Tensor) -> mr.Tensor:
    """Return what a block of a transformer makes of (batch, words, features)."""
    size = inputs.shape[-1]
    attended = mr.layers.MultiHeadAttention(num_heads=2, key_dim=size // 2)(inputs, inputs)
    h = mr.layers.LayerNormalization()(mr.layers.add([inputs, attended]))
    wide = mr.layers.Dense(2 * size, activation="gelu")(h)
    return mr.layers.LayerNormalization()(mr.layers.add([h, mr.layers.Dense(size)(wide)]))


def build_model() -> mr.Model:
    """Return a compiled model from words to the probabilities of the values."""
    words = mr.layers.Input(shape=(1 + LONGEST,), dtype="int32")
    h = block(mr.layers.Embedding(WORDS, 32, mask_zero=True)(words))
    model = mr.Model(words, mr.layers.Dense(VALUES, activation="softmax")(h[:, 0]))
    model.compile(mr.optim.Adam(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def main() -> None:
    """Train, and print how many of new lists are answered."""
    arguments = parse_arguments()
    choose_gpus(arguments.gpus)
    mr.random.set_seed(1)
    with mr.MirroredStrategy().scope():
        model = build_model()
    model.fit(*make_lists(2048, seed=0), batch_size=64, epochs=arguments.epochs, verbose=2)
    loss, accuracy = model.evaluate(*make_lists(1024, seed=1), verbose=0)
    print(f"New lists: loss {loss:.4f}, accuracy {accuracy:.2%}")


if __name__ == "__main__":
    main()
