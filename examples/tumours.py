"""Tells malignant tumours from benign ones by a table of 30 measurements of 569 of them.

Callbacks do what one would else watch over: they lower the learning rate, log each epoch, keep the
best weights in a file, and end training when it no longer helps.
"""

import argparse
import importlib
import sys
from pathlib import Path

import numpy as np

import mirrored as mr


def parse_arguments() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpus", type=int, choices=range(1, 9), default=2, help="default: 2")
    parser.add_argument(
        "--epochs", type=int, default=100, help="largest number of epochs (default: 100)"
    )
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path("tumours"),
        help="folder for the files that it writes (default: tumours)",
    )
    arguments = parser.parse_args()
    if arguments.epochs < 1:
        parser.error(f"--epochs must be 1 or more. Received: {arguments.epochs}")
    return arguments


def check_extras() -> None:
    """End with one message when what is needed is not installed."""
    try:
        for name in ("sklearn", "matplotlib.figure"):
            importlib.import_module(name)
    except ImportError as error:
        sys.exit(
            f"This example needs scikit-learn, and matplotlib for its plot ({error}). "
            f"Install both with: {sys.executable} -m pip install scikit-learn matplotlib"
        )


def load_table() -> list[np.ndarray]:
    """Return rows for training and held-out ones (a fifth of all), and the answers for each."""
    from sklearn import datasets, model_selection

    table, benign = datasets.load_breast_cancer(return_X_y=True)
    rows, held_out, *answers = model_selection.train_test_split(
        table, 1 - benign, test_size=0.2, random_state=0, stratify=benign
    )
    # Each measurement around 0, and about as large as the others: as those of the training rows.
    mean, deviation = rows.mean(axis=0), rows.std(axis=0)
    return [(rows - mean) / deviation, (held_out - mean) / deviation, *answers]


def choose_gpus(count: int) -> None:
    """Make ``count`` GPUs visible, simulated ones where there are not enough."""
    if len(mr.config.list_physical_devices("GPU")) < count:
        mr.config.experimental.set_simulated_gpus(count)
    mr.config.set_visible_devices(mr.config.list_physical_devices("GPU")[:count], "GPU")


def build_model() -> mr.Model:
    """Return a compiled network from 30 measurements to the probability of a malignant tumour."""
    model = mr.Sequential(
        [
            mr.layers.Input(shape=(30,)),
            mr.layers.Dense(16, activation="relu"),
            mr.layers.Dropout(0.3),
            mr.layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(mr.optim.SGD(0.1, momentum=0.9), "binary_crossentropy", metrics=["accuracy"])
    return model


def make_callbacks(folder: Path) -> list[mr.callbacks.Callback]:
    """Return what watches over the training."""

    def schedule(epoch: int, rate: float) -> float:
        return rate * 0.9 if epoch else rate

    return [
        mr.callbacks.LearningRateScheduler(schedule),
        mr.callbacks.CSVLogger(folder / "log.csv"),
        mr.callbacks.ModelCheckpoint(
            folder / "best.safetensors", save_best_only=True, save_weights_only=True
        ),
        mr.callbacks.EarlyStopping(patience=8, restore_best_weights=True, verbose=1),
    ]


def main() -> None:
    """Train, and print how many of the held-out tumours are told right."""
    arguments = parse_arguments()
    check_extras()
    rows, held_out, answers, held_out_answers = load_table()
    choose_gpus(arguments.gpus)
    arguments.folder.mkdir(parents=True, exist_ok=True)

    mr.random.set_seed(1)
    with mr.MirroredStrategy().scope():
        model = build_model()
    history = model.fit(
        rows,
        answers,
        epochs=arguments.epochs,
        validation_data=(held_out, held_out_answers),
        callbacks=make_callbacks(arguments.folder),
    )
    history.plot().savefig(arguments.folder / "curves.png")

    # Whoever needs the model later builds it again, and reads the file.
    model.load_weights(arguments.folder / "best.safetensors")
    loss, accuracy = model.evaluate(held_out, held_out_answers, verbose=0)
    print(f"Best epoch: {int(np.argmin(history.history['val_loss'])) + 1} of {len(history.epoch)}")
    print(f"Held-out loss: {loss:.4f}, accuracy: {accuracy:.2%} of {len(held_out)} tumours")
    print(f"Weights, log and curves are in {arguments.folder}.")


if __name__ == "__main__":
    main()
