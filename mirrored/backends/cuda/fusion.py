"""Fused kernels of elementwise ops: each thread computes all ops for its elements.

What passes from op to op stays in registers, so one reads and writes memory once. A thread has
several neighbouring elements where memory allows it, which one load or store moves; where inputs
are rows or columns of the result the grid counts both, so that no thread divides. One text serves
all sizes of a batch: what a size changes is a parameter.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from mirrored.backends.cuda.compiling import PRELUDE, VECTORS, Source, computed_type, stored_type
from mirrored.backends.cuda.expressions import EXPRESSIONS, FUNCTIONS
from mirrored.backends.cuda.kernels.teams import NARROW
from mirrored.backends.cuda.launcher import DeviceKernel, Launcher
from mirrored.backends.stream_backend import FusedOp, Fusion, Shape

THREADS = 256
# The bytes of the widest loads, and the most elements that a thread has next to each other.
_WIDEST, _MOST_ADJACENT = 16, 8
# As many threads as give each multiprocessor of a large card a block: before that threads have one
# element, since the others would stand still.
_LEAST_THREADS = 1 << 15
# Elements a thread where they cannot be next to each other. Several hide the time that memory
# takes, but only once there are more than the card has room for threads at a time (132
# multiprocessors of 2048 on an H200).
_MANY, _MANY_FROM = 4, 1 << 19
_MOST_COLUMN_BLOCKS = 65535  # Along the second axis of a grid.
_WARP = 32


class Term(NamedTuple):
    """A part of an input's index: (i / divisor) % modulus * stride, of the element's number i."""

    divisor: int
    modulus: int
    stride: int


class Layout(NamedTuple):
    """How elements are shared out.

    Attributes:
        size: How many there are.
        many: The elements of a thread.
        adjacent: Whether those are next to each other, as many as one load takes.
        columns: How many a row has, where the grid counts rows and columns; else 0.
    """

    size: int
    many: int
    adjacent: bool
    columns: int

    @property
    def numbers(self) -> tuple[int, ...]:
        """The sizes that a kernel receives: the number of elements, or of rows and columns."""
        return (self.size // self.columns, self.columns) if self.columns else (self.size,)

    @property
    def threads(self) -> tuple[int, int, int]:
        """The size of a block."""
        if not self.columns:
            return (THREADS, 1, 1)
        along = _threads_along(self._column_threads)
        return (along, THREADS // along, 1)

    @property
    def blocks(self) -> tuple[int, int, int]:
        """The size of the grid: blocks of rows along the first axis, which may be long."""
        if not self.columns:
            return (-(-self.size // (THREADS * self.many)), 1, 1)
        along, beside, _ = self.threads
        rows = beside * (1 if self.adjacent else self.many)
        return (-(-(self.size // self.columns) // rows), -(-self._column_threads // along), 1)

    @property
    def _column_threads(self) -> int:
        return -(-self.columns // self.many) if self.adjacent else self.columns


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


def is_whole(terms: tuple[Term, ...], size: int) -> bool:
    """Return whether an input has one element for each of the result."""
    return terms == (Term(1, size, 1),)


def is_row(terms: tuple[Term, ...], columns: int) -> bool:
    """Return whether an input is one row of N columns, for all rows."""
    return bool(columns) and terms == (Term(1, columns, 1),)


def is_column(terms: tuple[Term, ...], columns: int) -> bool:
    """Return whether an input has one element for each row of N columns."""
    return bool(columns) and len(terms) == 1 and terms[0].divisor == columns


@lru_cache(maxsize=4096)
def layout(fusion: Fusion, alignment: int) -> Layout:
    """Return how a fused kernel's elements are shared out.

    Args:
        fusion: The kernel.
        alignment: A power of two of which the place of each of its arrays is a multiple, counted in
            that array's own elements.
    """
    size = math.prod(fusion.ops[0].shape)
    columns = _columns_of(fusion, size)
    widest = max(dtype.itemsize for dtype in _moved(fusion, size, columns))
    most = min(_WIDEST // widest, _MOST_ADJACENT, alignment, max(size // _LEAST_THREADS, 1))
    adjacent = 1 << (most.bit_length() - 1)
    if columns:
        adjacent = math.gcd(adjacent, columns)
    if adjacent > 1:
        return Layout(size, adjacent, True, columns)
    return Layout(size, _MANY if size >= _MANY_FROM else 1, False, columns)


def _inputs(fusion: Fusion) -> list[tuple[int, tuple[Term, ...]]]:
    """Return which inputs ops read, each with the terms of its index."""
    return [
        (number, index_terms(fusion.inputs[number][0], op.shape))
        for op in fusion.ops
        for number in op.inputs
        if number < len(fusion.inputs)
    ]


def _columns_of(fusion: Fusion, size: int) -> int:
    """Return how many columns a row has, where all inputs are whole, rows, columns or numbers."""
    widths: set[int] = set()
    for _, terms in _inputs(fusion):
        if not terms or is_whole(terms, size):
            continue
        divisor, modulus, stride = terms[0]
        if len(terms) > 1 or stride != 1 or (divisor > 1 and divisor * modulus != size):
            return 0
        widths.add(modulus if divisor == 1 else divisor)
    columns = widths.pop() if len(widths) == 1 else 0
    return columns if columns <= _MOST_COLUMN_BLOCKS * _WARP else 0


def _moved(fusion: Fusion, size: int, columns: int) -> list[np.dtype[Any]]:
    """Return the dtypes of what loads and stores of several elements would move."""
    moved = [
        fusion.inputs[number][1]
        for number, terms in _inputs(fusion)
        if is_whole(terms, size) or is_row(terms, columns)
    ]
    return moved + [fusion.ops[number].dtype for number in fusion.outputs]


def _threads_along(columns: int) -> int:
    """Return how many threads of a block lie along the columns: few stand still behind the last."""
    if columns <= _WARP:
        return 1 << (columns - 1).bit_length()
    return min((THREADS >> i for i in range(4)), key=lambda count: -(-columns // count) * count)


# Where a thread begins, by whether its elements are adjacent, and whether the grid counts columns.
_BEGINNINGS = {
    (True, False): """
    const index first = ((index)blockIdx.x * {threads} + threadIdx.x) * {many};
    if (first >= n) {{ return; }}
    const index left = n - first;
