"""The functions of this library under TensorFlow 1's names, as operations of a graph.

A table says what each is here and what it is called in a graph; arguments of older names go to
those of today.
"""

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from mirrored.compat.v1.elements import Tensor
from mirrored.compat.v1.graph import graph_of
from mirrored.compat.v1.operands import Given, with_constants

# A name of TensorFlow 1's, what it is here where that is another, its type, and what it is called
# in a graph where that is not its type.
_TABLE = """
abs math.abs Abs
add . AddV2 Add
subtract . Sub
multiply . Mul
divide . RealDiv truediv
truediv math.truediv RealDiv truediv
floordiv math.floordiv FloorDiv floordiv
floor_div math.floordiv FloorDiv FloorDiv
mod math.mod FloorMod
floormod math.floormod FloorMod
pow math.pow Pow
negative . Neg
matmul . MatMul
reduce_sum . Sum
reduce_mean . Mean
reduce_max . Max
reduce_min . Min
reduce_prod . Prod
reduce_all . All
reduce_any . Any
reduce_logsumexp . ReduceLogSumExp
argmax . ArgMax
argmin . ArgMin
square . Square
sqrt . Sqrt
rsqrt math.rsqrt Rsqrt
exp . Exp
expm1 math.expm1 Expm1
log math.log Log
log1p math.log1p Log1p
reciprocal math.reciprocal Reciprocal
tanh . Tanh
sigmoid . Sigmoid
sin . Sin
cos . Cos
tan . Tan
asin . Asin
acos . Acos
atan . Atan
atan2 . Atan2
sinh . Sinh
cosh . Cosh
erf math.erf Erf
floor . Floor
ceil math.ceil Ceil
round math.round Round
rint math.rint Rint
sign . Sign
maximum . Maximum
minimum . Minimum
equal . Equal
not_equal . NotEqual
less . Less
less_equal . LessEqual
greater . Greater
greater_equal . GreaterEqual
logical_and . LogicalAnd
logical_or . LogicalOr
logical_not . LogicalNot
logical_xor math.logical_xor LogicalXor
is_nan math.is_nan IsNan
is_inf math.is_inf IsInf
is_finite math.is_finite IsFinite
squared_difference math.squared_difference SquaredDifference
cast . Cast
reshape . Reshape
transpose . Transpose transpose
expand_dims . ExpandDims
squeeze . Squeeze
concat . ConcatV2 concat
stack . Pack stack
unstack . Unpack unstack
split . Split split
slice . Slice
tile . Tile
pad . Pad
reverse . ReverseV2
gather . GatherV2
one_hot . OneHot one_hot
zeros . Const zeros
ones . Const ones
zeros_like . ZerosLike zeros_like
ones_like . OnesLike ones_like
fill . Fill
range . Range range
linspace . LinSpace linspace
lin_space linspace LinSpace linspace
eye . Eye eye
diag linalg.diag Diag
trace linalg.trace Trace trace
shape . Shape
size . Size
rank . Rank
identity . Identity
stop_gradient . StopGradient
clip_by_value . ClipByValue clip_by_value
clip_by_norm . ClipByNorm clip_by_norm
add_n . AddN
cumsum math.cumsum Cumsum
cumprod math.cumprod Cumprod
norm . Norm norm
tensordot . Tensordot
einsum . Einsum einsum
matrix_inverse linalg.inv MatrixInverse
matrix_determinant linalg.det MatrixDeterminant
matrix_transpose linalg.matrix_transpose Transpose matrix_transpose
cholesky linalg.cholesky Cholesky
nn.relu . Relu
nn.relu6 . Relu6
nn.leaky_relu . LeakyRelu
nn.elu . Elu
nn.selu . Selu
nn.softplus . Softplus
nn.softsign . Softsign
nn.softmax . Softmax
nn.log_softmax . LogSoftmax
nn.sigmoid . Sigmoid
nn.tanh . Tanh
nn.bias_add . BiasAdd
nn.l2_loss . L2Loss
nn.l2_normalize . L2Normalize l2_normalize
nn.top_k . TopKV2
nn.moments . Moments moments
nn.embedding_lookup . EmbeddingLookup embedding_lookup
nn.softmax_cross_entropy_with_logits_v2 nn.softmax_cross_entropy_with_logits \
 SoftmaxCrossEntropyWithLogits softmax_cross_entropy_with_logits
random_uniform random.uniform RandomUniform random_uniform
random_normal random.normal RandomStandardNormal random_normal
truncated_normal random.truncated_normal TruncatedNormal truncated_normal
random_shuffle random.shuffle RandomShuffle
"""

