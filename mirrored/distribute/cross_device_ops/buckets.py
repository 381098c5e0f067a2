"""Buckets: tensors that are packed into one vector, so that sums are few and begin early.

Gradients are packed here once: a bucket can be summed while those of the next one are still being
computed, and what sums, clips or updates takes them out as they lie there.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mirrored import devices, ops
from mirrored._numbers import in_units
from mirrored.backends import MEGABYTE
from mirrored.ops.hooks import active_recorder, only
from mirrored.ops.shaping import RESHAPE
from mirrored.ops.spec import Shape, TensorSpec
from mirrored.ops.tensor import Tensor

# PyTorch's default (`bucket_cap_mb` of DistributedDataParallel). It was never measured here on
# several GPUs.
BUCKET_BYTES = 25 * MEGABYTE


class _Place(NamedTuple):
    """Where a tensor lies: in a vector, from an element on. A tensor alone is its own vector."""

    vector: Tensor
    start: int
    spec: TensorSpec

    @property
    def stop(self) -> int:
        return self.start + _size(self.spec)


class Buckets(Mapping[int, Tensor]):
    """Tensors of one replica by their numbers, packed into vectors or alone.

    Reading one gives a view of its vector; `vector` gives several as one.

    Args:
        tensors: Tensors that are alone, numbered from 0; None: there is none of that number.
    """

    def __init__(self, tensors: Iterable[Tensor | None] = ()) -> None:
        self._places = {i: _Place(t, 0, t._spec) for i, t in enumerate(tensors) if t is not None}

    def __getitem__(self, number: int) -> Tensor:
        vector, start, spec = self._places[number]
        if vector._spec == spec:
            return vector
        with only(), devices.device(vector._device):
            return ops.reshape(vector[start : start + _size(spec)], spec.shape)

    def __iter__(self) -> Iterator[int]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def vectors(self) -> list[Tensor]:
        """Return the vectors that the tensors lie in, each once."""
        return list({id(place.vector): place.vector for place in self._places.values()}.values())

    def mapped(self, function: Callable[[Tensor], Tensor]) -> "Buckets":
        """Return what a function of each element makes of the tensors, which lie as they do here.

        Args:
            function: Given a vector; its result has the same shape.
        """
        vectors: dict[int, Tensor] = {}
        for vector in self.vectors():
            with devices.device(vector._device):
                vectors[id(vector)] = function(vector)
        result = Buckets()
        result._places = {
            number: _Place(vectors[id(place.vector)], place.start, place.spec)
            for number, place in self._places.items()
        }
        return result

    def spec(self, number: int) -> TensorSpec:
        """Return the shape and dtype of a tensor."""
        return self._places[number].spec

    def add(self, numbers: Sequence[int], vector: Tensor, shapes: Sequence[Shape]) -> None:
        """Add tensors that lie in a vector, one after the other.

        Outside programs each is taken out at once, since a view is a copy there.
        """
        start, added = 0, {}
        for number, shape in zip(numbers, shapes, strict=True):
            added[number] = place = _Place(vector, start, TensorSpec(shape, vector.dtype))
            start = place.stop
        self._places.update(added)
        if active_recorder() is None:
            for number in numbers:
                self._places[number] = _Place(self[number], 0, self.spec(number))

    def vector(self, numbers: Sequence[int]) -> Tensor:
        """Return several tensors as one vector; those that lie in this order cost no copy."""
        runs: list[_Place] = []
        for number in numbers:
            place = self._places[number]
            if runs and runs[-1].vector is place.vector and runs[-1].stop == place.start:
                last = runs.pop()
                place = last._replace(spec=TensorSpec((place.stop - last.start,), last.spec.dtype))
            runs.append(place)
        parts = [_flat(run) for run in runs]
        return parts[0] if len(parts) == 1 else ops.concat(parts, axis=0)

    def renumbered(self, numbers: Mapping[int, int]) -> "Buckets":
        """Return some of the tensors: by the new number of each, the one that it has here."""
        result = Buckets()
        result._places = {new: self._places[old] for new, old in numbers.items()}
        return result

    def updated(self, tensors: Mapping[int, Tensor]) -> "Buckets":
        """Return the same tensors, but for some that are alone in place of theirs, or beside."""
        result = Buckets()
        alone = {number: _Place(tensor, 0, tensor.spec) for number, tensor in tensors.items()}
        result._places = {**self._places, **alone}
        return result


class BucketedBatch(Sequence[list[Any]]):
    """A batch of values, each as its tensors by replica, that lies in buckets on each replica."""

    def __init__(self, replicas: Sequence[Buckets]) -> None:
        self.replicas = list(replicas)

    def __len__(self) -> int:
        return len(self.replicas[0]) if self.replicas else 0

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        if not -len(self) <= place < len(self):
            raise IndexError(f"A batch of {len(self)} values has no value {place}.")
        number = place % len(self)
        return [replica[number] for replica in self.replicas if number in replica]


def by_replica(batch: Sequence[Sequence[Tensor]], replicas: int) -> list[Buckets]:
    """Return a batch's tensors of each replica, in the buckets that they lie in."""
    if isinstance(batch, BucketedBatch) and batch.replicas:
        return batch.replicas
    return [Buckets([tensors[replica] for tensors in batch]) for replica in range(replicas)]