""",
    (False, False): """
    const index first = (index)blockIdx.x * {together} + threadIdx.x;
""",
    (True, True): """
    const index column = ((index)blockIdx.y * blockDim.x + threadIdx.x) * {many};
    const index row = (index)blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns) {{ return; }}
    const index first = row * columns + column;
""",
    (False, True): """
    const index column = (index)blockIdx.y * blockDim.x + threadIdx.x;
    const index first = (index)blockIdx.x * ({many} * blockDim.y) + threadIdx.y;
    if (column >= columns) {{ return; }}
""",
}
# The number of the element k, and whether there is one.
_ELEMENTS = {
    (True, False): (["const index i = first + k;"], "k < left"),
    (False, False): ([f"const index i = first + k * {THREADS};"], "i < n"),
    (True, True): ([], ""),
    (False, True): (
        ["const index row = first + k * blockDim.y;", "const index i = row * columns + column;"],
        "row < rows",
    ),
}


class _Load:
    """How a kernel gets an input's elements, each where an op needs it.

    Attributes:
        name: What expressions call the element at hand.
        declared: Lines before all others.
        single: A line for each element.
        together: What loads several adjacent elements at once, where that is possible.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.declared = ""
        self.single = ""
        self.together = ""


class Writer:
    """Writes the text of one fused kernel.

    Args:
        fusion: The kernel.
        layout: How its elements are shared out.

    Attributes:
        numbers: What its parameters are behind the sizes and arrays.
    """

    def __init__(self, fusion: Fusion, layout: Layout) -> None:
        self.numbers: list[int] = []
        self._fusion = fusion
        self._layout = layout
        self._loads: dict[tuple[int, tuple[Term, ...]], _Load] = {}
        self._ops = [self._op(number, op) for number, op in enumerate(fusion.ops)]

    def text(self) -> str:
        """Return the kernel, which is called `fused`."""
        layout, fusion = self._layout, self._fusion
        kind = layout.adjacent, bool(layout.columns)
        beginning = _BEGINNINGS[kind].format(
            many=layout.many, threads=THREADS, together=layout.many * THREADS
        )
        vectors = VECTORS if layout.adjacent else ""
        loads = list(self._loads.values())
        declared = [load.declared for load in loads if load.declared]
        if layout.adjacent:
            declared += [f"{self._kind(number)} r{i}[{layout.many}];" for i, number in self._kept]
        return (
            f"{PRELUDE}{FUNCTIONS}{vectors}"
            f"typedef {'u32' if layout.size < 1 << 31 else 'i64'} index;\n"
            f'extern "C" __global__ void fused({self._parameters(fusion)}) {{\n'
            "    if (go && !*go) { return; }"
            f"{beginning}"
            f"{_lines(declared, 4)}"
            f"{self._loaded(loads)}"
            f"{self._loop([*self._ops, *self._results()])}"
            f"{self._stored()}"
            "}\n"
        )

    def _parameters(self, fusion: Fusion) -> str:
        sizes = ["index rows", "index columns"] if self._layout.columns else ["index n"]
        reads = [f"const {stored_type(t)} *x{i}" for i, (_, t) in enumerate(fusion.inputs)]
        writes = [f"{stored_type(fusion.ops[number].dtype)} *y{i}" for i, number in self._kept]
        numbers = [f"index p{i}" for i in range(len(self.numbers))]
        return ", ".join(["const int *go", *sizes, *reads, *writes, *numbers])

    @property
    def _kept(self) -> list[tuple[int, int]]:
        """The results that are stored: the number of each, and that of its op."""
        return list(enumerate(self._fusion.outputs))

    def _kind(self, number: int) -> str:
        return computed_type(self._fusion.ops[number].dtype)

    # ------------------------------------------------------------------ loads and stores

    def _loaded(self, loads: list[_Load]) -> str:
        """Return the loads: all of them before the first store, which may be to the same memory."""
        together = [load.together for load in loads if load.together]
        others = self._loop([load.single for load in loads if load.single and not load.together])
        if not together:
            return others
        return self._all_or_some(together, [e.single for e in loads if e.together]) + others

    def _results(self) -> list[str]:
        """Return what becomes of each element's results."""
        if self._layout.adjacent:
            return [f"r{i}[k] = v{number};" for i, number in self._kept]
        return [f"store(y{i}[i], v{number});" for i, number in self._kept]

    def _stored(self) -> str:
        if not self._layout.adjacent:
            return ""
        many = self._layout.many
        together = [f"store_adjacent<{many}>(y{i} + first, r{i});" for i, _ in self._kept]
        return self._all_or_some(together, [f"store(y{i}[i], r{i}[k]);" for i, _ in self._kept])

    def _all_or_some(self, together: list[str], one_by_one: list[str]) -> str:
        """Return lines for all of a thread's elements at once, or for those that there are."""
        if self._layout.columns:  # A row is a whole number of threads.
            return _lines(together, 4)
        return (
            f"    if (left >= {self._layout.many}) {{\n{_lines(together, 8)}    }} else {{\n"
            f"{self._loop(one_by_one)}    }}\n"
        )

    def _loop(self, body: list[str]) -> str:
        if not body:
            return ""
        numbered, guard = _ELEMENTS[self._layout.adjacent, bool(self._layout.columns)]
        inner = "".join(f"            {line}\n" for line in body)
        if guard:
            inner = f"        if ({guard}) {{\n{inner}        }}\n"
        return (
            "    #pragma unroll\n"
            f"    for (int k = 0; k < {self._layout.many}; ++k) {{\n"
            f"{_lines(numbered, 8)}{inner}"
            "    }\n"
        )

    # ------------------------------------------------------------------ ops and operands

    def _op(self, number: int, op: FusedOp) -> str:
        operands = [self._operand(operand, op.shape) for operand in op.inputs]
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
        key = number, index_terms(own, shape)
        if key not in self._loads:
            name = f"a{len(self._loads)}"
            self._loads[key] = self._load(name, number, key[1], computed_type(dtype))
        return self._loads[key].name

    def _load(self, name: str, number: int, terms: tuple[Term, ...], kind: str) -> _Load:
        layout, column = self._layout, is_column(terms, self._layout.columns)
        if not terms or (column and layout.adjacent):
            once = _Load(name)
            once.declared = f"const {kind} {name} = load(x{number}[{'row' if terms else '0'}]);"
            return once
        load = _Load(f"{name}[k]")
        load.declared = f"{kind} {name}[{layout.many}];"
        start = None
        if is_whole(terms, layout.size):
            index, start = "i", "first"
        elif column:
            index = "row"
        elif is_row(terms, layout.columns):
            index = start = "column"
        else:
            index = self._index(terms)
        load.single = f"{name}[k] = load(x{number}[{index}]);"
        if layout.adjacent and start is not None:
            load.together = f"load_adjacent<{layout.many}>({name}, x{number} + {start});"
        return load

    def _index(self, terms: tuple[Term, ...]) -> str:
        parts = []
        for term in terms:
            part = "i"
            if term.divisor > 1:
                part = f"({part} / {self._number(term.divisor)})"
            if term.divisor * term.modulus < self._layout.size:
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


