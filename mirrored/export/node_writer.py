"""Collects the nodes of an ONNX file.

Each value has a dtype, and each node is compared with what ONNX says that it takes.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np

from mirrored._extras import package
from mirrored.export.recordings import Owner
from mirrored.export.sizes import Dim, Size, Term
from mirrored.ops.spec import DType, as_dtype, bool_, int64

OPSET = 18

_NAMES = {"float32": "FLOAT", "float64": "DOUBLE"}  # Others have NumPy's, in capitals.


def onnx_module() -> Any:
    """Return the package `onnx`.

    Raises:
        ImportError: The package is not installed.
    """
    return package("onnx", "onnx", "Models are exported by")


@dataclass(frozen=True, slots=True)
class Ref:
    """A value in the file.

    Attributes:
        name: Its name.
        dtype: Its dtype.
    """

    name: str
    dtype: DType


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an op, for which a rule writes nodes.

    Attributes:
        op: The op's name.
        inputs: Its inputs.
        shapes: Their shapes.
        attrs: Its attributes, in which numbers may depend on sizes.
        dtype: The dtype of what it computes.
        shape: The shape of that.
        layer: What calls it.
    """

    op: str
    inputs: tuple[Ref, ...]
    shapes: tuple[tuple[Dim, ...], ...]
    attrs: Mapping[str, Any]
    dtype: DType
    shape: tuple[Dim, ...]
    layer: Owner

    def refuse(self, why: str) -> NotImplementedError:
        """Return the error that says why it cannot be written.

        Args:
            why: What a call of it is.
        """
        return NotImplementedError(
            f"The operation {self.op!r} cannot be written as ONNX here: it {why}. Received: a "
            f"call of it in {self.layer}. Pass the sizes to `Input`, or compute it in another way."
        )