def alike(batch: Sequence[Sequence[Tensor]]) -> list[list[int]]:
    """Return the places of the values that fit one vector: of one dtype, on the same devices."""
    groups: dict[Any, list[int]] = {}
    for i, values in enumerate(batch):
        key = (values[0].dtype, *(value._device for value in values))
        groups.setdefault(key, []).append(i)
    return list(groups.values())


def packed(values: Sequence[Sequence[Tensor]]) -> list[Tensor]:
    """Return values as one vector a replica; a lone value is as it is."""
    replicas = list(zip(*values, strict=True))
    return [tensors[0] if len(tensors) == 1 else _joined(tensors) for tensors in replicas]


def reduced_as_vectors(
    batch: Sequence[Sequence[Tensor]],
    groups: Sequence[Sequence[int]],
    reduce: Callable[[int, list[Tensor]], Sequence[Tensor]],
) -> Sequence[list[Tensor]]:
    """Return what each value is reduced to, by replica; in a program the results stay packed.

    Args:
        batch: The values, by replica; not every one has to have a tensor on each.
        groups: The places of the values that are reduced together.
        reduce: Given the number of a group, and its values as one vector a replica.
    """
    vectors = (
        reduce(number, packed([batch[i] for i in members])) for number, members in enumerate(groups)
    )
    return taken_apart(batch, groups, vectors)


def taken_apart(
    batch: Sequence[Sequence[Tensor]],
    groups: Iterable[Sequence[int]],
    vectors: Iterable[Sequence[Tensor]],
) -> Sequence[list[Tensor]]:
    """Return what lies in vectors, value by value; in a program they stay packed.

    Args:
        batch: The values that it has the shapes of.
        groups: The places of the values that lie in each vector.
        vectors: Each on every replica.
    """
    replicas = [Buckets() for _ in range(max(map(len, batch), default=0))]
    for members, reduced in zip(groups, vectors, strict=True):
        shapes = [batch[i][0].shape for i in members]
        for result, vector in zip(replicas, reduced, strict=False):
            result.add(members, vector, shapes)
    results = BucketedBatch(replicas)
    return list(results) if active_recorder() is None else results


def _joined(tensors: Sequence[Tensor]) -> Tensor:
    with devices.device(tensors[0]._device):
        return ops.concat([_as_vector(tensor) for tensor in tensors], axis=0)


def _flat(run: _Place) -> Tensor:
    vector, start, _ = run
    if run.stop - start == vector.size:
        return _as_vector(vector)
    return vector[start : run.stop]


def _as_vector(tensor: Tensor) -> Tensor:
    return tensor if tensor.ndim == 1 else RESHAPE(tensor, shape=(tensor.size,))


def bucket_bytes(total: int, num_packs: int, bytes_per_pack: int) -> int:
    """Return how many bytes a bucket has to hold before the next one begins.

    Args:
        total: The bytes of all tensors.
        num_packs: How many buckets of about equal size; 1: as many as `BUCKET_BYTES` makes, 0: one
            a tensor.
        bytes_per_pack: The answer, where it is not 0.

    Example:
        >>> [bucket_bytes(100, num_packs, 0) for num_packs in (0, 1, 3)]
        [0, 26214400, 34]
    """
    if bytes_per_pack:
        return bytes_per_pack
    if num_packs > 1:
        return -(-total // num_packs)
    return BUCKET_BYTES if num_packs else 0


def bucket_ranges(sizes: Sequence[int], least: int) -> list[range]:
    """Return the buckets, each as the places of its tensors, which stay in order and whole.

    Example:
        >>> bucket_ranges([4, 4, 9, 1, 2], 8)
        [range(0, 2), range(2, 3), range(3, 5)]
        >>> bucket_ranges([4, 4, 9], 0)
        [range(0, 1), range(1, 2), range(2, 3)]
    """
    buckets, start, held = [], 0, 0
    for place, size in enumerate(sizes):
        held += size
        if held >= least:
            buckets.append(range(start, place + 1))
            start, held = place + 1, 0
    if start < len(sizes):
        buckets.append(range(start, len(sizes)))
    return buckets


def nbytes(spec: TensorSpec) -> int:
    """Return the bytes of a tensor."""
    return _size(spec) * spec.dtype.itemsize


def _size(spec: TensorSpec) -> int:
    return math.prod(spec.shape)


def described(number: int, count: int, spec: TensorSpec) -> str:
    """Return what errors call the all-reduce of a bucket.

    Example:
        >>> import numpy as np
        >>> described(1, 5, TensorSpec((3 << 20,), np.dtype(np.float32)))
        'bucket 2 of 5 (12.0 MB of float32)'
    """
    size = nbytes(spec)
    text = in_units(size, ["MB"]) or f"{size} bytes"
    return f"bucket {number + 1} of {count} ({text} of {spec.dtype.name})"
