"""The C expressions of all elementwise ops.

They give what the NumPy kernels of the same ops give, NaN, infinities and overflow included.
"""

from collections.abc import Callable, Sequence

# From the operands to the result, each in the type that it is computed with, and that type.
Expression = Callable[[Sequence[str], str], str]

_FLOATS = ("float", "double")
_NARROW = ("u8", "i8", "u16", "i16")

# What expressions call that C does not have. Integers wrap, which is defined for unsigned ones.
FUNCTIONS = """
__device__ inline int plus(int a, int b) { return (int)((u32)a + (u32)b); }
__device__ inline i64 plus(i64 a, i64 b) { return (i64)((u64)a + (u64)b); }
__device__ inline u8 plus(u8 a, u8 b) { return (u8)(a + b); }
__device__ inline i8 plus(i8 a, i8 b) { return (i8)((u32)a + (u32)b); }
__device__ inline i16 plus(i16 a, i16 b) { return (i16)((u32)a + (u32)b); }
__device__ inline u16 plus(u16 a, u16 b) { return (u16)((u32)a + (u32)b); }
__device__ inline u32 plus(u32 a, u32 b) { return (u32)(a + b); }
__device__ inline u64 plus(u64 a, u64 b) { return (u64)(a + b); }
__device__ inline float plus(float a, float b) { return a + b; }
__device__ inline double plus(double a, double b) { return a + b; }
__device__ inline int minus(int a, int b) { return (int)((u32)a - (u32)b); }
__device__ inline i64 minus(i64 a, i64 b) { return (i64)((u64)a - (u64)b); }
__device__ inline u8 minus(u8 a, u8 b) { return (u8)(a - b); }
__device__ inline i8 minus(i8 a, i8 b) { return (i8)((u32)a - (u32)b); }
__device__ inline i16 minus(i16 a, i16 b) { return (i16)((u32)a - (u32)b); }
__device__ inline u16 minus(u16 a, u16 b) { return (u16)((u32)a - (u32)b); }
__device__ inline u32 minus(u32 a, u32 b) { return (u32)(a - b); }
__device__ inline u64 minus(u64 a, u64 b) { return (u64)(a - b); }
__device__ inline float minus(float a, float b) { return a - b; }
__device__ inline double minus(double a, double b) { return a - b; }
__device__ inline int times(int a, int b) { return (int)((u32)a * (u32)b); }
__device__ inline i64 times(i64 a, i64 b) { return (i64)((u64)a * (u64)b); }
__device__ inline u8 times(u8 a, u8 b) { return (u8)(a * b); }
__device__ inline i8 times(i8 a, i8 b) { return (i8)((u32)a * (u32)b); }
__device__ inline i16 times(i16 a, i16 b) { return (i16)((u32)a * (u32)b); }
__device__ inline u16 times(u16 a, u16 b) { return (u16)((u32)a * (u32)b); }
__device__ inline u32 times(u32 a, u32 b) { return (u32)(a * b); }
__device__ inline u64 times(u64 a, u64 b) { return (u64)(a * b); }
__device__ inline float times(float a, float b) { return a * b; }
__device__ inline double times(double a, double b) { return a * b; }
__device__ inline float power(float a, float b) { return powf(a, b); }
__device__ inline double power(double a, double b) { return pow(a, b); }
__device__ inline float floor_div(float a, float b) { return floorf(a / b); }
__device__ inline double floor_div(double a, double b) { return floor(a / b); }
__device__ inline u8 floor_div(u8 a, u8 b) { return b ? (u8)(a / b) : (u8)0; }
__device__ inline u16 floor_div(u16 a, u16 b) { return b ? (u16)(a / b) : (u16)0; }
__device__ inline u32 floor_div(u32 a, u32 b) { return b ? (u32)(a / b) : (u32)0; }
__device__ inline u64 floor_div(u64 a, u64 b) { return b ? (u64)(a / b) : (u64)0; }
template <typename I> __device__ inline I floor_div(I a, I b) {
    if (b == 0) { return 0; }
    if (b == -1) { return minus((I)0, a); }
    return (I)(a / b - (a % b != 0 && (a < 0) != (b < 0)));
}
__device__ inline float floor_mod(float a, float b) {
    float rest = fmodf(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
__device__ inline double floor_mod(double a, double b) {
    double rest = fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
__device__ inline u8 floor_mod(u8 a, u8 b) { return b ? (u8)(a % b) : (u8)0; }
__device__ inline u16 floor_mod(u16 a, u16 b) { return b ? (u16)(a % b) : (u16)0; }
__device__ inline u32 floor_mod(u32 a, u32 b) { return b ? (u32)(a % b) : (u32)0; }
__device__ inline u64 floor_mod(u64 a, u64 b) { return b ? (u64)(a % b) : (u64)0; }
template <typename I> __device__ inline I floor_mod(I a, I b) {
    if (b == 0 || b == -1) { return 0; }
    I rest = (I)(a % b);
    return rest != 0 && (rest < 0) != (b < 0) ? (I)(rest + b) : rest;
}
template <typename I> __device__ inline I power(I a, I b) {
    if (b < 0) { return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0; }
    I result = 1;
    for (; b; b >>= 1) { if (b & 1) { result = times(result, a); } a = times(a, a); }
    return result;
}
"""


