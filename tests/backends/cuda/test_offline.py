"""Every text of a chain compiles for the cards that are supported, and none needs a card for that."""

from collections.abc import Callable, Iterable, Iterator
from itertools import product

import numpy as np
import pytest
from op_table import TABLE

from mirrored import ops
from mirrored.backends.cuda.expressions import EXPRESSIONS
from mirrored.backends.cuda.fusion import chain_source
from mirrored.backends.cuda.source import Source
from mirrored.backends.streams import Chain, Step

NAMES = ("float32", "float64", "bfloat16", "int32", "int64", "bool")
FEW, MANY = (3, 4), (1 << 17, 1 << 15)  # Indices of 32 and of 64 bits, one element and several.


def bfloat16() -> np.dtype:
    pytest.importorskip("ml_dtypes")
    return ops.as_dtype("bfloat16")


def chain_of_all(name: str, shape: tuple[int, ...]) -> Chain:
    """Return a chain of every op that takes a dtype, on inputs that broadcast and do not."""
    dtype = bfloat16() if name == "bfloat16" else np.dtype(name)
    inputs = ((shape, dtype), (shape[-1:], dtype), (shape[:1] + (1,), dtype), ((), dtype))
    steps = []
    for op_name in EXPRESSIONS:
        row = TABLE.get(op_name)
        op = ops.OPS.get(op_name)
        if op is None or row is None or dtype not in op.dtypes:
            continue
        count = len(row.small[0].shapes)
        if op_name == "Cast":
            steps += [Step("Cast", (0,), shape, bfloat16())]
            steps += [Step("Cast", (0,), shape, np.dtype(each)) for each in NAMES[:2] + NAMES[3:]]
            continue
        spec = ops.TensorSpec(shape, dtype)
        attrs = {"shape": shape} if op_name == "BroadcastTo" else {}
        result = op.infer(*[spec] * count, **attrs) if op_name != "BiasAdd" else spec
        steps.append(Step(op_name, tuple(range(count)), shape, result.dtype))
    return Chain(inputs, tuple(steps), tuple(range(len(steps))))


def sources() -> Iterator[Source]:
    for name, shape in product(NAMES, (FEW, MANY)):
        yield chain_source(chain_of_all(name, shape))


@pytest.mark.parametrize("arch", [80, 90])
def test_all_chains_compile(complaints: Callable[[Iterable[Source], int], str], arch: int) -> None:
    assert complaints(list(sources()), arch) == ""


def test_the_texts_are_of_both_kinds() -> None:
    codes = [each.code for each in sources()]
    assert len(set(codes)) == 2 * len(NAMES)
    assert sum("typedef i64 index" in code for code in codes) == len(NAMES)
    assert sum("k < 4" in code for code in codes) == len(NAMES)
