"""Fused kernels: elementwise ops of which each thread computes all for its elements.

What passes from op to op stays in registers, so one reads and writes memory once.
"""

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from mirrored.backends.cuda.expressions import EXPRESSIONS, FUNCTIONS
from mirrored.backends.cuda.kernels.kernel import DeviceKernel, Launcher
from mirrored.backends.cuda.kernels.teams import NARROW
from mirrored.backends.cuda.source import PRELUDE, Source, computed_type, stored_type
from mirrored.backends.stream_backend import FusedOp, Fusion, Shape

_THREADS = 256
# Elements a thread. Several hide the time that memory takes, but only once there are more than the
# card has room for threads at a time (132 multiprocessors of 2048 on an H200).
_MANY, _MANY_FROM = 4, 1 << 19


class Term(NamedTuple):
    """A part of an input's index: (i / divisor) % modulus * stride, of the element's number i."""

    divisor: int
    modulus: int
    stride: int


class _Text(NamedTuple):
    """A fused kernel, and the numbers of its index arithmetic."""

    source: Source
    numbers: tuple[int, ...]
    many: int


def index_terms(shape: Shape, result: Shape) -> tuple[Term, ...]:
    """Return the terms whose sum is an input's index, where it broadcasts to a result's shape.

    Args:
        shape: The input's shape.
        result: The result's.

    Example:
        >>> index_terms((3, 1), (3, 5))
        (Term(divisor=5, modulus=3, stride=1),)
        >>> index_terms((5,), (3, 5))
        (Term(divisor=1, modulus=5, stride=1),)
    """
    own = (1,) * (len(result) - len(shape)) + tuple(shape)
    terms: list[Term] = []
    divisor = stride = 1
    open_run = False  # Whether the axis behind this one is the input's own too.
    for size, full in zip(reversed(own), reversed(result), strict=True):
        if full == 1:
            continue
        if size == 1:
            open_run = False
        elif open_run:
            terms[-1] = terms[-1]._replace(modulus=terms[-1].modulus * size)
        else:
            terms.append(Term(divisor, size, stride))
            open_run = True
        divisor *= full
        stride *= size
    return tuple(terms)


class _Writer:
    """Writes the text of one fused kernel."""

    def __init__(self, fusion: Fusion) -> None:
        self.size = math.prod(fusion.ops[0].shape)
        self._fusion = fusion
        self._loads: dict[tuple[int, tuple[Term, ...]], str] = {}
        self._once: list[str] = []
        self._each: list[str] = []
        self.numbers: list[int] = []
        self._ops = [self._op(number, op) for number, op in enumerate(fusion.ops)]

    def text(self, many: int) -> str:
        """Return the kernel, in which a thread has so many elements."""
        fusion = self._fusion
        reads = [f"const {stored_type(t)} *x{i}" for i, (_, t) in enumerate(fusion.inputs)]
        writes = [
            f"{stored_type(fusion.ops[number].dtype)} *y{i}"
            for i, number in enumerate(fusion.outputs)
        ]
        numbers = [f"index p{i}" for i in range(len(self.numbers))]
        parameters = ", ".join(["index n", "const int *go", *reads, *writes, *numbers])
        stores = [f"store(y{i}[i], v{number});" for i, number in enumerate(fusion.outputs)]
        return (
            f"{PRELUDE}{FUNCTIONS}typedef {'u32' if self.size < 1 << 31 else 'i64'} index;\n"
            f'extern "C" __global__ void fused({parameters}) {{\n'
            "    if (go && !*go) { return; }\n"
            f"    const index first = (index)blockIdx.x * {many * _THREADS} + threadIdx.x;\n"
            f"{_lines(self._once, 4)}"
            f"{_lines(self._declared(many), 4)}"
            f"{_loop(many, self._each)}"
            f"{_loop(many, [*self._ops, *stores])}"
            "}\n"
        )

    def _declared(self, many: int) -> Iterator[str]:
        for place, (number, terms) in enumerate(self._loads):
            if terms:
                yield f"{computed_type(self._fusion.inputs[number][1])} a{place}[{many}];"

    def _op(self, number: int, op: FusedOp) -> str:
        operands = [self._operand(each, op.shape) for each in op.inputs]
        kind = computed_type(op.dtype)
        value = EXPRESSIONS[op.name](operands, kind)
        if op.dtype.name in NARROW:
            rounded = f"rounded_to_{stored_type(op.dtype)}"
            if op.name == "FloorDiv":  # The quotient is rounded before it is rounded down.
                value = f"floorf({rounded}({operands[0]} / {operands[1]}))"
            value = f"{rounded}({value})"
        return f"const {kind} v{number} = {value};"

    def _operand(self, number: int, shape: Shape) -> str:
        if number >= len(self._fusion.inputs):
            return f"v{number - len(self._fusion.inputs)}"
        own, dtype = self._fusion.inputs[number]
        terms = index_terms(own, shape)
        key = number, terms
        if key not in self._loads:
            place = len(self._loads)
            if terms:
                self._loads[key] = f"a{place}[k]"
                self._each.append(f"a{place}[k] = load(x{number}[{self._index(terms)}]);")
            else:
                self._loads[key] = f"a{place}"
                kind = computed_type(dtype)
                self._once.append(f"const {kind} a{place} = load(x{number}[0]);")
        return self._loads[key]

    def _index(self, terms: tuple[Term, ...]) -> str:
        parts = []
        for term in terms:
            part = "i"
            if term.divisor > 1:
                part = f"({part} / {self._number(term.divisor)})"
            if term.divisor * term.modulus < self.size:
                part = f"({part} % {self._number(term.modulus)})"
            if term.stride > 1:
                part = f"{part} * {self._number(term.stride)}"
            parts.append(part)
        return " + ".join(parts)

    def _number(self, value: int) -> str:
        """Return a parameter for a number: one text serves all sizes of a batch."""
        if value not in self.numbers:
            self.numbers.append(value)
        return f"p{self.numbers.index(value)}"


