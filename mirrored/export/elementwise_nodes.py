"""ONNX nodes for elementwise ops and for the ops of losses and gradients.

Where ONNX has no such operation, or its definition loses digits, it is a few others.
"""

from collections.abc import Callable, Mapping

from mirrored.export.node_writer import Call, Ref, Writer
from mirrored.ops.spec import FLOATS, INTEGERS, bool_

Rule = Callable[[Writer, Call], Ref]


def plain(op: str) -> Rule:
    """Return the rule of an operation that is one of ONNX's.

    Args:
        op: ONNX's name of it.
    """
    return lambda w, call: w.add(op, *call.inputs)


def _comparison(op: str, *, negated: bool = False) -> Rule:
    def rule(w: Writer, call: Call) -> Ref:
        result = w.compare(op, *call.inputs)
        return w.add("Not", result) if negated else result

    return rule


def _like(w: Writer, ref: Ref, value: float) -> Ref:
    """Return a number in a value's dtype."""
    return w.constant(value, ref.dtype)


def _square(w: Writer, call: Call) -> Ref:
    return w.add("Mul", call.inputs[0], call.inputs[0])


def _squared_difference(w: Writer, call: Call) -> Ref:
    difference = w.add("Sub", *call.inputs)
    return w.add("Mul", difference, difference)


def _rsqrt(w: Writer, call: Call) -> Ref:
    return w.add("Reciprocal", w.add("Sqrt", call.inputs[0]))


def _expm1(w: Writer, call: Call) -> Ref:
    # Near 0 exp(x) - 1 has few digits; tanh(x / 2) (exp(x) + 1), which is the same, has all.
    (x,) = call.inputs
    unit, power = _like(w, x, 1), w.add("Exp", x)
    half = w.add("Tanh", w.add("Mul", x, _like(w, x, 0.5)))
    near = w.add("Mul", half, w.add("Add", power, unit))
    is_near = w.compare("Less", w.add("Abs", x), unit)
    return w.where(is_near, near, w.add("Sub", power, unit))


def log1p(w: Writer, x: Ref) -> Ref:
    """Return the logarithm of 1 + x.

    Args:
        w: What writes the nodes.
        x: The value.
    """
    # What 1 + x loses of x it loses of the divisor too, so that the quotient makes up for it.
    unit = _like(w, x, 1)
    sum_ = w.add("Add", unit, x)
    kept = w.add("Sub", sum_, unit)
    logarithm = w.add("Log", sum_)
    corrected = w.add("Mul", logarithm, w.add("Div", x, kept))
    is_none, is_all = w.compare("Equal", kept, _like(w, x, 0)), w.compare("Equal", sum_, x)
    return w.where(is_none, x, w.where(is_all, logarithm, corrected))


def _log1p(w: Writer, call: Call) -> Ref:
    return log1p(w, call.inputs[0])


def _softplus(w: Writer, call: Call) -> Ref:
    (x,) = call.inputs  # By the logarithm of exp(x) large numbers would become infinite.
    rest = log1p(w, w.add("Exp", w.add("Neg", w.add("Abs", x))))
    return w.add("Add", w.add("Max", x, _like(w, x, 0)), rest)


def _erfc(w: Writer, call: Call) -> Ref:
    (x,) = call.inputs
    return w.add("Sub", _like(w, x, 1), w.add("Erf", x))


def _is_finite(w: Writer, call: Call) -> Ref:
    return w.add("Not", w.add("Or", _is_inf(w, call), _is_nan(w, call)))


def _is_inf(w: Writer, call: Call) -> Ref:
    return w.add("IsInf", call.inputs[0], dtype=bool_)


def _is_nan(w: Writer, call: Call) -> Ref:
    return w.add("IsNaN", call.inputs[0], dtype=bool_)


def _add_n(w: Writer, call: Call) -> Ref:
    total = call.inputs[0]
    for input_ in call.inputs[1:]:
        total = w.add("Add", total, input_)
    return total


def _floor_division(w: Writer, call: Call) -> Ref:
    quotient = w.add("Div", *call.inputs)
    if call.dtype in FLOATS:
        return w.add("Floor", quotient)
    x, y = call.inputs  # ONNX rounds towards 0.
    zero = _like(w, x, 0)
    rest = w.add("Sub", x, w.add("Mul", quotient, y))
    apart = w.add("Xor", w.compare("Less", rest, zero), w.compare("Less", y, zero))
    is_down = w.add("And", w.add("Not", w.compare("Equal", rest, zero)), apart)
    return w.where(is_down, w.add("Sub", quotient, _like(w, x, 1)), quotient)


def _floor_modulus(w: Writer, call: Call) -> Ref:
    x, y = call.inputs
    if call.dtype in INTEGERS:
        return w.add("Mod", x, y)
    zero = _like(w, x, 0)
    rest = w.add("Mod", x, y, fmod=1)
    apart = w.add("Xor", w.compare("Less", rest, zero), w.compare("Less", y, zero))
    is_other = w.add("And", w.add("Not", w.compare("Equal", rest, zero)), apart)
    return w.where(is_other, w.add("Add", rest, y), rest)


def _rounded(op: str) -> Rule:
    def rule(w: Writer, call: Call) -> Ref:
        (x,) = call.inputs
        return x if x.dtype in INTEGERS else w.add(op, x)

    return rule


def zero_where(place: int, rule: Rule) -> Rule:
    """Return a rule of a result that is 0 where an input is, whatever the other one is.

    Args:
        place: Which input it is.
        rule: The rule of the result elsewhere.
    """

    def guarded(w: Writer, call: Call) -> Ref:
        result = rule(w, call)
        zero = _like(w, result, 0)
        return w.where(w.compare("Equal", call.inputs[place], zero), zero, result)

    return guarded


