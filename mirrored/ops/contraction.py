"""Sums of products by Einstein's convention, as transposes, new shapes and matrix products.

Two operands at a time become one: axes that both keep are a batch, and those that both lose are the
inner axis of the product. Attention is made of two of them, with heads side by side.
"""

import itertools
import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from mirrored._arguments import explained
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import as_tensors, constant
from mirrored.ops.diagonals import diag_part
from mirrored.ops.elementwise import ADD, MUL
from mirrored.ops.linalg import matmul
from mirrored.ops.narrow_floats import of_one_width
from mirrored.ops.reduction import reduce_sum
from mirrored.ops.select import where
from mirrored.ops.shaping import RESHAPE, TRANSPOSE, cast
from mirrored.ops.softmax import softmax
from mirrored.ops.spec import (
    FLOATS_AND_INDICES,
    Shape,
    check_dtype,
    check_same_dtype,
    float32,
    is_narrow,
    shape_text,
)
from mirrored.ops.tensor import Tensor

Labels = tuple[str, ...]
_ELLIPSIS = "0"  # Stands for "..." in a term; its axes are numbered from the right.
_PATHS = {"auto", "auto-hq", "branch-1", "branch-2", "branch-all", "dp", "dynamic-programming"}
_PATHS |= {"eager", "greedy", "opportunistic", "optimal", "random-greedy", "random-greedy-128"}


class _Operand(NamedTuple):
    """A tensor, and the label of each of its axes."""

    tensor: Tensor
    labels: Labels

    def sizes(self, labels: Sequence[str]) -> Shape:
        """Return the sizes of the axes of some labels."""
        return tuple(self.tensor.shape[self.labels.index(label)] for label in labels)

    def ordered(self, labels: Labels) -> Tensor:
        """Return the tensor with its axes in the order of the labels."""
        if labels == self.labels:
            return self.tensor
        return TRANSPOSE(self.tensor, perm=tuple(self.labels.index(label) for label in labels))


@explained
def einsum(
    equation: str, *inputs: Any, optimize: Any = "greedy", name: str | None = None
) -> Tensor:
    """Return sums of products of elements, by Einstein's convention.

    Each letter is an axis. Elements whose letters have the same place are multiplied, and products
    are added up over the letters that are not on the right of the arrow.

    Args:
        equation: Letters for the axes of each input, with commas between, an arrow, and those of
            the result, as in "ij,jk->ik". "..." stands for any number of axes, which broadcast. A
            letter that an input has twice is its diagonal. Without an arrow the result has the
            letters that come once, in order.
        *inputs: Tensors of one dtype, of floats or integers.
        optimize: Accepted for compatibility: of more than two inputs those two whose product is
            smallest are multiplied first.
        name: Accepted for compatibility.

    Raises:
        ValueError: The equation is none, or has another number of inputs.
        InvalidArgumentError: Ranks, sizes or dtypes do not fit.
        KeyError: There is no such way to optimize.

    Example:
        >>> import mirrored as mr
        >>> mr.einsum("ij,j->i", [[1, 2], [3, 4]], [1, 10]).numpy()
        array([21, 43], dtype=int32)
        >>> mr.einsum("ii", [[1.0, 2.0], [3.0, 4.0]]).numpy().item()
        5.0
    """
    terms, result = _parsed(equation, len(inputs))
    if len(inputs) > 2 and isinstance(optimize, str) and optimize not in _PATHS:
        raise KeyError(f"Path optimizer {optimize!r} not found, valid options are {sorted(_PATHS)}")
    tensors = of_one_width(as_tensors(inputs))
    specs = [tensor.spec for tensor in tensors]
    check_dtype("Einsum", FLOATS_AND_INDICES, *specs)
    check_same_dtype("Einsum", *specs)
    operands = [_labelled(i, *pair) for i, pair in enumerate(zip(tensors, terms, strict=True))]
    _check_sizes(operands)
    spread = max((sum(map(str.isdigit, operand.labels)) for operand in operands), default=0)
    if spread and _ELLIPSIS not in result:
        raise InvalidArgumentError(
            f"Output contains {spread} broadcasting dimension(s) but no ellipsis (...) was found "
            "in the output subscripts. [Op:Einsum]"
        )
    wanted = _spelled(result, spread)
    operands = [_without_repeats(operand) for operand in operands]
    while len(operands) > 1:
        i, j = _cheapest(operands, wanted)
        b, a = operands.pop(j), operands.pop(i)
        operands.append(_product(a, b, _kept(operands, wanted)))
    return _summed(operands[0], set(wanted)).ordered(wanted)


