"""Writes what happens in training to files that TensorBoard shows."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from mirrored._files import goes_on, writer_of
from mirrored._numbers import check_count
from mirrored._types import PathLike
from mirrored.training.callbacks.callback import Callback, Logs
from mirrored.training.event_summaries import (
    SummaryWriter,
    as_scalar,
    create_file_writer,
    create_noop_writer,
    histogram,
)


class TensorBoard(Callback):
    """Writes losses, metrics, the learning rate and the weights to files of events.

    `tensorboard --logdir=logs` shows them; the package tensorboardX writes them. Those of training
    are in the folder "train", those of validation in "validation". What layers write themselves, by
    `mr.summary`, goes to the writer that is the default, which this callback leaves as it is.

    Args:
        log_dir: The folder; it is made.
        histogram_freq: After how many epochs to write histograms of the weights; 0: never.
        write_graph: Accepted for compatibility: there is no graph to show.
        write_images: False: weights are not shown as images.
        write_steps_per_second: Whether to write how many steps a second there were.
        update_freq: After how many batches to write losses and metrics too, or "batch" for each;
            "epoch": after epochs alone.
        profile_batch: 0: `mr.profiler.trace` writes profiles.
        embeddings_freq: 0: there are no embeddings.
        embeddings_metadata: None: there are no embeddings.

    Raises:
        ValueError: Something is asked for that is not there, or a frequency is no number.
        ImportError: When training begins: tensorboardX is not installed.
        OSError: The files cannot be written.

    Example:
        >>> import os, tempfile
        >>> import mirrored as mr
        >>> model = mr.Sequential([mr.layers.Input(shape=(1,)), mr.layers.Dense(1)])
        >>> model.compile("sgd", "mse")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     board = mr.callbacks.TensorBoard(folder)
        ...     data = {"validation_data": ([[1.0]], [[2.0]]), "verbose": 0}
        ...     history = model.fit([[1.0]], [[2.0]], callbacks=[board], **data)
        ...     sorted(os.listdir(folder))
        ['train', 'validation']
    """

    _kept = ("_batches", "_before_epoch", "_iterations")

    def __init__(
        self,
        log_dir: PathLike = "logs",
        histogram_freq: int = 0,
        write_graph: bool = True,
        write_images: bool = False,
        write_steps_per_second: bool = False,
        update_freq: int | str = "epoch",
        profile_batch: int | tuple[int, int] = 0,
        embeddings_freq: int = 0,
        embeddings_metadata: None = None,
    ) -> None:
        super().__init__()
        for name, value, advice in (
            ("write_images", write_images, "`histogram_freq` shows weights as histograms."),
            ("profile_batch", profile_batch, "Use `mr.profiler.trace`, which writes profiles."),
            ("embeddings_freq", embeddings_freq, "Layers have no embeddings here."),
            ("embeddings_metadata", embeddings_metadata, "Layers have no embeddings here."),
        ):
            if value:
                raise ValueError(f"`{name}` is not provided. Received: {name}={value!r}. {advice}")
        self.log_dir = os.fspath(log_dir)
        self.histogram_freq = check_count("histogram_freq", histogram_freq, least=0)
        self.write_graph = write_graph
        self.write_images = write_images
        self.write_steps_per_second = write_steps_per_second
        self.update_freq = 1 if update_freq == "batch" else update_freq
        if self.update_freq != "epoch":
            check_count("update_freq", self.update_freq, least=1)
        self._writers: dict[tuple[str, bool], SummaryWriter] = {}
        self._writes: Callable[[], bool] | None = None
        # The folders, values and steps of this epoch and of the one before: if the worker that
        # writes dies, these may not be in its file.
        self._recent: list[tuple[str, Logs, int]] = []
        self._older: list[tuple[str, Logs, int]] = []
        self._batches = self._before_epoch = self._before_span = 0
        self._iterations = 0
        self._epoch_began = self._span_began = 0.0

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_writers": {}, "_writes": None}

    def steps_between(self, kind: str, steps: int) -> int:
        """Return how many steps may run between two looks at what to write."""
        return self._steps_until(self.update_freq, kind, steps, TensorBoard)

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Make the file of training."""
        self._batches = 0
        self._writer("train")

    def on_train_end(self, logs: Logs | None = None) -> None:
        """Close the files."""
        for name in dict.fromkeys(name for name, _, _ in [*self._older, *self._recent]):
            self._writer(name)
        for writer in self._writers.values():
            writer.close()

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        """Note how far training is."""
        self._older, self._recent = self._recent, []
        self._before_epoch = self._batches
        self._iterations = int(self.model.optimizer.iterations)
        self._epoch_began = time.perf_counter()

    def on_train_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """Note when the batch begins."""
        self._before_span = batch
        self._span_began = time.perf_counter()

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Write losses and metrics, where it is time."""
        self._batches = self._before_epoch + batch + 1
        if self.update_freq == "epoch" or self._batches % int(self.update_freq):
            return
        values = {f"batch_{name}": value for name, value in (logs or {}).items()}
        if self.write_steps_per_second:
            steps, seconds = batch + 1 - self._before_span, time.perf_counter() - self._span_began
            values = {"batch_steps_per_second": steps / max(seconds, 1e-9), **values}
        self._write("train", values, self._batches)

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Write losses and metrics of the epoch, and the weights where it is time."""
        optimizer = self.model.optimizer
        trained = {k: v for k, v in (logs or {}).items() if not k.startswith("val_")}
        validation = {k[4:]: v for k, v in (logs or {}).items() if k.startswith("val_")}
        if logs:
            trained["learning_rate"] = float(optimizer.learning_rate)
            if self.write_steps_per_second:
                steps = int(optimizer.iterations) - self._iterations
                seconds = time.perf_counter() - self._epoch_began
                trained["steps_per_second"] = steps / max(seconds, 1e-9)
        for name, values in (("train", trained), ("validation", validation)):
            self._write(name, {f"epoch_{key}": value for key, value in values.items()}, epoch)
        if self.histogram_freq and epoch % self.histogram_freq == 0:
            self._write_weights(epoch)
        for writer in self._writers.values():
            writer.flush()

    def on_test_begin(self, logs: Logs | None = None) -> None:
        """Make the file of validation."""
        self._writer("validation")

    def on_test_end(self, logs: Logs | None = None) -> None:
        """Write the loss and the metrics of an evaluation, by the steps of training so far."""
        values = {f"evaluation_{name}_vs_iterations": value for name, value in (logs or {}).items()}
        self._write("validation", values, int(self.model.optimizer.iterations))

    def _let_go(self) -> None:
        with suppress(OSError):  # What could not be written was an error before.
            self.on_train_end()
        self._writers, self._writes, self._older, self._recent = {}, None, [], []

    def _writer(self, name: str) -> SummaryWriter:
        if self._writes is None:
            self._writes = writer_of(self.log_dir)
        key = name, self._writes()  # Another worker may write from now on.
        if key not in self._writers:
            path = os.path.join(self.log_dir, name)
            writer = create_file_writer(path) if key[1] else create_noop_writer()
            self._writers[key] = writer
            for folder, values, step in [*self._older, *self._recent]:
                if folder == name:
                    _add(writer, values, step)
        return self._writers[key]

    def _write(self, name: str, values: Logs, step: int) -> None:
        if values:
            _add(self._writer(name), values, step)
            if goes_on():
                self._recent.append((name, values, step))

    def _write_weights(self, epoch: int) -> None:
        with self._writer("train").as_default():
            for layer in self.model.layers:
                for weight in layer.weights:
                    path = f"{self.model.name}/{weight.name.removesuffix(':0')}"
                    histogram(f"{path}/histogram", weight.numpy(), step=epoch)


def _add(writer: SummaryWriter, values: Logs, step: int) -> None:
    for key, value in values.items():
        # As `summary.scalar` does, without the tensors that cost more than a short step.
        writer.add(step, key, as_scalar(value), "scalars", None)
