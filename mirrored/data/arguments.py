"""The arguments of `fit`, `evaluate` and `predict` that say what they run on, and their batches."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from mirrored._numbers import as_positive, check_count
from mirrored.data.arrays import check_finite, is_stream
from mirrored.data.columns import described
from mirrored.data.elements import GlobalBatches
from mirrored.data.epochs import Epochs
from mirrored.data.passes import Passes, cardinality_of, passes_of, passes_of_arrays
from mirrored.data.stored import Given, PassesOfStored, Stored, adapt_all, split_validation, weighed
from mirrored.data.transform import INFINITE_CARDINALITY

_BATCH_SIZE = 32  # Keras' default.
# The names of the arguments, where they depend on what the data are for.
_STEPS = {"fit": "steps_per_epoch", "validation": "validation_steps"}
_SIZES = {"validation": "validation_batch_size"}
VALIDATION_DATA = (
    "`validation_data` must be a tuple (x, y) or (x, y, sample_weight), or a dataset of such "
    "batches."
)
# From data, the batches in them and their use to the batches that this process takes, and what
# makes of their passes those of all processes; None where all have the same.
Among = Callable[[Any, Any, str], tuple[Any, Callable[[Passes], Passes] | None]]


@dataclass(kw_only=True)
class DataArguments:
    """The data that a method was called with, and how they make batches and epochs.

    Attributes:
        use: What the data are for: "fit", "validation", "evaluate" or "predict".
        x: The inputs, or a stream of batches; for "validation" all of `validation_data`.
        y: The targets.
        sample_weight: The weights.
        batch_size: The number of examples in a batch of arrays.
        default_size: That number where `batch_size` is None.
        steps: The number of batches in an epoch; None: all.
        class_weight: A weight for each integer label.
        shuffle: Whether arrays are taken in another order in each pass.
        validate: Whether they are looked through for NaN and infinity.

    """

    use: str
    x: Any
    y: Any = None
    sample_weight: Any = None
    batch_size: int | None = None
    default_size: int | None = None
    steps: int | None = None
    class_weight: dict[int, float] | None = None
    shuffle: bool = False
    validate: bool = False

    @property
    def _steps_name(self) -> str:
        return _STEPS.get(self.use, "steps")

    def check(self) -> None:
        """Raise ValueError where a number is out of range."""
        if self.steps is not None:
            check_count(self._steps_name, self.steps, least=1)
        if not isinstance(self.shuffle, bool | np.bool_):
            raise ValueError(f"`shuffle` must be True or False. Received: shuffle={self.shuffle!r}")
        if self.batch_size is not None:
            as_positive(_SIZES.get(self.use, "batch_size"), self.batch_size)

    def arrays(self) -> Given:
        """Return the data as arrays."""
        if self.use != "validation":
            return adapt_all(self.x, self.y, self.sample_weight, for_what=self.use)
        data = self.x
        parts = data if isinstance(data, list | tuple) else (data,)
        if not 1 <= len(parts) <= 3:
            raise ValueError(f"{VALIDATION_DATA} Received: {described(data)} of {len(parts)}.")
        return adapt_all(*parts, for_what=self.use)

    def of_arrays(self, arrays: Given) -> Epochs:
        """Return the batches of arrays, pass after pass.

        Args:
            arrays: The examples.
        """
        if self.class_weight is not None:
            arrays = weighed(arrays, self.class_weight)
        size = self.default_size if self.batch_size is None else self.batch_size
        if size is None:  # As in Keras, where only the number of steps is said.
            size = _BATCH_SIZE if self.steps is None else -(-arrays.size // self.steps)
        passes: Passes
        if isinstance(arrays, Stored):
            passes = PassesOfStored(arrays, size, shuffled=bool(self.shuffle))
        else:
            passes = passes_of_arrays(arrays, size, shuffled=bool(self.shuffle))
        count = -(-arrays.size // size)
        return self._epochs(passes, count if self.steps is None else self.steps, count)

    def epochs(self, among: Among | None = None) -> Epochs:
        """Return the batches, to be closed; of a stream the first one is read.

        Args:
            among: What asks the other processes for their batches; None: there is one process.

        Raises:
            ValueError: The data cannot be used.
        """
        return self._of_stream(among) if is_stream(self.x) else self.of_arrays(self.arrays())

    @property
    def _batches(self) -> Any:
        """The batches in a stream, those of a distributed dataset before they are cut."""
        return self.x.global_dataset() if isinstance(self.x, GlobalBatches) else self.x

    def _of_stream(self, among: Among | None) -> Epochs:
        """Return the batches that a dataset, a generator or another iterable gives."""
        data = self._batches
        kind = described(data)
        for name, value, noun in (
            ("y", self.y, "the targets"),
            ("sample_weight", self.sample_weight, "the sample weights"),
        ):
            if value is not None:
                raise ValueError(
                    f"When providing `x` as {kind}, `{name}` should not be passed. Instead, {noun} "
                    f"should be included as part of the {type(data).__name__}."
                )
        data, join = (data, None) if among is None else among(self.x, data, self.use)
        size = cardinality_of(data)
        if size == INFINITE_CARDINALITY and self.steps is None:
            name = self._steps_name
            raise ValueError(
                f"`{self.use}` needs `{name}` for a dataset that never ends. Received: an "
                f"infinite dataset and {name}=None. Pass `{name}`, or leave `.repeat()` out."
            )
        passes = passes_of(data, self.use, self.class_weight, shuffled=bool(self.shuffle))
        epochs = self._epochs(passes if join is None else join(passes), self.steps)
        if self.steps is None and size >= 0:
            epochs.steps = size
        return epochs

    def _epochs(self, passes: Passes, steps: int | None, pass_steps: int | None = None) -> Epochs:
        return Epochs(
            passes, steps, use=self.use, steps_name=self._steps_name, pass_steps=pass_steps
        )


def epochs_to_fit(
    training: DataArguments,
    validation: DataArguments,
    validation_split: float,
    among: Among | None,
    stack: ExitStack,
) -> tuple[Epochs, Epochs | None]:
    """Return what to train on, and what to validate on, if anything.

    Args:
        training: What to train on.
        validation: What to validate on; without `x` there is none but that of `validation_split`.
        validation_split: The part of arrays, taken from their end, to validate on instead.
        among: As for `DataArguments.epochs`.
        stack: Closes the data.

    Raises:
        ValueError: Data cannot be used.
    """
    validated: Epochs | None = None
    training.check()
    validation.check()
    if not validation_split:
        trained = training.epochs(among)
    elif is_stream(training.x):
        raise ValueError(
            "Argument `validation_split` is only supported for tensors or NumPy arrays. "
            f"Found incompatible type in the input: {type(training._batches)}. Pass a dataset as "
            "`validation_data`."
        )
    else:
        arrays = training.arrays()
        if validation.x is None:
            arrays, rest = split_validation(arrays, validation_split)
            validated = validation.of_arrays(rest)
        trained = training.of_arrays(arrays)
    stack.callback(trained.close)
    if validation.x is not None:
        validated = validation.epochs(among)
        stack.callback(validated.close)
    if training.validate:
        for epochs in (trained, validated):
            if epochs is not None:
                epochs.check_with(check_finite)
    return trained, validated