def _call(name: str) -> Expression:
    """Return the expression that calls a function of C, in single precision for floats."""
    return lambda x, t: f"{name}{'f' if t == 'float' else ''}({', '.join(x)})"


def _binary(operator: str) -> Expression:
    return lambda x, t: f"({x[0]} {operator} {x[1]})"


def _sign(x: Sequence[str], t: str) -> str:
    sign = f"({t})(({x[0]} > 0) - ({x[0]} < 0))"
    return f"({x[0]} != {x[0]} ? {x[0]} : {sign})" if t in _FLOATS else sign


def _chosen(operator: str) -> Expression:
    # A comparison with NaN is false, so a NaN on the right is chosen; one on the left is asked for.
    return lambda x, t: f"({x[0]} {operator} {x[1]} || {x[0]} != {x[0]} ? {x[0]} : {x[1]})"


def _sum(x: Sequence[str], t: str) -> str:
    total = x[0]
    for term in x[1:]:  # In the order of the inputs, as on the host.
        total = f"plus({total}, {term})"
    return total


def _cast(x: Sequence[str], t: str) -> str:
    if t == "bool":
        return f"({x[0]} != 0)"
    # By way of an int, of whose bits the last ones are taken: negative floats have none in a byte.
    return f"({t})(int)({x[0]})" if t in _NARROW else f"({t})({x[0]})"


def _sigmoid(x: Sequence[str], t: str) -> str:
    return f"(1 / (1 + {_call('exp')([f'-{x[0]}'], t)}))"


def _softplus(x: Sequence[str], t: str) -> str:
    tail = _call("log1p")([_call("exp")([f"-{_call('fabs')(x, t)}"], t)], t)
    return f"({_positive_part(x[0])} + {tail})"


def _positive_part(x: str) -> str:
    return f"({x} > 0 || {x} != {x} ? {x} : 0)"


def _sigmoid_loss(x: Sequence[str], t: str) -> str:
    # (max(z, 0) - z y) + log(1 + exp(-|z|)), in the order of the NumPy kernel.
    size = _call("fabs")([x[0]], t)
    tail = _call("log1p")([_call("exp")([f"-{size}"], t)], t)
    return f"({tail} + ({_positive_part(x[0])} - {x[0]} * {x[1]}))"