# ---------------------------------------------------------------------------- the equation


def _parsed(equation: str, count: int) -> tuple[list[str], str]:
    """Return the letters of each input and those of the result."""
    text = equation.replace(" ", "")
    spelled = text.replace("...", _ELLIPSIS)
    if _ELLIPSIS in text or not re.fullmatch("[a-zA-Z0,]*(->[a-zA-Z0]*)?", spelled):
        raise ValueError(f"Subscripts have incorrect format: {equation}")
    left, arrow, result = spelled.partition("->")
    terms = left.split(",")
    if len(terms) != count:
        raise ValueError(f'Got {count} inputs for equation "{equation}", expecting {len(terms)}')
    if not arrow:
        counts = Counter(left.replace(",", ""))
        result = "".join(sorted(label for label, times in counts.items() if times == 1))
    if len(set(result)) != len(result):
        raise ValueError(f"Output subscripts contain a label appearing more than once: {equation}")
    for label in result.replace(_ELLIPSIS, ""):
        if label not in left:
            raise ValueError(
                f"Output subscripts contain the label {label} not present in the input subscripts."
            )
    for term in terms:
        if term.count(_ELLIPSIS) > 1:
            raise ValueError(f"Too many ellipses in input label {term.replace('0', '...')}.")
    return terms, result


def _spelled(term: str, spread: int) -> Labels:
    """Return a term's labels; an ellipsis stands for a number of them."""
    numbers = [str(place) for place in range(spread, 0, -1)]
    return tuple(
        itertools.chain.from_iterable(numbers if label == _ELLIPSIS else [label] for label in term)
    )


def _labelled(number: int, tensor: Tensor, term: str) -> _Operand:
    named = len(term.replace(_ELLIPSIS, ""))
    if tensor.ndim < named or (_ELLIPSIS not in term and tensor.ndim != named):
        least = "at least " if _ELLIPSIS in term else ""
        raise InvalidArgumentError(
            f"Expected input {number} to have rank {least}{named} but got: {tensor.ndim} "
            "[Op:Einsum]"
        )
    return _Operand(tensor, _spelled(term, tensor.ndim - named))


def _check_sizes(operands: Sequence[_Operand]) -> None:
    """Raise unless axes of one label have one size, or, in an ellipsis, broadcast."""
    sizes: dict[str, int] = {}
    for tensor, labels in operands:
        for axis, (label, size) in enumerate(zip(labels, tensor.shape, strict=True)):
            known = sizes.setdefault(label, size)
            if label.isdigit() and 1 in (known, size):
                sizes[label] = max(known, size) if 0 not in (known, size) else 0
            elif known != size:
                raise InvalidArgumentError(
                    f"Expected dimension {known} at axis {axis} of the input shaped "
                    f"{shape_text(tensor.shape)} but got dimension {size} [Op:Einsum]"
                )


# ---------------------------------------------------------------------------- one operand


def _without_repeats(operand: _Operand) -> _Operand:
    """Return the diagonals of axes that have one label."""
    tensor, labels = operand
    for label, times in Counter(labels).items():
        for _ in range(times - 1):
            first = labels.index(label)
            second = labels.index(label, first + 1)
            rest = tuple(i for i in range(len(labels)) if i not in (first, second))
            tensor = diag_part(TRANSPOSE(tensor, perm=(*rest, first, second)))
            labels = (*(labels[i] for i in rest), label)
    return _Operand(tensor, labels)


def _summed(operand: _Operand, kept: set[str]) -> _Operand:
    """Return sums over the axes that are not kept."""
    lost = [axis for axis, label in enumerate(operand.labels) if label not in kept]
    if not lost:
        return operand
    labels = tuple(label for label in operand.labels if label in kept)
    return _Operand(reduce_sum(operand.tensor, axis=lost), labels)


# ---------------------------------------------------------------------------- two operands


def _kept(others: Sequence[_Operand], wanted: Labels) -> set[str]:
    """Return the labels that are asked for after a product."""
    return set(wanted).union(*(other.labels for other in others))


