"""ONNX nodes for elementwise ops and for the ops of losses and gradients.

Where ONNX has no such operation, or its definition loses digits, it is a few others.
"""

from collections.abc import Callable, Mapping
from functools import partial, reduce

from mirrored.export.node_writer import Call, Ref, Writer
from mirrored.ops.spec import FLOATS, INTEGERS, bool_

Rule = Callable[[Writer, Call], Ref]
_Formula = Callable[..., Ref]  # From the writer and the inputs.


def plain(op: str) -> Rule:
    """Return the rule of an operation that is one of ONNX's.

    Args:
        op: ONNX's name of it.
    """
    return lambda w, call: w.add(op, *call.inputs)


def _of_inputs(formula: _Formula) -> Rule:
    """Return the rule of an operation that depends on its inputs alone."""
    return lambda w, call: formula(w, *call.inputs)


def _comparison(op: str) -> _Formula:
    return lambda w, *inputs: w.compare(op, *inputs)


def _rounded(op: str) -> _Formula:
    return lambda w, x: x if x.dtype in INTEGERS else w.add(op, x)


def _zero_where(place: int, formula: _Formula) -> _Formula:
    """Return the formula of a result that is 0 where an input is, whatever the other one is."""

    def guarded(w: Writer, *inputs: Ref) -> Ref:
        result = formula(w, *inputs)
        zero = w.like(result, 0)
        return w.where(w.compare("Equal", inputs[place], zero), zero, result)

    return guarded


def _expm1(w: Writer, x: Ref) -> Ref:
    # Near 0 exp(x) - 1 has few digits; tanh(x / 2) (exp(x) + 1), which is the same, has all.
    unit, power = w.like(x, 1), w.add("Exp", x)
    half = w.add("Tanh", w.add("Mul", x, w.like(x, 0.5)))
    near = w.add("Mul", half, w.add("Add", power, unit))
    is_near = w.compare("Less", w.add("Abs", x), unit)
    return w.where(is_near, near, w.add("Sub", power, unit))


def _log1p(w: Writer, x: Ref) -> Ref:
    # What 1 + x loses of x it loses of the divisor too, so that the quotient makes up for it.
    unit = w.like(x, 1)
    sum_ = w.add("Add", unit, x)
    kept = w.add("Sub", sum_, unit)
    logarithm = w.add("Log", sum_)
    corrected = w.add("Mul", logarithm, w.add("Div", x, kept))
    is_none, is_all = w.compare("Equal", kept, w.like(x, 0)), w.compare("Equal", sum_, x)
    return w.where(is_none, x, w.where(is_all, logarithm, corrected))


def _softplus(w: Writer, x: Ref) -> Ref:
    # By the logarithm of exp(x) large numbers would become infinite.
    rest = _log1p(w, w.add("Exp", w.add("Neg", w.add("Abs", x))))
    return w.add("Add", w.add("Max", x, w.like(x, 0)), rest)


def _is_inf(w: Writer, x: Ref) -> Ref:
    return w.add("IsInf", x, dtype=bool_)


def _is_nan(w: Writer, x: Ref) -> Ref:
    return w.add("IsNaN", x, dtype=bool_)


def _opposite(w: Writer, rest: Ref, divisor: Ref, zero: Ref) -> Ref:
    """Return where a rest that is not 0 has not the sign of the divisor."""
    apart = w.add("Xor", w.compare("Less", rest, zero), w.compare("Less", divisor, zero))
    return w.add("And", w.add("Not", w.compare("Equal", rest, zero)), apart)


def _floor_division(w: Writer, x: Ref, y: Ref) -> Ref:
    quotient = w.add("Div", x, y)
    if x.dtype in FLOATS:
        return w.add("Floor", quotient)
    zero = w.like(x, 0)  # ONNX rounds towards 0.
    rest = w.add("Sub", x, w.add("Mul", quotient, y))
    is_down = _opposite(w, rest, y, zero)
    return w.where(is_down, w.add("Sub", quotient, w.like(x, 1)), quotient)


def _floor_modulus(w: Writer, x: Ref, y: Ref) -> Ref:
    if x.dtype in INTEGERS:
        return w.add("Mod", x, y)
    zero = w.like(x, 0)
    rest = w.add("Mod", x, y, fmod=1)
    return w.where(_opposite(w, rest, y, zero), w.add("Add", rest, y), rest)


def _sign(w: Writer, x: Ref) -> Ref:
    sign = w.add("Sign", x)
    # ONNX does not say what it is of NaN.
    return sign if x.dtype in INTEGERS else w.where(_is_nan(w, x), x, sign)


def _relu(w: Writer, x: Ref) -> Ref:
    return w.add("Relu", x) if x.dtype in FLOATS else w.add("Max", x, w.like(x, 0))