def _loop(many: int, body: list[str]) -> str:
    return (
        "    #pragma unroll\n"
        f"    for (int k = 0; k < {many}; ++k) {{\n"
        f"        const index i = first + k * {_THREADS};\n"
        "        if (i < n) {\n"
        f"{_lines(body, 12)}"
        "        }\n"
        "    }\n"
    )


def _lines(lines: Iterator[str] | list[str], indent: int) -> str:
    return "".join(f"{' ' * indent}{line}\n" for line in lines)


@lru_cache(maxsize=4096)
def _text_of(fusion: Fusion) -> _Text:
    writer = _Writer(fusion)
    many = _MANY if writer.size >= _MANY_FROM else 1
    ops = ", ".join(op.name for op in fusion.ops)
    return _Text(Source(f"fused {ops}", writer.text(many)), tuple(writer.numbers), many)


def fused_source(fusion: Fusion) -> Source:
    """Return the text of a fused kernel, which is called `fused`."""
    return _text_of(fusion).source


def fused_kernel(fusion: Fusion) -> Callable[..., None]:
    """Return a fused kernel: kernel(xp, outputs, inputs, flag)."""
    size = math.prod(fusion.ops[0].shape)

    def run(xp: Launcher, outputs: tuple[Any, ...], inputs: tuple[Any, ...], flag: Any) -> None:
        if not size:
            return
        text = _text_of(fusion)
        number = np.uint32 if size < 1 << 31 else np.int64
        blocks = -(-size // (_THREADS * text.many))
        numbers = (number(each) for each in text.numbers)
        args = (number(size), flag, *inputs, *outputs, *numbers)
        xp.launch(text.source, "fused", (blocks, 1, 1), (_THREADS, 1, 1), args)

    return run


def _one_op(name: str) -> DeviceKernel:
    """Return the kernel of an op: a fused one of that op alone."""

    def run(xp: Launcher, out: Any, *arrays: Any, **attrs: Any) -> None:
        inputs = tuple((array.shape, array.dtype) for array in arrays)
        op = FusedOp(name, tuple(range(len(arrays))), out.shape, out.dtype)
        fused_kernel(Fusion(inputs, (op,), (0,)))(xp, (out,), arrays, None)

    return DeviceKernel(run)


KERNELS: dict[str, DeviceKernel] = {name: _one_op(name) for name in EXPRESSIONS}
