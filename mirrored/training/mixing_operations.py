"""Lists the operations of a model that let one example influence the result of another."""

from functools import partial
from typing import Any, NamedTuple

from mirrored import _nest
from mirrored._arguments import explained
from mirrored.distribute.global_batch import GlobalBatch
from mirrored.layers.layer import as_call_tensors
from mirrored.layers.shapes import without_batch
from mirrored.training.model import Model
from mirrored.training.shard_analysis.shard_recorder import NotAnalysed
from mirrored.training.shard_analysis.shard_values import Operation
from mirrored.training.shard_analysis.step_analysis import advice_for, analysed


class MixingOperation(NamedTuple):
    """An operation whose result for one example depends on other examples of the batch.

    Attributes:
        layer: The name of the layer in whose `call` it is, or of the model.
        operation: Its name, as in the placement log.
        advice: What to do so that the number of replicas changes nothing.
    """

    layer: str
    operation: str
    advice: str


@explained
def mixing_operations(model: Model, x: Any) -> list[MixingOperation]:
    """List the operations of a model that let one example influence the result of another.

    On several replicas such an operation sees the examples of one shard, so its result depends on
    the number of replicas. The model is recorded for inputs of these shapes, in training and
    outside of it; nothing is computed, and it does not matter how many devices there are. `fit`,
    `evaluate` and `predict` do the same on several replicas and log what they find.

    An operation counts if there is no rule that says otherwise, as for a `py_function`.

    Args:
        model: A model that is built.
        x: Inputs of shape (examples, ...), in the structure that the model takes. Their values do
            not matter.

    Returns:
        The operations, in the order of their names.

    Raises:
        ValueError: The model is not built, or does not take such inputs.

    Example:
        >>> import mirrored as mr
        >>> inputs = mr.layers.Input((3,))
        >>> model = mr.Model(inputs, mr.layers.Softmax(axis=0, name="over_batch")(inputs))
        >>> found = mr.debugging.mixing_operations(model, [[1.0, 2.0, 3.0]])
        >>> [(each.layer, each.operation) for each in found]
        [('over_batch', 'Softmax')]
    """
    if not model.built:
        raise ValueError(
            f"`mixing_operations` takes a built model. Received: {model!r:.200}. Call it on a "
            "batch first, or call `model.build(input_shape)`."
        )
    (inputs,), _ = as_call_tensors(model, (x,), {})
    model.check_input_shape(_nest.map_structure(lambda tensor: without_batch(tensor.shape), inputs))
    operations: dict[Operation, None] = {}
    for training in (True, False):
        run = partial(model, training=training)
        try:
            batch = analysed(model, partial(_returned, run), [inputs], rows=True)
        except NotAnalysed as error:
            raise ValueError(
                f"The model {model.name!r} could not be recorded for another batch size. "
                f"Received: {error} In `call`, use the size of the inputs."
            ) from error
        operations.update(batch.mixing)
    return [
        MixingOperation(operation.owner, operation.name, advice_for(model, operation))
        for operation in sorted(operations)
    ]


def _returned(run: Any, batch: GlobalBatch) -> Any:
    del batch
    return run
