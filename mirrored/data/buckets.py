"""Elements by their length: `bucket_by_sequence_length` batches those of about one length.

A bucket is a range of lengths; it has a batch size of its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mirrored import _nest
from mirrored.data.padded_batches import parts_of, specs_or_ranks
from mirrored.data.sources import Transform
from mirrored.errors import InvalidArgumentError


@dataclass(frozen=True, slots=True)
class Buckets:
    """Ranges of lengths.

    Attributes:
        length: From an element to its length.
        boundaries: The least length of each bucket but the first.
        sizes: The batch size of each.
    """

    length: Callable[..., Any]
    boundaries: Sequence[int]
    sizes: Sequence[int]

    def __post_init__(self) -> None:
        """Raise ValueError where there are not as many sizes as buckets."""
        if len(self.sizes) != len(self.boundaries) + 1:
            raise ValueError(
                "`len(bucket_batch_sizes)` must equal `len(bucket_boundaries) + 1` but "
                f"`len(bucket_batch_sizes)={len(self.sizes)}` and "
                f"`len(bucket_boundaries)={len(self.boundaries)}`."
            )

    def number(self, *element: Any) -> int:
        """Return the number of an element's bucket."""
        length = int(self.length(*element))
        return sum(length >= each for each in self.boundaries)

    def size(self, bucket: Any) -> int:
        """Return the batch size of a bucket."""
        return self.sizes[int(bucket)]

    def bounded(self, bucket: int, group: Transform, shapes: Any) -> Any:
        """Return shapes to pad to, where the greatest length of a bucket stands for None."""
        if bucket == len(self.boundaries):
            raise InvalidArgumentError(
                "When pad_to_bucket_boundary=True, elements must have length < "
                f"max(bucket_boundaries). Received: bucket_boundaries={list(self.boundaries)} and "
                "an element of the last bucket. Add a boundary."
            )
        most = self.boundaries[bucket] - 1
        specs = specs_or_ranks(group)
        given = parts_of(specs, shapes, "padded_shapes")
        pairs = zip(given, _nest.flatten(specs), strict=True)
        filled = [
            [
                most if size is None else size
                for size in (leaf.shape or () if part is None else part)
            ]
            for part, leaf in pairs
        ]
        return _nest.pack_like(specs, filled)
