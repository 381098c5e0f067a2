"""The table of ops with a mapping to ONNX, and the conversion of a call to nodes.

Each kind of operations has its rules in a file of its own; here they are one table.
"""

from collections.abc import Mapping
from dataclasses import replace

from mirrored.export import (
    elementwise_nodes,
    gather_nodes,
    gradient_nodes,
    reduction_nodes,
    shape_nodes,
)
from mirrored.export.elementwise_nodes import Rule
from mirrored.export.node_writer import Call, Ref, Writer
from mirrored.ops.spec import float32, is_narrow

RULES: Mapping[str, Rule] = {
    **elementwise_nodes.RULES,
    **gradient_nodes.RULES,
    **gather_nodes.RULES,
    **reduction_nodes.RULES,
    **shape_nodes.RULES,
}
# They move values and compute nothing, whatever their dtype.
_MOVES = frozenset(shape_nodes.RULES) | {"Cast", "GatherV2", "SelectV2", "TensorScatterUpdate"}


def written(w: Writer, call: Call) -> Ref:
    """Write the nodes of a call and return their result.

    Floats of 16 bits are computed with in float32 and rounded once, as they are here.

    Args:
        w: What writes them.
        call: The call.

    Raises:
        NotImplementedError: ONNX has no such operation for its dtypes, or it needs a size that is
            not known.
    """
    w.call = call
    rule = RULES[call.op]
    if call.op in _MOVES or not any(is_narrow(value.dtype) for value in call.inputs):
        return rule(w, call)
    wide = tuple(w.cast(item, float32) if is_narrow(item.dtype) else item for item in call.inputs)
    dtype = float32 if is_narrow(call.dtype) else call.dtype
    return w.cast(rule(w, replace(call, inputs=wide, dtype=dtype)), call.dtype)