def _elu(w: Writer, x: Ref) -> Ref:
    return w.where(w.compare("Less", x, w.like(x, 0)), _expm1(w, x), x)


# Ops of losses and gradients.


def _sqrt_gradient(w: Writer, g: Ref, y: Ref) -> Ref:
    return w.add("Div", w.add("Mul", g, w.like(g, 0.5)), y)


def _sigmoid_entropy(w: Writer, logits: Ref, labels: Ref) -> Ref:
    power = w.add("Exp", w.add("Neg", w.add("Abs", logits)))
    above = w.add("Max", logits, w.like(logits, 0))
    straight = w.add("Sub", above, w.add("Mul", logits, labels))
    return w.add("Add", straight, _log1p(w, power))


def _softmax_entropy(w: Writer, logits: Ref, labels: Ref) -> Ref:
    entropies = w.add("Mul", w.add("LogSoftmax", logits, axis=1), labels)
    return w.add("Neg", w.add("ReduceSum", entropies, w.dims([1]), keepdims=0))


_PLAIN = {
    **{
        op: op
        for op in (
            *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cos", "Cosh", "Erf"),
            *("Exp", "Log", "Mul", "Neg", "Pow", "Reciprocal", "Sigmoid", "Sin", "Sinh", "Sqrt"),
            *("Sub", "Tan", "Tanh"),
        )
    },
    "AddV2": "Add",
    "BiasAdd": "Add",
    "LogicalAnd": "And",
    "LogicalNot": "Not",
    "LogicalOr": "Or",
    "Maximum": "Max",
    "Minimum": "Min",
    "RealDiv": "Div",
}
_FORMULAS: Mapping[str, _Formula] = {
    "AddN": lambda w, *terms: reduce(partial(w.add, "Add"), terms),
    "Ceil": _rounded("Ceil"),
    "DivNoNan": _zero_where(1, lambda w, x, y: w.add("Div", x, y)),
    "Elu": _elu,
    "Equal": _comparison("Equal"),
    "Erfc": lambda w, x: w.add("Sub", w.like(x, 1), w.add("Erf", x)),
    "Expm1": _expm1,
    "Floor": _rounded("Floor"),
    "FloorDiv": _floor_division,
    "FloorMod": _floor_modulus,
    "Greater": _comparison("Greater"),
    "GreaterEqual": _comparison("GreaterOrEqual"),
    "IsFinite": lambda w, x: w.add("Not", w.add("Or", _is_inf(w, x), _is_nan(w, x))),
    "IsInf": _is_inf,
    "IsNan": _is_nan,
    "Less": _comparison("Less"),
    "LessEqual": _comparison("LessOrEqual"),
    "Log1p": _log1p,
    "MulNoNan": _zero_where(1, lambda w, x, y: w.add("Mul", x, y)),
    "NotEqual": lambda w, x, y: w.add("Not", w.compare("Equal", x, y)),
    "Relu": _relu,
    "Rint": _rounded("Round"),
    "Round": _rounded("Round"),
    "Rsqrt": lambda w, x: w.add("Reciprocal", w.add("Sqrt", x)),
    "SelectV2": lambda w, *values: w.where(*values),
    "Sign": _sign,
    "Softplus": _softplus,
    "Softsign": lambda w, x: w.add("Div", x, w.add("Add", w.like(x, 1), w.add("Abs", x))),
    "Square": lambda w, x: w.add("Mul", x, x),
    "SquaredDifference": lambda w, x, y: w.add("Mul", *[w.add("Sub", x, y)] * 2),
    "Xdivy": _zero_where(0, lambda w, x, y: w.add("Div", x, y)),
    "Xlog1py": _zero_where(0, lambda w, x, y: w.add("Mul", x, _log1p(w, y))),
    "Xlogy": _zero_where(0, lambda w, x, y: w.add("Mul", x, w.add("Log", y))),
    # Ops of losses and gradients.
    "ReluGrad": lambda w, g, y: w.add(
        "Mul", g, w.cast(w.compare("Greater", y, w.like(y, 0)), g.dtype)
    ),
    "SigmoidCrossEntropyWithLogits": _sigmoid_entropy,
    "SigmoidGrad": lambda w, g, y: w.add("Mul", w.add("Mul", w.add("Sub", w.like(y, 1), y), y), g),
    "SoftmaxCrossEntropyWithLogits": _softmax_entropy,
    "SqrtGrad": _zero_where(0, _sqrt_gradient),
    "TanhGrad": lambda w, g, y: w.add("Mul", w.add("Sub", w.like(y, 1), w.add("Mul", y, y)), g),
}
RULES: Mapping[str, Rule] = {
    "Cast": lambda w, call: w.cast(call.inputs[0], call.dtype),
    **{name: plain(op) for name, op in _PLAIN.items()},
    **{name: _of_inputs(formula) for name, formula in _FORMULAS.items()},
}
