"""Operations that change rows of variables: `scatter_update` and its like."""

from collections.abc import Callable
from typing import Any

from mirrored import ops
from mirrored.compat.v1.elements import Tensor
from mirrored.compat.v1.running import storage_of
from mirrored.compat.v1.sources import converted
from mirrored.compat.v1.variables import Variable
from mirrored.devices import device


def _drawn(
    function: Callable[..., Any], ref: Variable, indices: Any, updates: Any, kind: str, name: Any
) -> Tensor:
    """Return a tensor that changes rows of a variable, and is its new value."""
    name = name or kind
    with ref.graph.as_default():
        places = converted(indices, name=f"{name}/indices")
        rows = converted(updates, ref._dtype, f"{name}/updates")

    def write(places: Any, rows: Any) -> Any:
        storage = storage_of(ref)
        value = storage.read_value()
        wanted = (*places.shape, *value.shape[1:])
        spread = ops.broadcast_to(rows, wanted)
        storage.assign(function(value, ops.expand_dims(places, -1), spread))
        return storage.read_value()

    with device(ref.op.node.device):
        operation = ref.graph.draw(
            write,
            (places, rows),
            kind=kind,
            name=name,
            results=Tensor(ref._shape, ref._dtype, ""),
            asks_run=True,
        )
    operation.reads = operation.writes = (ref,)
    operation.refers = ref
    return operation.outputs[0]


def scatter_update(
    ref: Variable, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
) -> Tensor:
    """Return a tensor that sets rows of a variable, and is its new value.

    Args:
        ref: The variable.
        indices: Which rows.
        updates: Their values.
        use_locking: Accepted for compatibility.
        name: Its name.
    """
    function = ops.tensor_scatter_nd_update
    return _drawn(function, ref, indices, updates, "ScatterUpdate", name)


def scatter_add(
    ref: Variable, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Tensor:
    """Return a tensor that adds to rows of a variable; the rest as `scatter_update`."""
    return _drawn(ops.tensor_scatter_nd_add, ref, indices, updates, "ScatterAdd", name)


def scatter_sub(
    ref: Variable, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Tensor:
    """Return a tensor that subtracts from rows of a variable; the rest as `scatter_update`."""
    return _drawn(ops.tensor_scatter_nd_sub, ref, indices, updates, "ScatterSub", name)
