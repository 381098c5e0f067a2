"""Options of datasets: which there are, of which types, and where they go, as in TensorFlow."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr

Dataset = mr.data.Dataset
Options = mr.data.Options
experimental = mr.data.experimental
Listed = Callable[[mr.data.Dataset], list[Any]]


def options(**values: Any) -> mr.data.Options:
    made = Options()
    for name, value in values.items():
        setattr(made, name, value)
    return made


EXACT = options(deterministic=True)
LOOSE = options(deterministic=False)

# What has been set further up in a pipeline.
KEPT: dict[str, tuple[Callable[[], mr.data.Dataset], Any]] = {
    "nothing": (lambda: Dataset.range(3), None),
    "here": (lambda: Dataset.range(3).with_options(LOOSE), False),
    "before": (lambda: Dataset.range(3).with_options(LOOSE).map(abs).batch(2).take(1), False),
    "twice": (lambda: Dataset.range(3).with_options(LOOSE).with_options(EXACT), True),
    "and others": (
        lambda: Dataset.range(3).with_options(LOOSE).with_options(options(dataset_name="x")),
        False,
    ),
    "in one of two": (
        lambda: Dataset.range(3).concatenate(Dataset.range(3).with_options(LOOSE)),
        False,
    ),
    "in both": (
        lambda: Dataset.zip(
            Dataset.range(3).with_options(LOOSE), Dataset.range(3).with_options(EXACT)
        ),
        True,
    ),
}


@cases(("make", "expected"), KEPT.values(), ids=KEPT)
def test_options_are_kept(make: Callable[[], mr.data.Dataset], expected: Any) -> None:
    found = make().options()
    assert found.deterministic is found.experimental_deterministic is expected


def test_options_of_options_are_merged() -> None:
    first, second = Options(), Options()
    first.threading.private_threadpool_size = 3
    second.threading.max_intra_op_parallelism = 2
    second.experimental_distribute.auto_shard_policy = experimental.AutoShardPolicy.DATA
    dataset = Dataset.range(3).with_options(first).with_options(second)
    first.threading.private_threadpool_size = 4  # It was copied.
    found = dataset.options()
    assert found.threading.private_threadpool_size == 3
    assert found.experimental_threading.max_intra_op_parallelism == 2
    assert found.experimental_distribute.auto_shard_policy.name == "DATA"
    assert found == first.merge(second).merge(dataset.options())
    assert found != second
    assert repr(second.threading) == "ThreadingOptions(max_intra_op_parallelism=2)"
    for made, name in ((found, "deterministic"), (found.threading, "private_threadpool_size")):
        with pytest.raises(ValueError, match="has no effect"):
            setattr(made, name, True)


def test_options_change_no_element(listed: Listed) -> None:
    rows = Dataset.from_tensor_slices(np.arange(9))
    shuffled = rows.shuffle(9, 1, reshuffle_each_iteration=False).batch(2)
    early = rows.with_options(LOOSE).shuffle(9, 1, reshuffle_each_iteration=False).batch(2)
    late = shuffled.with_options(LOOSE).repeat()
    assert listed(early) == listed(late.take(5)) == listed(shuffled)
    # Of rows it is still only told which they are.
    assert late._transform.batched_slices is shuffled._transform.batched_slices


@cases(
    ("owner", "name", "value", "error"),
    [
        (Options, "deterministic", 3, TypeError),
        (Options, "deterministic", None, TypeError),
        (Options, "threading", 3, TypeError),
        (Options, "experimental_threading", 3, TypeError),
        (Options, "dataset_name", 3, TypeError),
        (Options, "foo", 3, AttributeError),
        (mr.data.ThreadingOptions, "private_threadpool_size", "a", TypeError),
        (mr.data.ThreadingOptions, "foo", 3, AttributeError),
        (experimental.AutotuneOptions, "autotune_algorithm", 3, TypeError),
        (experimental.DistributeOptions, "auto_shard_policy", 3, TypeError),
        (experimental.OptimizationOptions, "map_fusion", 1, TypeError),
    ],
)
def test_what_is_no_option_is_refused(
    owner: Any, name: str, value: Any, error: type[Exception]
) -> None:
    made = owner()
    with pytest.raises(error, match=name.removeprefix("experimental_")):
        setattr(made, name, value)
    assert made == owner()


@cases("given", [None, 3, mr.data.ThreadingOptions()], ids=repr)
def test_what_is_no_options_is_refused(given: Any) -> None:
    with pytest.raises(TypeError, match="Could not merge incompatible options"):
        Dataset.range(3).with_options(given)