EXPRESSIONS: dict[str, Expression] = {
    "Neg": lambda x, t: f"minus(({t})0, {x[0]})" if t not in _FLOATS else f"(-{x[0]})",
    "Sign": _sign,
    "Abs": lambda x, t: (
        _call("fabs")(x, t) if t in _FLOATS else f"({x[0]} < 0 ? minus(({t})0, {x[0]}) : {x[0]})"
    ),
    "Square": lambda x, t: f"times({x[0]}, {x[0]})",
    "Sqrt": _call("sqrt"),
    "SqrtGrad": lambda x, t: f"({x[0]} == 0 ? ({t})0 : {x[0]} * ({t})0.5 / {x[1]})",
    "Rsqrt": lambda x, t: f"(1 / {_call('sqrt')(x, t)})",
    "Reciprocal": lambda x, t: f"(1 / {x[0]})",
    "Exp": _call("exp"),
    "Expm1": _call("expm1"),
    "Erf": _call("erf"),
    "Erfc": _call("erfc"),
    "Log": _call("log"),
    "Log1p": _call("log1p"),
    **{
        name: _call(name.lower())
        for name in (
            *("Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Atan2"),
            *("Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Floor", "Ceil", "Rint", "NextAfter"),
        )
    },
    "Round": _call("rint"),
    "AddV2": lambda x, t: f"plus({x[0]}, {x[1]})",
    "Sub": lambda x, t: f"minus({x[0]}, {x[1]})",
    "MulNoNan": lambda x, t: f"({x[1]} == 0 ? ({t})0 : {x[0]} * {x[1]})",
    "DivNoNan": lambda x, t: f"({x[1]} == 0 ? ({t})0 : {x[0]} / {x[1]})",
    "Xdivy": lambda x, t: f"({x[0]} == 0 ? {x[0]} : {x[0]} / {x[1]})",
    "Xlogy": lambda x, t: f"({x[0]} == 0 ? {x[0]} : {x[0]} * {_call('log')(x[1:], t)})",
    "Xlog1py": lambda x, t: f"({x[0]} == 0 ? {x[0]} : {x[0]} * {_call('log1p')(x[1:], t)})",
    "Mul": lambda x, t: f"times({x[0]}, {x[1]})",
    "RealDiv": _binary("/"),
    "FloorDiv": lambda x, t: f"floor_div({x[0]}, {x[1]})",
    "FloorMod": lambda x, t: f"floor_mod({x[0]}, {x[1]})",
    "SquaredDifference": lambda x, t: f"times(minus({x[0]}, {x[1]}), minus({x[0]}, {x[1]}))",
    "Pow": lambda x, t: f"power({x[0]}, {x[1]})",
    "Maximum": _chosen(">"),
    "Minimum": _chosen("<"),
    "AssignAddVariableOp": lambda x, t: f"plus({x[0]}, {x[1]})",
    "AssignSubVariableOp": lambda x, t: f"minus({x[0]}, {x[1]})",
    "AddN": _sum,
    "Less": _binary("<"),
    "LessEqual": _binary("<="),
    "Greater": _binary(">"),
    "GreaterEqual": _binary(">="),
    "Equal": _binary("=="),
    "NotEqual": _binary("!="),
    "SelectV2": lambda x, t: f"({x[0]} ? {x[1]} : {x[2]})",
    "LogicalAnd": _binary("&&"),
    "LogicalOr": _binary("||"),
    # Of infinity and NaN the difference from themselves is NaN.
    "IsFinite": lambda x, t: f"({x[0]} - {x[0]} == 0)",
    "IsInf": lambda x, t: f"({x[0]} == {x[0]} && {x[0]} - {x[0]} != 0)",
    "IsNan": lambda x, t: f"({x[0]} != {x[0]})",
    "LogicalNot": lambda x, t: f"(!{x[0]})",
    "Cast": _cast,
    "BroadcastTo": lambda x, t: x[0],
    "_Send": lambda x, t: x[0],
    "BiasAdd": lambda x, t: f"plus({x[0]}, {x[1]})",
    "Relu": lambda x, t: f"({x[0]} > 0 || {x[0]} != {x[0]} ? {x[0]} : ({t})0)",
    "ReluGrad": lambda x, t: f"(({t})({x[1]} > 0) * {x[0]})",
    "Sigmoid": _sigmoid,
    "SigmoidGrad": lambda x, t: f"((1 - {x[1]}) * {x[1]} * {x[0]})",
    "Softplus": _softplus,
    "Softsign": lambda x, t: f"({x[0]} / (1 + {_call('fabs')(x, t)}))",
    "Elu": lambda x, t: f"({x[0]} < 0 ? {_call('expm1')(x, t)} : {x[0]})",
    "Tanh": _call("tanh"),
    "TanhGrad": lambda x, t: f"((1 - {x[1]} * {x[1]}) * {x[0]})",
    "SigmoidCrossEntropyWithLogits": _sigmoid_loss,
}
