"""Parts of variables with copies: what replicas give is brought together, and copies stay equal.

The numbers are TensorFlow's.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from replica_context import number

import mirrored as mr
from mirrored import ops
from mirrored.distribute import MirroredStrategy

Simulate = Callable[..., list[mr.config.LogicalDevice]]
Aggregation = mr.VariableAggregation
ON_READ = mr.VariableSynchronization.ON_READ


@pytest.fixture
def strategy(simulate: Simulate) -> MirroredStrategy:
    simulate(2)
    return MirroredStrategy()


def variable_of(strategy: MirroredStrategy, aggregation: str, **kwargs: Any) -> Any:
    with strategy.scope():
        return mr.Variable([1.0, 2.0, 3.0], aggregation=Aggregation[aggregation], **kwargs)


def copies(variable: Any) -> list[list[float]]:
    return [copy.numpy().tolist() for copy in variable.copies]


def own_row() -> mr.IndexedSlices:
    """Return what a replica gives: 1.0 for the first one, 2.0 for the second."""
    return mr.IndexedSlices(ops.reshape(ops.cast(number() + 1, ops.float32), (1,)), [1])


@pytest.mark.behaviour("scatters-in-replicas")
@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize(
    ("aggregation", "method", "middle"),
    [
        ("SUM", "scatter_add", 5.0),
        ("SUM", "scatter_mul", 4.0),
        ("MEAN", "scatter_sub", 0.5),
        ("ONLY_FIRST_REPLICA", "scatter_update", 1.0),
        ("ONLY_FIRST_REPLICA", "scatter_max", 2.0),
    ],
)
def test_rows_of_replicas(
    strategy: MirroredStrategy, aggregation: str, method: str, middle: float, recorded: bool
) -> None:
    variable = variable_of(strategy, aggregation)

    def step() -> None:
        strategy.run(lambda: getattr(variable, method)(own_row()))

    (mr.function(step) if recorded else step)()
    assert copies(variable) == [[1.0, middle, 3.0]] * 2


@pytest.mark.behaviour("parts-of-copies")
@pytest.mark.parametrize("aggregation", ["NONE", "SUM", "MEAN", "ONLY_FIRST_REPLICA"])
def test_outside_of_replicas_all_copies_change(
    strategy: MirroredStrategy, aggregation: str
) -> None:
    variable = variable_of(strategy, aggregation)
    assert variable.scatter_add(mr.IndexedSlices([10.0], [1])) is variable
    variable[2].assign(7.0)
    assert copies(variable) == [[1.0, 12.0, 7.0]] * 2
    np.testing.assert_array_equal(variable.sparse_read([1]).numpy(), [12.0])


def test_a_part_of_a_copy_that_is_brought_together_on_reads(strategy: MirroredStrategy) -> None:
    variable = variable_of(strategy, "SUM", synchronization=ON_READ)
    strategy.run(lambda: variable[1].assign(ops.cast(number(), ops.float32)))
    assert copies(variable) == [[1.0, 0.0, 3.0], [1.0, 1.0, 3.0]]


@pytest.mark.behaviour("scatters-in-replicas", "parts-of-copies")
@pytest.mark.parametrize(
    ("aggregation", "options", "change", "error", "text"),
    [
        ("NONE", {}, "replica", ValueError, "must specify an aggregation method"),
        ("SUM", {}, "replica update", NotImplementedError, "scatter_update is only supported"),
        ("SUM", {}, "update", NotImplementedError, "got: VariableAggregation.SUM"),
        ("NONE", {}, "nd", NotImplementedError, "tensor_scatter_nd_add(v, indices, updates)"),
        ("SUM", {}, "replica part", NotImplementedError, "set only outside of replicas"),
        ("SUM", {}, "replica number", TypeError, "must be a `mr.IndexedSlices`"),
        ("SUM", {"synchronization": ON_READ}, "update", NotImplementedError, "doesn't support"),
        (
            "SUM",
            {"synchronization": ON_READ},
            "part",
            NotImplementedError,
            "can be set only in a replica",
        ),
    ],
)
def test_what_is_refused(
    strategy: MirroredStrategy,
    aggregation: str,
    options: dict[str, Any],
    change: str,
    error: type[Exception],
    text: str,
) -> None:
    variable = variable_of(strategy, aggregation, **options)
    changes: dict[str, Callable[[], Any]] = {
        "replica": lambda: strategy.run(lambda: variable.scatter_add(own_row())),
        "replica update": lambda: strategy.run(lambda: variable.scatter_update(own_row())),
        "replica part": lambda: strategy.run(lambda: variable[0].assign(1.0)),
        "replica number": lambda: strategy.run(lambda: variable.scatter_add(1.0)),
        "update": lambda: variable.scatter_update(mr.IndexedSlices([1.0], [0])),
        "nd": lambda: variable.scatter_nd_add([[0]], [1.0]),
        "part": lambda: variable[0].assign(1.0),
    }
    before = copies(variable)
    with pytest.raises(error) as caught:
        changes[change]()
    assert text in str(caught.value)
    assert copies(variable) == before