def _lines(lines: Iterable[str] | Iterator[str], indent: int) -> str:
    return "".join(f"{' ' * indent}{line}\n" for line in lines)


# What is looked for in the places of arrays, a power of two in elements: none needs more.
_ALIGNED = 16


class _Text(NamedTuple):
    """A fused kernel, how its elements are shared out, and the numbers of its index arithmetic."""

    source: Source
    layout: Layout
    numbers: tuple[int, ...]


@lru_cache(maxsize=4096)
def _text_of(fusion: Fusion, alignment: int) -> _Text:
    shared_out = layout(fusion, alignment)
    writer = Writer(fusion, shared_out)
    ops = ", ".join(op.name for op in fusion.ops)
    return _Text(Source(f"fused {ops}", writer.text()), shared_out, tuple(writer.numbers))


def fused_source(fusion: Fusion, alignment: int = _ALIGNED) -> Source:
    """Return the text of a fused kernel, which is called `fused`.

    Args:
        fusion: The kernel.
        alignment: A power of two of which the place of each of its arrays is a multiple, in
            elements.
    """
    return _text_of(fusion, alignment).source


def fused_kernel(fusion: Fusion) -> Callable[..., None]:
    """Return a fused kernel: kernel(xp, outputs, inputs, flag)."""
    size = math.prod(fusion.ops[0].shape)

    def run(xp: Launcher, outputs: tuple[Any, ...], inputs: tuple[Any, ...], flag: Any) -> None:
        if not size:
            return
        text = _text_of(fusion, _alignment((*inputs, *outputs)))
        number = np.uint32 if size < 1 << 31 else np.int64
        sizes = map(number, text.layout.numbers)
        numbers = map(number, text.numbers)
        args = (flag, *sizes, *inputs, *outputs, *numbers)
        xp.launch(text.source, "fused", text.layout.blocks, text.layout.threads, args)

    return run


def _alignment(arrays: tuple[Any, ...]) -> int:
    """Return the greatest power of two that the place of each array is a multiple of, or less."""
    places = [array.data.ptr // array.itemsize for array in arrays if array.size > 1]
    return math.gcd(_ALIGNED, *places)


def _one_op(name: str) -> DeviceKernel:
    """Return the kernel of an op: a fused one of that op alone."""

    def run(xp: Launcher, out: Any, *arrays: Any, **attrs: Any) -> None:
        inputs = tuple((array.shape, array.dtype) for array in arrays)
        op = FusedOp(name, tuple(range(len(arrays))), out.shape, out.dtype)
        fused_kernel(Fusion(inputs, (op,), (0,)))(xp, (out,), arrays, None)

    return DeviceKernel(run)


KERNELS: dict[str, DeviceKernel] = {name: _one_op(name) for name in EXPRESSIONS}
