"""How masks pass through layers: which of them a `call` is given, and what its outputs carry.

A mask is booleans, usually of shape (batch, steps), False where a step only fills up. It is an
attribute of a tensor, `_keras_mask`, under Keras' name and rules:

- `Layer.__call__` fills the parameter `mask` of `call` with the masks of its inputs, where these
  are one argument, and where they are several each parameter `query_mask` with those of `query`.
- The outputs carry what `compute_mask` makes of the masks of the first argument, or of `mask`. So a
  layer of which `supports_masking` is true hands them on; another one warns, and does not.
- Ops return tensors without masks, and what layers return within `call` keeps its own.

Placeholders carry placeholders, for shapes alone: a model that runs computes its masks again.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

from mirrored import _nest
from mirrored._logging import warn_caller
from mirrored.graph import SymbolicTensor
from mirrored.layers.call_arguments import CallArguments
from mirrored.layers.input_conversion import as_tensor
from mirrored.ops import Tensor
from mirrored.ops.tensor import Operators
from mirrored.ops.tensor_views import masked

if TYPE_CHECKING:
    from mirrored.layers.layer import Layer


class CallMasks(NamedTuple):
    """The masks of a call.

    Attributes:
        implied: Arguments of `call` that are masks of others.
        first: Its first argument.
        previous: What `compute_mask` is given beside it: the argument `mask`, or the masks of the
            first argument in its structure.
    """

    implied: dict[str, Any]
    first: Any
    previous: Any


def masks_of_call(layer: "Layer", arguments: CallArguments, named: dict[str, Any]) -> CallMasks:
    """Return the masks of a call of a layer.

    Args:
        layer: The layer.
        arguments: The arguments.
        named: Those that are given by name.
    """
    tensors, values = arguments.tensors, arguments.values
    if len(tensors) == 1:
        pairs = [("mask", tensor) for tensor in tensors.values()]
    else:
        pairs = [(f"{name}_mask", tensor) for name, tensor in tensors.items()]
    implied = {
        name: masks_of(tensor)
        for name, tensor in pairs
        if name in layer.__call_form__.masks and values.get(name) is None
    }
    first = next(iter(values.values()), None)
    explicit = implied.get("mask", named.get("mask"))
    return CallMasks(implied, first, masks_of(first) if explicit is None else explicit)


def with_masks(layer: "Layer", outputs: Any, masks: CallMasks) -> Any:
    """Return what a layer returned as tensors that carry masks; or warn that they do not.

    Args:
        layer: The layer.
        outputs: Tensors, or placeholders of a call that nobody else has yet.
        masks: The masks of the call.
    """
    had = any(mask is not None for mask in _nest.flatten(masks.previous))
    if not layer.supports_masking:
        if had:
            warn_caller(
                f"Layer '{layer.name}' (of type {type(layer).__name__}) was passed an input with a "
                "mask attached to it. However, this layer does not support masking and will "
                "therefore destroy the mask information. Downstream layers will not see the mask.",
            )
        return outputs
    own = _nest.flatten(masks_of(outputs))
    if not (had or layer._makes_masks) or all(mask is not None for mask in own):
        return outputs
    computed = _nest.flatten(layer.compute_mask(masks.first, masks.previous))
    pairs = zip(own, computed, strict=False)
    return carrying(outputs, [mask if there is None else None for there, mask in pairs])


def mask_of(value: Any) -> Any:
    """Return the mask that a tensor or a placeholder carries; None where there is none.

    Args:
        value: Anything.
    """
    return value._keras_mask if isinstance(value, Operators) else None


def masks_of(structure: Any) -> Any:
    """Return the masks of tensors in nested lists, tuples and dicts, in the same structure.

    Args:
        structure: Tensors, placeholders, or anything else, which has none.
    """
    return _nest.map_structure(mask_of, structure)


def carrying(structure: Any, masks: Any) -> Any:
    """Return tensors in nested lists, tuples and dicts as ones that carry masks.

    Args:
        structure: The tensors, or placeholders of a call that nobody else has yet.
        masks: A mask for each, in any structure; None: it stays as it is.
    """
    leaves = _nest.flatten(structure)
    for index, (leaf, mask) in enumerate(zip(leaves, _nest.flatten(masks), strict=False)):
        if mask is not None and isinstance(leaf, Tensor):
            leaves[index] = masked(leaf, as_tensor(mask))
        elif mask is not None and isinstance(leaf, SymbolicTensor):
            leaf._keras_mask = as_tensor(mask)
    return _nest.pack_like(structure, leaves)
