"""Generates the CUDA C of a fused kernel.

One text serves all sizes of a batch: what a size changes is a parameter.
"""

from collections.abc import Iterable, Iterator

from mirrored.backends.cuda.expressions import EXPRESSIONS, FUNCTIONS
from mirrored.backends.cuda.fused_layout import (
    THREADS,
    Layout,
    Term,
    index_terms,
    is_column,
    is_row,
    is_whole,
)
from mirrored.backends.cuda.kernels.teams import NARROW
from mirrored.backends.cuda.source import PRELUDE, VECTORS, computed_type, stored_type
from mirrored.backends.stream_backend import FusedOp, Fusion, Shape

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
