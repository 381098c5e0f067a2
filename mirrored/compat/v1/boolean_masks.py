"""Operations whose results have shapes that values decide: runs with one are not recorded."""

from typing import Any

from mirrored import ops
from mirrored._types import DTypeLike, TensorLike
from mirrored.compat.v1.graph import drawing
from mirrored.compat.v1.graph_elements import Tensor
from mirrored.compat.v1.running import has_values
from mirrored.compat.v1.sources import converted
from mirrored.ops.searching import Unique, UniqueWithCounts
from mirrored.ops.spec import as_dtype


def boolean_mask(
    tensor: TensorLike, mask: TensorLike, name: str = "boolean_mask", axis: int | None = None
) -> Tensor:
    """Return the parts of a tensor for which a mask is true.

    Args:
        tensor: The tensor.
        mask: Booleans of the shape of some of its axes, one after the other.
        name: Its name.
        axis: The first of these; None: 0.

    Raises:
        ValueError: The number of the mask's axes is not known, or is 0.
    """
    with drawing(name, tensor, mask) as (graph, _):
        values, wanted = converted(tensor, name="tensor"), converted(mask, "bool", "mask")
        first = axis or 0
        if wanted._shape is None:
            raise ValueError(
                "Number of mask dimensions must be specified, even if some dimensions are None.  "
                "E.g. shape=[None] is ok, but shape=None is not."
            )
        if not wanted._shape:
            raise ValueError("mask cannot be scalar.")
        sizes = values._shape
        if sizes is not None:
            sizes = (*sizes[:first], None, *sizes[first + len(wanted._shape) :])

        def masked(tensor: Any, mask: Any) -> Any:
            if not has_values():  # What it depends on is looked for: it may be all of the tensor.
                rest = tensor.shape[first + len(mask.shape) :]
                return ops.reshape(tensor, (*tensor.shape[:first], -1, *rest))
            return ops.boolean_mask(tensor, mask, axis=first)

        result = Tensor(sizes, values._dtype, "")
        return graph.draw(
            masked, (values, wanted), kind="BooleanMask", name="GatherV2", results=result
        ).outputs[0]


def places_where(condition: Any, name: str) -> Tensor:
    """Return where a condition is true: a row of places for each."""
    values = converted(condition, "bool", f"{name}/condition")
    axes = None if values._shape is None else len(values._shape)
    return values.graph.draw(
        ops.where,
        (values,),
        kind="Where",
        name=name,
        results=Tensor((None, axes), as_dtype("int64"), ""),
        asks_run=True,
    ).outputs[0]


def unique(x: TensorLike, out_idx: DTypeLike = "int32", name: str = "Unique") -> Any:
    """Return the unique numbers of a vector, and the index among them of each element.

    Args:
        x: The vector.
        out_idx: The dtype of these places.
        name: Its name.
    """
    return _unique(ops.unique, Unique, x, out_idx, "Unique", name)


def unique_with_counts(
    x: TensorLike, out_idx: DTypeLike = "int32", name: str = "UniqueWithCounts"
) -> Any:
    """Return the results of `unique`, and the count of each unique number.

    Args:
        x: The vector.
        out_idx: The dtype of the places and the counts.
        name: Its name.
    """
    return _unique(ops.unique_with_counts, UniqueWithCounts, x, out_idx, "UniqueWithCounts", name)


def _unique(function: Any, form: type[Any], x: Any, out_idx: Any, kind: str, name: str) -> Any:
    values = converted(x, name=f"{name}/x")
    dtype = as_dtype(out_idx)
    shapes = ((None,), values._dtype), (values._shape, dtype), ((None,), dtype)
    results = [Tensor(*pair, "") for pair, _ in zip(shapes, form._fields, strict=False)]
    operation = values.graph.draw(
        function, (values, dtype), kind=kind, name=name, results=form(*results), asks_run=True
    )
    return operation.node.structure


def dynamic_partition(
    data: TensorLike, partitions: TensorLike, num_partitions: int, name: str = "DynamicPartition"
) -> list[Tensor]:
    """Return a list of tensors: the rows of a tensor by their partition number.

    Args:
        data: The tensor.
        partitions: For each of its first parts the number of what it goes to.
        num_partitions: How many of these there are.
        name: Its name.
    """
    with drawing(name, data, partitions) as (graph, scope):
        values, numbers = converted(data, name="data"), converted(partitions, "int32", "partitions")
        rest = None
        if values._shape is not None and numbers._shape is not None:
            rest = (None, *values._shape[len(numbers._shape) :])

        def parted(data: Any, numbers: Any) -> Any:
            if not has_values():  # What it depends on is looked for: it may be all of the tensor.
                flat = ops.reshape(data, (-1, *data.shape[len(numbers.shape) :]))
                return [flat] * num_partitions
            return ops.dynamic_partition(data, numbers, num_partitions)

        results = [Tensor(rest, values._dtype, "") for _ in range(num_partitions)]
        return graph.draw(
            parted, (values, numbers), kind="DynamicPartition", name=scope, results=results
        ).outputs
