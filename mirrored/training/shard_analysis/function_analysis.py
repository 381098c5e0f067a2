"""Finds whether a function computes a value per example from that example alone."""

from collections.abc import Callable, Sequence
from typing import Any

from mirrored.distribute.context import outside_scopes
from mirrored.distribute.global_batch import GlobalBatch
from mirrored.ops import Tensor
from mirrored.ops.hooks import only
from mirrored.ops.rng_state import current_rng_state
from mirrored.ops.spec import TensorSpec
from mirrored.program.variable_access import ruled_by
from mirrored.training.shard_analysis.shard_recorder import recordings
from mirrored.training.shard_analysis.shard_values import UNIT, Kind
from mirrored.variables.device_variable import Undone


def is_by_example(function: Callable[..., Any], arguments: Sequence[Tensor]) -> bool:
    """Return whether each row of a function's result is known to depend on one example alone.

    The function is recorded for other numbers of examples; nothing is computed or written.

    Args:
        function: The function, of tensors of shape (examples, ...).
        arguments: What it is called with, of which shapes and dtypes are looked at.

    Returns:
        False also where that is unknown, as where the function cannot be recorded.
    """
    specs = [TensorSpec(tensor.shape[1:], tensor.dtype) for tensor in arguments]
    result: Any = None
    back = current_rng_state().mark()
    try:
        for recorder in recordings([size for spec in specs for size in spec.shape]):
            with (
                only(),
                recorder.recording(),
                ruled_by(lambda name: None),
                Undone().in_force(),
                GlobalBatch([recorder.sizes.examples]).in_force(),
                outside_scopes(),
            ):
                result = function(*[recorder.shard(spec) for spec in specs])
    except Exception:  # Whatever it raises, it does so again where it is called.
        return False
    finally:
        back()
    value = recorder.value_known(result)
    is_row_each = value.kind is Kind.ROWS and value.axis == 0 and value.scale == UNIT
    is_in_order = value.blocks in (1, None) and not value.reordered
    return is_row_each and is_in_order and not (value.mixing or value.step)