def _cheapest(operands: Sequence[_Operand], wanted: Labels) -> tuple[int, int]:
    """Return the places of the two operands whose product is smallest beside what it replaces."""

    def growth(pair: tuple[int, int]) -> int:
        a, b = (operands[place] for place in pair)
        rest = [operand for place, operand in enumerate(operands) if place not in pair]
        sizes = {**dict(zip(a.labels, a.tensor.shape, strict=True))}
        for label, size in zip(b.labels, b.tensor.shape, strict=True):
            sizes[label] = max(size, sizes.get(label, size))
        kept = _kept(rest, wanted)
        product = math.prod(size for label, size in sizes.items() if label in kept)
        return product - a.tensor.size - b.tensor.size

    return min(itertools.combinations(range(len(operands)), 2), key=growth)


def _product(a: _Operand, b: _Operand, kept: set[str]) -> _Operand:
    """Return the product of two operands, summed over what nobody asks for later."""
    a, b = _summed(a, kept.union(b.labels)), _summed(b, kept.union(a.labels))
    inner = tuple(label for label in a.labels if label in b.labels and label not in kept)
    if not inner:
        return _outer(a, b)
    batch = tuple(label for label in a.labels if label in b.labels and label in kept)
    free_a, free_b = (
        tuple(label for label in side.labels if label not in {*batch, *inner}) for side in (a, b)
    )
    left, turned_a = _matrices(a, batch, free_a, inner)
    right, turned_b = _matrices(b, batch, inner, free_b)
    product = matmul(left, right, transpose_a=turned_a, transpose_b=turned_b)
    shape = (*product.shape[:-2], *a.sizes(free_a), *b.sizes(free_b))
    return _Operand(RESHAPE(product, shape=shape), (*batch, *free_a, *free_b))


def _matrices(
    operand: _Operand, batch: Labels, rows: Labels, columns: Labels
) -> tuple[Tensor, bool]:
    """Return an operand as a batch of matrices, and whether they are still to be transposed."""
    turned = operand.labels == (*batch, *columns, *rows)
    first, second = (columns, rows) if turned else (rows, columns)
    shape = (*operand.sizes(batch), math.prod(operand.sizes(first)))
    shape = (*shape, math.prod(operand.sizes(second)))
    return RESHAPE(operand.ordered((*batch, *first, *second)), shape=shape), turned


def _outer(a: _Operand, b: _Operand) -> _Operand:
    """Return the product of two operands of which no axis is summed over."""
    of_b = tuple(label for label in b.labels if label not in a.labels)
    both = tuple(label for label in a.labels if label in b.labels)
    left = RESHAPE(a.tensor, shape=(*a.tensor.shape, *(1,) * len(of_b)))
    spread = [b.sizes([label])[0] if label in both else 1 for label in a.labels]
    right = RESHAPE(b.ordered((*both, *of_b)), shape=(*spread, *b.sizes(of_b)))
    return _Operand(MUL(left, right), (*a.labels, *of_b))


_LOWEST = -0.7 * 3.38953e38  # Keras' score of what a mask leaves out.


def attended(
    query: Tensor, key: Tensor, value: Tensor, mask: Any, scale: float, bias: Any = None
) -> Tensor:
    """Return means of values, by the softmax of products of queries and keys in float32 or more.

    A query that may look at no key has the mean of all values.

    Args:
        query: Floats of shape (batch, queries, heads, size).
        key: The same dtype, and shape (batch, keys, heads, size).
        value: The same.
        mask: Booleans that broadcast to (batch, heads, queries, keys): which keys each query may
            look at; None: all.
        scale: What the products are multiplied by.
        bias: What is added to them then, of a shape that broadcasts likewise; None: nothing.
    """
    narrow = is_narrow(query.dtype)
    if not narrow:  # As well as the products, which are more.
        query = MUL(query, scale)
    scores = einsum("btnh,bsnh->bnts", query, key)
    if narrow:
        scores = MUL(cast(scores, float32), scale)
    if bias is not None:
        scores = ADD(scores, cast(bias, scores.dtype))
    if mask is not None:
        scores = where(mask, scores, constant(_LOWEST, scores.dtype))
    return einsum("bnts,bsnh->btnh", cast(softmax(scores), value.dtype), value)