def _times_log(w: Writer, call: Call) -> Ref:
    x, y = call.inputs
    return w.add("Mul", x, w.add("Log", y))


def _times_log1p(w: Writer, call: Call) -> Ref:
    x, y = call.inputs
    return w.add("Mul", x, log1p(w, y))


def _cast(w: Writer, call: Call) -> Ref:
    return w.cast(call.inputs[0], call.dtype)


def _select(w: Writer, call: Call) -> Ref:
    return w.where(*call.inputs)


def _sign(w: Writer, call: Call) -> Ref:
    (x,) = call.inputs
    sign = w.add("Sign", x)
    if call.dtype in INTEGERS:
        return sign
    return w.where(w.add("IsNaN", x, dtype=bool_), x, sign)  # ONNX does not say what it is.


def _relu(w: Writer, call: Call) -> Ref:
    (x,) = call.inputs
    return w.add("Relu", x) if x.dtype in FLOATS else w.add("Max", x, _like(w, x, 0))


def _softsign(w: Writer, call: Call) -> Ref:
    (x,) = call.inputs
    return w.add("Div", x, w.add("Add", _like(w, x, 1), w.add("Abs", x)))


def _elu(w: Writer, call: Call) -> Ref:
    (x,) = call.inputs
    return w.where(w.compare("Less", x, _like(w, x, 0)), _expm1(w, call), x)


def _relu_gradient(w: Writer, call: Call) -> Ref:
    g, y = call.inputs
    is_on = w.cast(w.compare("Greater", y, w.constant(0, y.dtype)), g.dtype)
    return w.add("Mul", g, is_on)


def _sigmoid(w: Writer, call: Call) -> Ref:
    g, y = call.inputs
    slope = w.add("Mul", w.add("Sub", w.constant(1, y.dtype), y), y)
    return w.add("Mul", slope, g)


def _tanh(w: Writer, call: Call) -> Ref:
    g, y = call.inputs
    slope = w.add("Sub", w.constant(1, y.dtype), w.add("Mul", y, y))
    return w.add("Mul", slope, g)


def _sqrt(w: Writer, call: Call) -> Ref:
    g, y = call.inputs
    return w.add("Div", w.add("Mul", g, w.constant(0.5, g.dtype)), y)


def _sigmoid_entropy(w: Writer, call: Call) -> Ref:
    logits, labels = call.inputs
    power = w.add("Exp", w.add("Neg", w.add("Abs", logits)))
    above = w.add("Max", logits, w.constant(0, logits.dtype))
    straight = w.add("Sub", above, w.add("Mul", logits, labels))
    return w.add("Add", straight, log1p(w, power))


def _softmax_entropy(w: Writer, call: Call) -> Ref:
    logits, labels = call.inputs
    entropies = w.add("Mul", w.add("LogSoftmax", logits, axis=1), labels)
    return w.add("Neg", w.add("ReduceSum", entropies, w.dims([1]), keepdims=0))


RULES: Mapping[str, Rule] = {
    **{
        op: plain(op)
        for op in (
            *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cos", "Cosh", "Erf"),
            *("Exp", "Log", "Mul", "Neg", "Pow", "Reciprocal", "Sigmoid", "Sin", "Sinh", "Sqrt"),
            *("Sub", "Tan", "Tanh"),
        )
    },
    "AddN": _add_n,
    "AddV2": plain("Add"),
    "BiasAdd": plain("Add"),
    "Cast": _cast,
    "Ceil": _rounded("Ceil"),
    "DivNoNan": zero_where(1, plain("Div")),
    "Elu": _elu,
    "Equal": _comparison("Equal"),
    "Erfc": _erfc,
    "Expm1": _expm1,
    "Floor": _rounded("Floor"),
    "FloorDiv": _floor_division,
    "FloorMod": _floor_modulus,
    "Greater": _comparison("Greater"),
    "GreaterEqual": _comparison("GreaterOrEqual"),
    "IsFinite": _is_finite,
    "IsInf": _is_inf,
    "IsNan": _is_nan,
    "Less": _comparison("Less"),
    "LessEqual": _comparison("LessOrEqual"),
    "Log1p": _log1p,
    "LogicalAnd": plain("And"),
    "LogicalNot": plain("Not"),
    "LogicalOr": plain("Or"),
    "Maximum": plain("Max"),
    "Minimum": plain("Min"),
    "MulNoNan": zero_where(1, plain("Mul")),
    "NotEqual": _comparison("Equal", negated=True),
    "RealDiv": plain("Div"),
    "Relu": _relu,
    "ReluGrad": _relu_gradient,
    "Rint": _rounded("Round"),
    "Round": _rounded("Round"),
    "Rsqrt": _rsqrt,
    "SelectV2": _select,
    "SigmoidCrossEntropyWithLogits": _sigmoid_entropy,
    "SigmoidGrad": _sigmoid,
    "Sign": _sign,
    "SoftmaxCrossEntropyWithLogits": _softmax_entropy,
    "Softplus": _softplus,
    "Softsign": _softsign,
    "SqrtGrad": zero_where(0, _sqrt),
    "Square": _square,
    "SquaredDifference": _squared_difference,
    "TanhGrad": _tanh,
    "Xdivy": zero_where(0, plain("Div")),
    "Xlog1py": zero_where(0, _times_log1p),
    "Xlogy": zero_where(0, _times_log),
}
