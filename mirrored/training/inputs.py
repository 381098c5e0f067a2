"""What `fit`, `evaluate` and `predict` run on: the data that they are given, checked.

All of it is checked before the first step, so bad input changes nothing.
"""

from collections.abc import Sequence
from contextlib import ExitStack, closing
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
from mirrored.training.compilation import CompiledNetwork

_BATCH_SIZE = 32  # Keras' default.
# What the arguments are called, where that depends on what the data are for.
_STEPS = {"fit": "steps_per_epoch", "validation": "validation_steps"}
_SIZES = {"validation": "validation_batch_size"}


@dataclass(frozen=True, kw_only=True)
class GivenData:
    """Data as a method was given them, and how they make batches and epochs.

    Attributes:
        use: What the data are for: "fit", "validation", "evaluate" or "predict".
        x: The inputs, or a stream of batches; for "validation" all that was given.
        y: The targets.
        sample_weight: The weights.
        batch_size: The number of examples in a batch of arrays.
        default_size: That number where it was not given.
        steps: How many batches an epoch has; None: all.
        class_weight: A weight for each integer label.
        shuffle: Whether arrays are taken in another order in each pass.

    Raises:
        ValueError: A number is out of range.
    """

    use: str
    x: Any
    y: Any = None
    sample_weight: Any = None
    batch_size: int | None
    default_size: int | None = None
    steps: int | None
    class_weight: dict[int, float] | None = None
    shuffle: bool = False

    def __post_init__(self) -> None:
        if self.steps is not None:
            check_count(self._steps_name, self.steps, least=1)
        if not isinstance(self.shuffle, bool | np.bool_):
            raise ValueError(f"`shuffle` is True or False. Received: shuffle={self.shuffle!r}")
        if self.batch_size is not None:
            check_batch_size(self.batch_size, self._size_name)

    @property
    def _steps_name(self) -> str:
        return _STEPS.get(self.use, "steps")

    @property
    def _size_name(self) -> str:
        return _SIZES.get(self.use, "batch_size")

    def epochs(self) -> Epochs:
        """Return the batches, to be closed; of a stream the first one is read."""
        stream = self.stream()
        return self.of_arrays(self.arrays()) if stream is None else self.of_stream(stream)

    def stream(self) -> Any:
        """Return what gives batches, those of a distributed dataset whole; None: arrays do."""
        data = self.x
        if isinstance(data, DistributedDataset):
            whole = data.whole
            data = (
                whole if isinstance(whole, Dataset) else Dataset.from_generator(data.global_batches)
            )
        return data if is_stream(data) else None

    def of_stream(self, data: Any) -> Epochs:
        """Return the batches that a stream gives, which is all that may be given then."""
        kind = described(data)
        for name, value, what in (
            ("y", self.y, "the targets"),
            ("sample_weight", self.sample_weight, "the sample weights"),
        ):
            if value is not None:
                raise ValueError(
                    f"When providing `x` as {kind}, `{name}` should not be passed. Instead, {what} "
                    f"should be included as part of the {type(data).__name__}."
                )
        if self.batch_size is not None:
            raise ValueError(
                f"The `{self._size_name}` argument must not be specified for the given input type. "
                f"Received input: {kind}, {self._size_name}: {self.batch_size!r}. Its batches are "
                "global batches already."
            )
        return Epochs.of_stream(
            data,
            self.use,
            self.steps,
            self._steps_name,
            goes_on=self.use == "fit",
            class_weight=self.class_weight,
        )

    def arrays(self) -> Arrays:
        """Return what was given as arrays."""
        if self.use != "validation":
            return adapt(self.x, self.y, self.sample_weight, for_what=self.use)
        data = self.x
        if not isinstance(data, list | tuple) or len(data) not in (2, 3):
            raise ValueError(
                "`validation_data` is a tuple (x, y) or (x, y, sample_weight), or a dataset of "
                f"batches of these. Received: {described(data)}"
                f"{f' of {len(data)}' if isinstance(data, list | tuple) else ''}."
            )
        return adapt(*data, for_what=self.use)

    def of_arrays(self, arrays: Arrays) -> Epochs:
        """Return the batches of arrays."""
        if self.class_weight is not None:
            arrays = with_class_weights(arrays, self.class_weight)
        given = self.default_size if self.batch_size is None else self.batch_size
        size = _BATCH_SIZE if given is None else given
        steps = available = -(-arrays.size // size)
        if self.steps is not None:
            steps = self.steps
        if steps > available:
            raise ValueError(
                f"`{self._steps_name}` is more than the data has: {arrays.size} examples in "
                f"batches of {size} make {available}. Received: {self._steps_name}={steps}"
            )
        return Epochs.of_arrays(
            arrays, size, steps, goes_on=self.use == "fit", shuffled=bool(self.shuffle)
        )


def fit_epochs(
    model: CompiledNetwork,
    training: GivenData,
    validation: GivenData,
    validation_split: float,
    stack: ExitStack,
) -> tuple[Epochs, Epochs | None]:
    """Return what `fit` trains on and what it validates on, if it does; the model is built for it.

    Args:
        model: The model.
        training: What to train on.
        validation: What to validate on; without `x` there is none but that of `validation_split`.
        validation_split: The part of arrays, taken from their end, to validate on instead.
        stack: Closes the data.

    Raises:
        ValueError: Data do not fit the model or each other.
    """
    validated: Epochs | None = None
    stream = training.stream()
    if stream is not None:
        if validation_split:
            raise ValueError(
                "Argument `validation_split` is only supported for tensors or NumPy arrays. "
                f"Found incompatible type in the input: {type(stream)}. Pass a dataset as "
                "`validation_data`."
            )
        trained = training.of_stream(stream)
    else:
        arrays = training.arrays()
        if validation.x is None and validation_split:
            arrays, rest = split_validation(arrays, validation_split)
            validated = validation.of_arrays(rest)
        trained = training.of_arrays(arrays)
    stack.enter_context(closing(trained))
    if validation.x is not None:
        validated = stack.enter_context(closing(validation.epochs()))
    prepare(model, trained, validated)
    # The order of the examples comes from the global seed, on any number of replicas; that of
    # arrays is taken here, once the model is built.
    trained.begin()
    return trained, validated


def epochs_to_validate(frequency: int | Sequence[int], epochs: int) -> Sequence[int]:
    """Return the epochs, counted from 1, after which to validate."""
    if isinstance(frequency, list | tuple | set):
        return [check_count("validation_freq", each, least=1) for each in frequency]
    every = check_count("validation_freq", frequency, least=1)
    return range(every, epochs + 1, every)


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
    compilation = model._compilation
    if compilation is not None and compilation.has_names_to_resolve:
        with model.distribute_strategy.scope():
            compilation.resolve_metrics(model.output_shape)


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