class Writer:
    """Makes nodes and constants, each with a name of its own.

    Args:
        sizes: For each size of inputs that is not known, an input that has it, and its axis.

    Attributes:
        nodes: The nodes so far.
        constants: The constants, and the weights, by their names.
        call: The call whose nodes are written just now.
    """

    def __init__(self, sizes: Sequence[tuple[Ref, int]]) -> None:
        self._onnx = onnx_module()
        self._sizes = sizes
        self._names: Counter[str] = Counter()
        self._shared: dict[Any, Ref] = {}
        self._transposed: dict[Ref, tuple[Ref, tuple[int, ...]]] = {}
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}
        self.call: Call | None = None

    def name(self, wish: str) -> str:
        """Return a name that is nobody's yet.

        Args:
            wish: What it is to be.
        """
        self._names[wish] += 1
        times = self._names[wish] - 1
        return self.name(f"{wish}_{times}") if times else wish

    def weight(self, name: str, value: Any) -> Ref:
        """Return a weight's value.

        Args:
            name: The weight's name.
            value: The value, a NumPy array.
        """
        ref = Ref(self.name(name), value.dtype)
        self.constants[ref.name] = value
        return ref

    def constant(self, value: Any, dtype: Any = None) -> Ref:
        """Return a constant, of which there is one whoever asks for it.

        Args:
            value: The value.
            dtype: Its dtype.
        """
        array = np.asarray(value) if dtype is None else np.asarray(value).astype(as_dtype(dtype))
        key = (array.dtype, array.shape, array.tobytes())
        if key not in self._shared:
            self._shared[key] = self.weight("constant", array)
        return self._shared[key]

    def like(self, ref: Ref, value: float) -> Ref:
        """Return a number in a value's dtype."""
        return self.constant(value, ref.dtype)

    def add(self, op: str, *inputs: Ref, dtype: Any = None, output: int = 0, **attrs: Any) -> Ref:
        """Add a node and return its result.

        Args:
            op: ONNX's name of it.
            *inputs: Its inputs.
            dtype: The dtype of the result; None: that of the first input.
            output: Which of its outputs is wanted.
            **attrs: Its attributes.

        Raises:
            NotImplementedError: ONNX has it for other dtypes alone.
        """
        self._check(op, inputs)
        scope = f"{self.call.layer.name}/" if self.call and self.call.layer.name else ""
        wish = f"{scope}{op}"
        result = Ref(self.name(wish), inputs[0].dtype if dtype is None else as_dtype(dtype))
        names = [self.name(f"{wish}_unused") for _ in range(output)] + [result.name]
        input_names = [ref.name for ref in inputs]
        self.nodes.append(self._onnx.helper.make_node(op, input_names, names, result.name, **attrs))
        return result

    def shared(self, op: str, *inputs: Ref, dtype: Any = None, **attrs: Any) -> Ref:
        """Return the result of a node of which there is one whoever asks for it.

        Args:
            op: ONNX's name of it.
            *inputs: Its inputs.
            dtype: The dtype of the result; None: that of the first input.
            **attrs: Its attributes.
        """
        key = (op, inputs, repr(attrs))
        if key not in self._shared:
            self._shared[key] = self.add(op, *inputs, dtype=dtype, **attrs)
        return self._shared[key]

    def leave_out_unused(self, names: Sequence[str]) -> None:
        """Leave out the nodes on which no value with one of these names depends.

        Args:
            names: The names.
        """
        used = {*names}
        kept = []
        for node in reversed(self.nodes):
            if not used.isdisjoint(node.output):
                used.update(node.input)
                kept.append(node)
        self.nodes = kept[::-1]

    def _check(self, op: str, inputs: Sequence[Ref]) -> None:
        taken = self._onnx.defs.get_schema(op, OPSET, "").inputs
        for place, ref in enumerate(inputs):
            text = f"tensor({_name_of(ref.dtype).lower()})"
            if text not in taken[min(place, len(taken) - 1)].types:
                why = f"takes {ref.dtype.name}, which ONNX's {op} does not"
                raise self.call.refuse(why) if self.call else NotImplementedError(why)

    # ------------------------------------------------------------------ what rules ask for

    def cast(self, ref: Ref, dtype: Any) -> Ref:
        """Return a value in a dtype.

        Args:
            ref: The value.
            dtype: The dtype.
        """
        wanted = as_dtype(dtype)
        if ref.dtype == wanted:
            return ref
        return self.add("Cast", ref, dtype=wanted, to=onnx_type(wanted))

    def dims(self, shape: Sequence[Dim]) -> Ref:
        """Return numbers that may depend on sizes, as a vector of int64.

        Args:
            shape: The numbers.

        Raises:
            NotImplementedError: One of them is not known.
        """
        known = [size for size in shape if isinstance(size, int)]
        if len(known) == len(shape):
            return self.constant(np.array(known, np.int64))
        parts = [self._dim(size) for size in shape]
        return parts[0] if len(parts) == 1 else self.shared("Concat", *parts, axis=0)

    def _dim(self, dim: Dim) -> Ref:
        if isinstance(dim, int):
            return self.constant(np.array([dim], np.int64))
        if dim is None:
            why = "has a size that is not a sum of products of the inputs' sizes"
            raise self.call.refuse(why) if self.call else NotImplementedError(why)
        total = reduce(partial(self.shared, "Add"), map(self._product, dim.terms))
        return total if dim.divisor == 1 else self.shared("Div", total, self._dim(dim.divisor))

    def _product(self, term: Term) -> Ref:
        factors: list[Ref] = []
        for place, power in enumerate(term.powers):
            if power:
                ref, axis = self._sizes[place]
                size = self.shared("Shape", ref, dtype=int64, start=axis, end=axis + 1)
                factors += [size] * power
        if term.factor != 1 or not factors:
            factors.append(self._dim(term.factor))
        return reduce(partial(self.shared, "Mul"), factors)

    def range(self, size: Dim) -> Ref:
        """Return the numbers below a size, int64.

        Args:
            size: The size.
        """
        end = self.squeeze(self.dims([size]), [0])
        return self.shared("Range", self.constant(0, int64), end, self.constant(1, int64))

    def reshape(self, ref: Ref, shape: Sequence[Dim], before: Sequence[Dim] = ()) -> Ref:
        """Return a value in another shape.

        Args:
            ref: The value.
            shape: The shape, of which one size need not be known.
            before: Its shape before, where that is known.
        """
        kept = [
            0 if isinstance(size, Size) and place < len(before) and before[place] == size else size
            for place, size in enumerate(shape)
        ]
        open_ = [place for place, size in enumerate(kept) if not isinstance(size, int)]
        if 0 in shape:  # Which would stand for a size as it was.
            return self.add("Reshape", ref, self.dims(shape), allowzero=1)
        if len(open_) == 1:
            kept[open_[0]] = -1
        return self.add("Reshape", ref, self.dims(kept))

    def transpose(self, ref: Ref, perm: Sequence[int]) -> Ref:
        """Return a value with its axes in another order.

        Args:
            ref: The value, which may be another one whose axes were in this order.
            perm: The axes.
        """
        before, earlier = self._transposed.get(ref, (ref, range(len(perm))))
        order = tuple(earlier[axis] for axis in perm)
        if order == (*range(len(perm)),):
            return before
        result = self.add("Transpose", before, perm=[*order])
        self._transposed[result] = before, order
        return result

    def squeeze(self, ref: Ref, axes: Sequence[int]) -> Ref:
        """Return a value without axes of size 1.

        Args:
            ref: The value.
            axes: The axes.
        """
        return self.add("Squeeze", ref, self.dims(axes)) if axes else ref

    def unsqueeze(self, ref: Ref, axes: Sequence[int]) -> Ref:
        """Return a value with more axes of size 1.

        Args:
            ref: The value.
            axes: Where they are in the result.
        """
        return self.add("Unsqueeze", ref, self.dims(axes)) if axes else ref

    def where(self, condition: Ref, chosen: Ref, other: Ref) -> Ref:
        """Return one value where a condition is true, else the other.

        Args:
            condition: The condition.
            chosen: The first value.
            other: The second value.
        """
        if chosen.dtype == bool_:  # ONNX has it, and ONNX Runtime has not.
            kept = self.add("And", condition, chosen)
            return self.add("Or", kept, self.add("And", self.add("Not", condition), other))
        return self.add("Where", condition, chosen, other, dtype=chosen.dtype)

    def compare(self, op: str, first: Ref, other: Ref) -> Ref:
        """Return a comparison of two values.

        Args:
            op: ONNX's name of it.
            first: The first value.
            other: The second value.
        """
        return self.add(op, first, other, dtype=bool_)


def _name_of(dtype: DType) -> str:
    return _NAMES.get(dtype.name, dtype.name.upper())


def onnx_type(dtype: DType) -> int:
    """Return ONNX's number of a dtype."""
    return int(getattr(onnx_module().TensorProto, _name_of(dtype)))
