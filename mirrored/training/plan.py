"""What `fit`, `evaluate` and `predict` are about to do: their checked arguments and data.

All of it is checked before the first step, so bad input changes nothing.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mirrored._numbers import check_count
from mirrored.data.arrays import (
    Arrays,
    adapt,
    check_batch_size,
    described,
    is_stream,
    split_validation,
    unbatched,
    with_class_weights,
)
from mirrored.data.dataset import Dataset
from mirrored.data.epochs import Epochs
from mirrored.distribute import DistributedDataset
from mirrored.layers.building import undone_on_failure
from mirrored.layers.shapes import without_batch
from mirrored.training.callbacks import Callback
from mirrored.training.compilation import CompiledNetwork
from mirrored.training.recorded import recorded_runner
from mirrored.training.runner import EagerRunner, Runner

_BATCH_SIZE = 32  # Keras' default.
Callbacks = Sequence[Callback] | Callback | None


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """The arguments of `Model.fit` beside the data; that method says what they mean."""

    batch_size: int | None
    epochs: int
    verbose: int | str
    callbacks: Callbacks
    validation_split: float
    validation_data: Any
    shuffle: bool
    class_weight: dict[int, float] | None
    sample_weight: Any
    initial_epoch: int
    steps_per_epoch: int | None
    validation_steps: int | None
    validation_batch_size: int | None
    validation_freq: int | Sequence[int]


@dataclass(frozen=True)
class RunOptions:
    """The arguments of `Model.evaluate` and `Model.predict` beside the data."""

    batch_size: int | None
    verbose: int | str
    steps: int | None
    callbacks: Callbacks


class FitPlan:
    """The checked arguments and data of one call of `fit`.

    Args:
        model: The model, which is built for the data.
        x: The inputs, or a stream of batches.
        y: The targets.
        options: The other arguments.
        stack: Closes the streams.

    Attributes:
        training: The batches to train on.
        validation: The batches to validate on, or None.
        epochs_to_validate: The epochs, counted from 1, after which to validate.
        runner: What runs the steps.

    Raises:
        ValueError: An argument is out of range, or data do not fit the model or each other.
    """

    def __init__(
        self, model: CompiledNetwork, x: Any, y: Any, options: FitOptions, stack: ExitStack
    ) -> None:
        _check_numbers(options)
        self.options = options
        self.epochs_to_validate = _epochs_to_validate(options)
        self.validation: Epochs | None = None
        x = _global(x)
        if is_stream(x):
            self.training: Epochs = self._stream(x, y)
        else:
            self.training = self._arrays(x, y)
        stack.enter_context(closing(self.training))
        if options.validation_data is not None:
            self.validation = self._validation(options.validation_data)
            stack.enter_context(closing(self.validation))
        prepare(model, self.training, self.validation)
        # The order of the examples comes from the global seed, on any number of replicas; that of
        # arrays is taken here, once the model is built.
        self.training.begin()
        self.runner = stack.enter_context(make_runner(model))

    def _arrays(self, x: Any, y: Any) -> Epochs:
        options = self.options
        arrays = adapt(x, y, options.sample_weight)
        if options.validation_data is None and options.validation_split:
            arrays, validation = split_validation(arrays, options.validation_split)
            self.validation = self._validation_arrays(validation)
        if options.class_weight is not None:  # It is for training only.
            arrays = with_class_weights(arrays, options.class_weight)
        size = batch_size(options.batch_size)
        steps = _steps("steps_per_epoch", options.steps_per_epoch, arrays.size, size)
        return Epochs.of_arrays(arrays, size, steps, goes_on=True, shuffled=bool(options.shuffle))

    def _stream(self, x: Any, y: Any) -> Epochs:
        options = self.options
        check_alone(x, y, options.sample_weight, options.batch_size)
        if options.validation_split:
            raise ValueError(
                "Argument `validation_split` is only supported for tensors or NumPy arrays. "
                f"Found incompatible type in the input: {type(x)}. Pass a dataset as "
                "`validation_data`."
            )
        return Epochs.of_stream(
            x,
            "fit",
            options.steps_per_epoch,
            "steps_per_epoch",
            goes_on=True,
            class_weight=options.class_weight,
        )

    def _validation(self, data: Any) -> Epochs:
        options = self.options
        data = _global(data)
        if is_stream(data):
            _check_no_batch_size("validation_batch_size", options.validation_batch_size, data)
            return Epochs.of_stream(
                data, "validation", options.validation_steps, "validation_steps", goes_on=False
            )
        if not isinstance(data, list | tuple) or len(data) not in (2, 3):
            raise ValueError(
                "`validation_data` is a tuple (x, y) or (x, y, sample_weight), or a dataset of "
                f"batches of these. Received: {described(data)}"
                f"{f' of {len(data)}' if isinstance(data, list | tuple) else ''}."
            )
        return self._validation_arrays(adapt(*data, for_what="validation"))

    def _validation_arrays(self, arrays: Arrays) -> Epochs:
        options = self.options
        given = options.validation_batch_size
        size = batch_size(options.batch_size if given is None else given)
        steps = _steps("validation_steps", options.validation_steps, arrays.size, size)
        return Epochs.of_arrays(arrays, size, steps, goes_on=False)


def plan_run(
    model: CompiledNetwork, x: Any, y: Any, sample_weight: Any, options: RunOptions, for_what: str
) -> Epochs:
    """Return the checked batches of an evaluation or a prediction, to be closed.

    Args:
        model: The model, which is built for the data.
        x: The inputs, or a stream of batches.
        y: The targets, or None.
        sample_weight: The weights, or None.
        options: The other arguments.
        for_what: "evaluate" or "predict".

    Raises:
        ValueError: An argument is out of range, or data do not fit the model or each other.
    """
    if options.steps is not None:
        check_count("steps", options.steps, least=1)
    x = _global(x)
    if is_stream(x):
        check_alone(x, y, sample_weight, options.batch_size)
        epochs = Epochs.of_stream(x, for_what, options.steps, "steps", goes_on=False)
    else:
        arrays = adapt(x, y, sample_weight, for_what=for_what)
        size = batch_size(options.batch_size)
        steps = _steps("steps", options.steps, arrays.size, size)
        epochs = Epochs.of_arrays(arrays, size, steps, goes_on=False)
    try:
        prepare(model, epochs)
    except BaseException:
        epochs.close()
        raise
    return epochs


def _global(data: Any) -> Any:
    """Return the global batches of a distributed dataset, which are cut here; all else as it is."""
    if not isinstance(data, DistributedDataset):
        return data
    whole = data.whole
    return whole if isinstance(whole, Dataset) else Dataset.from_generator(data.global_batches)


def make_runner(model: CompiledNetwork) -> AbstractContextManager[Runner]:
    """Return what runs the steps of a model, recorded ones unless it is to run eagerly.

    It is a context, at whose end the memory of recorded steps is given back.

    Args:
        model: A model that is built.
    """
    compilation = model._compilation
    if compilation is not None and compilation.run_eagerly:
        return nullcontext(EagerRunner(model))
    return recorded_runner(model)


# ---------------------------------------------------------------------------- the model


def prepare(model: CompiledNetwork, epochs: Epochs, validation: Epochs | None = None) -> None:
    """Build the model for these data where it is not built, and make its metrics.

    Args:
        model: The model.
        epochs: What it is about to run on; from here on with targets in the shape that the loss
            wants.
        validation: What it is validated on, if it is; likewise.

    Raises:
        ValueError: Inputs or targets do not fit the model; it is as it was.
    """
    with undone_on_failure(model):
        shape = model.fitted_shape(epochs.example.x.shape)
        _check_batched(model, epochs)
        model.build_for(without_batch(shape))
        epochs.check_with(partial(_checked, model))
        if validation is not None:
            _check_batched(model, validation)
            validation.check_with(partial(_checked, model))
            validated = model.fitted_shape(validation.example.x.shape)
            if validated[1:] != shape[1:]:
                # Only running it tells whether the model takes both; after an epoch is too late.
                model.check_runs_on(without_batch(validated))
    if model._compilation is not None:
        with model.distribute_strategy.scope():
            model._compilation.resolve_metrics(model.output_shape)


def _check_batched(model: CompiledNetwork, epochs: Epochs) -> None:
    """Raise where a stream gives single examples of what the model takes batches of."""
    shape = epochs.example.x.shape
    if epochs.is_stream and any(
        shape == each.shape[1:] and model.fitted_shape(shape)[1:] != each.shape[1:]
        for each in model.inputs
    ):
        raise ValueError(unbatched(model.name, [shape]))


def _checked(model: CompiledNetwork, arrays: Arrays) -> Arrays:
    """Return the arrays in the shapes that the model and the loss want, all checked."""
    model.check_input_shape(without_batch(arrays.x.shape))
    inputs = arrays.x.reshape(model.fitted_shape(arrays.x.shape))
    if arrays.y is None:
        return Arrays(inputs, None, arrays.sample_weight, arrays.size)
    loss = model.required_compilation().required_loss()
    targets = loss.check_targets(arrays.y, model.output_shape)
    if arrays.sample_weight is not None:
        loss.check_weights(arrays.sample_weight, model.output_shape)
    return Arrays(inputs, targets, arrays.sample_weight, arrays.size)


# ---------------------------------------------------------------------------- arguments


def _check_numbers(options: FitOptions) -> None:
    check_count("epochs", options.epochs, least=0)
    check_count("initial_epoch", options.initial_epoch, least=0)
    for name in ("steps_per_epoch", "validation_steps"):
        if getattr(options, name) is not None:
            check_count(name, getattr(options, name), least=1)
    if not isinstance(options.shuffle, bool | np.bool_):
        raise ValueError(f"`shuffle` is True or False. Received: shuffle={options.shuffle!r}")
    for name in ("batch_size", "validation_batch_size"):
        if getattr(options, name) is not None:
            check_batch_size(getattr(options, name), name)


def _epochs_to_validate(options: FitOptions) -> Sequence[int]:
    """Return the epochs, counted from 1, after which to validate."""
    frequency = options.validation_freq
    if isinstance(frequency, list | tuple | set):
        return [check_count("validation_freq", each, least=1) for each in frequency]
    every = check_count("validation_freq", frequency, least=1)
    return range(every, options.epochs + 1, every)


def check_alone(x: Any, y: Any, sample_weight: Any, batch_size: Any) -> None:
    """Raise ValueError where a stream of batches is given with what its batches hold.

    Args:
        x: The stream.
        y: The argument of that name.
        sample_weight: The argument of that name.
        batch_size: The argument of that name.
    """
    kind = described(x)
    for name, value, what in (
        ("y", y, "the targets"),
        ("sample_weight", sample_weight, "the sample weights"),
    ):
        if value is not None:
            raise ValueError(
                f"When providing `x` as {kind}, `{name}` should not be passed. Instead, {what} "
                f"should be included as part of the {type(x).__name__}."
            )
    _check_no_batch_size("batch_size", batch_size, x)


def _check_no_batch_size(name: str, value: Any, data: Any) -> None:
    if value is not None:
        raise ValueError(
            f"The `{name}` argument must not be specified for the given input type. Received "
            f"input: {described(data)}, {name}: {value!r}. Its batches are global batches "
            "already."
        )


def batch_size(value: int | None) -> int:
    """Return an argument that is a batch size, or Keras' default.

    Args:
        value: The argument, or None.

    Raises:
        ValueError: It is no positive integer.
    """
    return _BATCH_SIZE if value is None else check_batch_size(value)


def _steps(name: str, wanted: int | None, size: int, batch_size: int) -> int:
    available = -(-size // batch_size)
    if wanted is not None and wanted > available:
        raise ValueError(
            f"`{name}` is more than the data has: {size} examples in batches of {batch_size} make "
            f"{available}. Received: {name}={wanted}"
        )
    return available if wanted is None else wanted
