"""The arguments of `fit`, `evaluate` and `predict` that say what they run on, and their batches."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mirrored._numbers import check_count
from mirrored.data.arrays import check_batch_size
from mirrored.data.columns import described
from mirrored.data.epochs import Epochs
from mirrored.data.passes import Passes, cardinality_of, passes_of, passes_of_arrays
from mirrored.data.stored import Given, Stored, adapt_all, weighed
from mirrored.data.transform import INFINITE_CARDINALITY

_BATCH_SIZE = 32  # Keras' default.
# The names of the arguments, where they depend on what the data are for.
_STEPS = {"fit": "steps_per_epoch", "validation": "validation_steps"}
_SIZES = {"validation": "validation_batch_size"}
VALIDATION_DATA = (
    "`validation_data` is a tuple (x, y) or (x, y, sample_weight), or a dataset of batches of "
    "these."
)
# From the batches of this process to those of all, where each has its own.
Among = Callable[[Passes], Passes]


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
    validate: bool = False

    def __post_init__(self) -> None:
        self._steps_name = _STEPS.get(self.use, "steps")
        if self.steps is not None:
            check_count(self._steps_name, self.steps, least=1)
        if not isinstance(self.shuffle, bool | np.bool_):
            raise ValueError(f"`shuffle` is True or False. Received: shuffle={self.shuffle!r}")
        if self.batch_size is not None:
            check_batch_size(self.batch_size, _SIZES.get(self.use, "batch_size"))

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
            from mirrored.data.stored_passes import PassesOfStored  # What has no room is seldom.

            passes = PassesOfStored(arrays, size, shuffled=bool(self.shuffle))
        else:
            passes = passes_of_arrays(arrays, size, shuffled=bool(self.shuffle))
        count = -(-arrays.size // size)
        return self._epochs(passes, count if self.steps is None else self.steps, count)

    def of_stream(
        self, data: Any, among: Callable[[Any, str], tuple[Any, Among | None]] | None = None
    ) -> Epochs:
        """Return the batches that a dataset, a generator or another iterable gives.

        Args:
            data: What gives batches.
            among: From these and their use to the batches that this process takes, and what makes
                of their passes those of all processes; None: there is one process.

        Raises:
            ValueError: There are other arguments with it, or no batch, the first one is none, or
                there is no end without a number of steps.
        """
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
        data, join = (data, None) if among is None else among(data, self.use)
        size = cardinality_of(data)
        if size == INFINITE_CARDINALITY and self.steps is None:
            name = self._steps_name
            raise ValueError(
                f"`{self.use}` needs `{name}` for a dataset that never ends. Received: an "
                f"infinite dataset and {name}=None. Give it, or leave `.repeat()` out."
            )
        passes = passes_of(data, self.use, self.class_weight, shuffled=bool(self.shuffle))
        epochs = self._epochs(passes if join is None else join(passes), self.steps)
        if self.steps is None and size >= 0:
            epochs.steps = size
        return epochs

    def _epochs(self, passes: Passes, steps: int | None, pass_steps: int | None = None) -> Epochs:
        return Epochs(
            passes,
            steps,
            goes_on=self.use == "fit",
            for_what=self.use,
            steps_name=self._steps_name,
            pass_steps=pass_steps,
        )