# Which of the arguments of today older ones are.
_OLDER = {
    "keep_dims": "keepdims",
    "reduction_indices": "axis",
    "dimension": "axis",
    "dim": "axis",
    "squeeze_dims": "axis",
    "concat_dim": "axis",
    "split_dim": "axis",
}

# What Python's operators are called in a graph, by what they call.
_OPERATORS = {
    "AddV2": "add",
    "Sub": "sub",
    "Mul": "mul",
    "RealDiv": "truediv",
    "_true_divide": "truediv",
    "FloorDiv": "floordiv",
    "FloorMod": "mod",
    "Pow": "pow",
    "MatMul": "matmul",
    "BatchMatMulV2": "matmul",
    "StridedSlice": "strided_slice",
    "LogicalAnd": "and",
    "LogicalOr": "or",
    "logical_xor": "xor",
}
_TYPES = {"_true_divide": "RealDiv", "logical_xor": "LogicalXor"}


class Row(NamedTuple):
    """One line of the table.

    Attributes:
        target: Where the function is, from the package on.
        kind: The type of its operations.
        called: What they are called.
    """

    target: str
    kind: str
    called: str


def _rows() -> dict[str, Row]:
    found = {}
    for line in _TABLE.strip().replace("\\\n", "").splitlines():
        name, target, kind, *called = line.split()
        found[name] = Row(name if target == "." else target, kind, called[0] if called else kind)
    return found


ROWS = _rows()


def drawn(
    function: Callable[..., Any], args: Any, kwargs: dict[str, Any], kind: str, name: str
) -> Any:
    """Return what an operation makes that calls a function, in the structure that it returns."""
    return graph_of(args, kwargs).draw(function, args, kwargs, kind=kind, name=name).node.structure


def drawn_with_constants(function: Callable[..., Any], given: Given, kind: str, name: str) -> Any:
    """Return the same where numbers among the arguments are operations of their own."""
    graph = graph_of(given.args, given.kwargs)
    whole, shown = with_constants(graph, kind, name, given)
    operation = graph.draw(function, given.args, given.kwargs, kind=kind, name=whole, shown=shown)
    return operation.node.structure


def _of_operator(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Draw what an operator or a function of the library makes of a tensor of a graph."""
    named = dict(kwargs)
    name = named.pop("name", None)
    own: str = getattr(function, "__name__", None) or function.name
    kind = _TYPES.get(own, own)
    given = Given(args, named, ())
    return drawn_with_constants(function, given, kind, name or _OPERATORS.get(own, own))


Tensor.draws = staticmethod(_of_operator)


def named_call(name: str) -> Callable[..., Any]:
    """Return the function of a name of the table.

    Args:
        name: The name, such as "reduce_sum" or "nn.relu".
    """
    row = ROWS[name]
    home, _, last = row.target.rpartition(".")
    function = getattr(importlib.import_module(f"mirrored.{home}".rstrip(".")), last)
    parameters = inspect.signature(function).parameters

    @functools.wraps(function)
    def call(*args: Any, name: str | None = None, **kwargs: Any) -> Any:
        named = {
            _OLDER[key] if key in _OLDER and key not in parameters else key: value
            for key, value in kwargs.items()
            if not (key in _OLDER and key not in parameters and value is None)
        }
        given = Given(args, named, list(parameters))
        return drawn_with_constants(function, given, row.kind, name or row.called)

    call.__name__ = last
    call.__doc__ = f"Draw an operation: `mirrored.{row.target}`, which says the rest."
    return call
