"""Calls of `keras.ops`, for any `keras`: what they give, and how that changes with `x`.

What keras_op_values.json says is Keras 3.15.1's, on TensorFlow 2.21.0. Where these are installed,
`python tests/support/keras_op_values.py` writes it anew.
"""

import functools
import importlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_suffix(".json")
_F = np.float32
# What the calls are of. Gradients are those by `x`.
GIVEN: dict[str, Any] = {
    "x": _F([[0.5, -1.5, 2.0], [1.0, 0.25, -0.75]]),
    "y": _F([[2.0, 0.5, -1.0], [3.0, -0.5, 1.5]]),
    "p": _F([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]]),
    "v": _F([0.5, -2.0, 1.5]),
    "m": _F([[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 5.0]]),
    "t": np.arange(12, dtype=_F).reshape(2, 3, 2) / 4 - 1,
    "n": _F([[1.0, np.nan, -np.inf], [np.inf, 2.0, np.nan]]),
    "c": _F([[1.0, np.nan, -4.0], [3.0, 2.0, np.nan]]),
    "i": np.int32([[3, 1, 2], [0, 5, 4]]),
    "j": np.int32([2, 0, 1]),
    "k": np.int64([1, 2, 3]),
    "u": np.uint8([1, 2, 250]),
    "s": np.int8([-1, 2, 100]),
    "b": np.array([[True, False, True], [False, False, True]]),
    "h": np.float16([0.5, -1.5, 2.0]),
    "d": np.float64([0.5, -1.5, 2.0]),
}

_UNARY = """
    angle arccosh arcsinh arctanh bitwise_not cbrt conj copy deg2rad erf erfc erfinv exp2 fabs
    hard_sigmoid hard_silu hard_swish hard_tanh imag isneginf isposinf isreal log10 log2
    log_sigmoid nan_to_num rad2deg real relu6 selu signbit silu sinc soft_shrink softsign
    sparse_plus sparse_sigmoid squareplus swish tanh_shrink trunc
"""
# Whose arguments are not all numbers.
_INSIDE = {"arccosh": "x + 3", "arctanh": "x / 3", "erfinv": "x / 3"}
_LOGS = {"log2": "p", "log10": "p"}
_PAIRS = """
    arctan2 divide_no_nan fmax fmin fmod heaviside hypot logaddexp logaddexp2 nextafter
"""
_OF_INTEGERS = "arctan2 fmax fmin fmod heaviside hypot logaddexp outer dot inner kron append"

CALLS = """
add(u, k)  subtract(s, u)  multiply(h, 2.5)  divide(i, 2)  maximum(s, j)  add(h, v)  add(u, s)
sum(u)  sum(s)  sum(b)  prod(u)  prod(k)  mean(h)  celu(x)  celu(x, 0.5)  elu(x)  elu(x, 0.5)
gelu(x)  gelu(x, False)  glu(t)  glu(t, axis=0)  hard_shrink(x, 0.6)  leaky_relu(x)
leaky_relu(x, 0.5)  soft_shrink(x, 0.3)  squareplus(x, 2)  sparsemax(x)  sparsemax(x, axis=0)
threshold(x, 0.4, 9.0)  nan_to_num(n)  nan_to_num(n, 1.0, 2.0, 3.0)  nan_to_num(i)  angle(n)
isposinf(n)  isneginf(n)  signbit(n)  einsum("ij,kj->ik", x, y)  einsum("ij->j", x)
einsum("i,i", u, s)  einsum("ij,j", i, j)  einsum("...j,j->...", x, v)  einsum("i,i", j, v)
einsum("i,i", s, s)  tensordot(x, y, 2)  tensordot(x, y, [[1], [1]])  tensordot(i, j, 1)  dot(x, v)
dot(x, 2)  dot(x, m)  dot(j, k)  inner(x, y)  inner(x, 2.0)  inner(u, u)  outer(x, v)  outer(u, s)
vdot(x, y)  vdot(j, k)  ldexp(x, i)  vdot(u, u)  kron(x, [[1.0, 2.0]])  kron(j, k)  cross(x, y)
cross(x, v)  cross(j, [1, 2])  cross(x, y, axis=1)  matmul(x, m)  matmul(s, s)  split(x, 3, axis=1)
split(x, [1], axis=1)  array_split(x, 2, axis=1)  array_split(v, 5)  hsplit(x, 3)  hsplit(v, 3)
vsplit(x, 2)  dsplit(t, 2)  unstack(x)  unstack(x, axis=1)  unstack(x, num=3, axis=-1)  tile(x, 2)
tile(x, (2, 1))  tile(v, (2, 1, 2))  repeat(x, 2)  repeat(x, 2, axis=1)  repeat(x, [1, 3], axis=0)
repeat(2.5, 3)  take(x, 2)  take(x, [5, 0])  take(x, [2, 0], axis=1)  take(x, [[-1], [0]], axis=1)
take(v, j)  take_along_axis(x, i % 3, axis=1)  take_along_axis(x, [[-1, 0, 1]], axis=0)
take_along_axis(x, j)  norm(x)  norm(x, 2, axis=1)  norm(x, 1, axis=0, keepdims=True)
norm(x, "fro")  norm(x, "nuc")  norm(x, axis=(0, 1))  norm(x, 2)  norm(x, -2)  norm(x, 1)
norm(x, float("inf"))  norm(i)  norm(v, 0)  norm(v, 3)  norm(v, float("-inf"))  norm(x, -1, axis=1)
norm(v)  norm(j, 1)  norm(x, float("-inf"), axis=(0, 1))  norm(x, 2, axis=(0, 1), keepdims=True)
cumsum(x)  cumsum(x, axis=1)  cumsum(i, axis=0)  cumsum(u)  cumsum(b, axis=1)  cumsum(s)
cumsum(i, dtype="float32")  cumprod(x, axis=1)  cumprod(x)  cumprod(b)  nancumsum(c, axis=1)
nancumprod(c)  nancumsum(i)  tril(x)  tril(x, -1)  tril(b)  triu(x, 1)  triu(i)  tri(2)
tri(2, 3, k=1, dtype="int32")  pad(x, [[0, 1], [2, 0]], constant_values=3.0)
pad(i, ((1, 0), (0, 1)))  pad(x, [[1, 0], [2, 1]], mode="reflect")
pad(x, [[1, 0], [2, 1]], mode="symmetric")  pad(v, 2)  top_k(x, 2)  top_k(x, 1, sorted=False)
top_k(i, 2)  in_top_k([0, 2], p, 1)  in_top_k([0, 2], p, 2)
cond(x[0, 0] > 0, lambda: x * 2, lambda: x)  cond(False, lambda: x * 2, lambda: x * 3)
switch(1, [lambda a: a, lambda a: a * x], y)  switch(5, [lambda a: a, lambda a: a * 2], x)
switch(-1, [lambda a: a * 3, lambda a: a], x)
while_loop(lambda a, z: a < 3, lambda a, z: (a + 1, z * x), (0, y))
while_loop(lambda a: a < 10, lambda a: a + 2, 1)
while_loop(lambda a: a < 9, lambda a: (a + 1,), [0], maximum_iterations=4)
fori_loop(0, 3, lambda a, z: z * x + a, y)  fori_loop(1, 4, lambda a, z: z + a, 5)
scan(lambda z, e: (z + e, z * e), v, x)  scan(lambda z, e: (z + e, z), v, x, reverse=True)
scan(lambda z, e: (z * 2.0, z), x[0], None, length=3)  map(lambda e: sum(e), x)
map(lambda e: e["a"] * e["b"], {"a": x, "b": y})  vectorized_map(lambda e: sum(e * v), x)
vectorized_map(lambda e: e[0] * sum(e[1]), [x, y])  associative_scan(lambda a, z: a + z, x)
associative_scan(lambda a, z: a * z, x, axis=1)
associative_scan(lambda a, z: a * z, x, reverse=True, axis=1)
scatter([[0, 1], [1, 2]], [x[0, 0], x[1, 1]], (2, 3))  scatter([[0], [1], [0]], [1, 2, 3], (3,))
scatter_update(x, [[0, 1], [1, 0]], [7.0, 8.0])  scatter_update(y, [[1]], x[:1])
scatter_update(x, [[0], [0]], y, reduction="add")  scatter_update(v, [[0], [1]], [9.0, -9.0], "max")
scatter_update(v, [[0], [1]], [9.0, -9.0], "min")  scatter_update(x, [[1, 1]], [4.0], "mul")
slice(x, (0, 1), (2, 2))  slice(x, [1, 0], [1, 3])  slice_update(y, (0, 1), [[7.0], [8.0]])
slice_update(y, j[:2] * 0, v[:2] * [[1.0], [2.0]])  get_item(x, 1)  get_item(x, (0, 2))
searchsorted([-2.0, 0.5, 3.0], v)  searchsorted([1.0, 1.5, 1.5, 3.0], v, side="right")
searchsorted([1, 3, 5], j)  sort(x)  sort(x, axis=0)  sort(i, axis=1)  sort(u)  argsort(x)
argsort(x, axis=0)  argsort(x, axis=None)  argsort(i)  flip(x)  flip(x, axis=1)
flip(x, axis=(0, 1))  fliplr(x)  flipud(x)  roll(x, 1)  roll(x, 2, axis=1)  roll(x, (1, 1), (0, 1))
rot90(x)  rot90(x, k=-1)  rot90(t, 1, (1, 2))  moveaxis(t, 0, -1)  moveaxis(t, (0, 1), (-1, 0))
transpose(x)  meshgrid(v, x[0])  meshgrid(j, j, indexing="ij")  linspace(0, 1, 5)  linspace(x, y, 3)
linspace(x, 2.0, 3, endpoint=False)  linspace(0, 4, 5, axis=0)  linspace(0, 1, 5, retstep=True)
linspace(x, y, 4, axis=-1)  linspace(0, 9, 4, dtype="int32")  linspace(j, k, 2)  logspace(0, 2, 3)
logspace(0.0, 3.0, 4, base=2)  logspace(0, 2, 2, False)  geomspace(1, 8, 4)
geomspace(1.0, 8.0, 3, endpoint=False)  eye(2)  eye(2, 3)  eye(3, k=1)  eye(2, 3, -1, "int32")
identity(2)  identity(2, "bool")  diag(v)  diag(v, 1)  diag(m)  diag(m, -1)  diag(x)  diagflat(x)
diagflat(v, -1)  diagonal(x)  diagonal(t, 1, 1, 2)  diagonal(t, -1)  diagonal(t)  trace(m)  trace(t)
trace(i)  trace(m, 1)  trace(b)  trace(x, -1)  isclose(x, x + 1e-6)  isclose(i, i + 1)
isclose(x, y, 1.0, 1.0)  allclose(x, x + 1e-9)  allclose(x, y)  allclose(n, n, equal_nan=True)
count_nonzero(x)  count_nonzero(i, axis=0)  count_nonzero(b, axis=1)  count_nonzero(i, axis=(0, 1))
median(x)  median(x, axis=1)  median(i, axis=0, keepdims=True)  median(x, axis=(0, 1))
median(t, (0, 2))  median([1.0, 2.0, 3.0, 4.0])  quantile(x, 0.3)  quantile(x, [0.1, 0.9], axis=1)
quantile(i, 0.5, axis=0)  quantile(x, 0.3, method="lower")  quantile(x, 0.3, method="higher")
quantile(t, 0.25, axis=(0, 2))  quantile(x, 0.3, method="nearest")
quantile(x, 0.3, axis=1, method="midpoint", keepdims=True)
quantile(x, [0.1, 0.9], axis=0, keepdims=True)  percentile(x, 30)  percentile(x, [10, 90.0], axis=1)
quantile(n, 0.5)  median(c, axis=1)  quantile(h, 0.5)  quantile(d, 0.5)  nanmedian(c)
nanmedian(c, axis=1)  nanquantile(c, 0.3)  nanquantile(c, [0.2, 0.5], axis=1)
nanpercentile(c, 30.0)  nanpercentile(c, 50, axis=1, keepdims=True)  nanmedian(i)  average(x)
average(x, axis=1)  average(x, 1, v)  average(x, weights=y)  average(i)  average(i, 1, j)
bincount(j)  bincount(j, minlength=5)  bincount(j, weights=v)  bincount(i)  bincount(i, minlength=7)
bincount(j, weights=[1, 2, 3])  digitize(x, [0.0, 1.0])  digitize(i, [1, 3])  histogram(v)
histogram(v, bins=4, range=(-1, 1))  histogram(j, bins=3)  unique([3, 1, 3, 2])  unique(v)
unique([3, 1, 3, 2], return_counts=True)
unique([3, 1, 3, 2], return_index=True, return_inverse=True, return_counts=True)
unique([[1, 2], [1, 2], [0, 3]], axis=0)  unique([3, 1, 3], size=4, fill_value=-1)
unique([3, 1, 3], size=1)  unique(i, return_inverse=True)  segment_sum(x, j[1:])
segment_sum(v, j, num_segments=4)  segment_max(x, k[1:] - 1)  segment_min(v, k // 2)
segment_prod(v, j // 2)  segment_max(v, k)  segment_sum(j, k // 2, sorted=True)  multi_hot(i, 6)
multi_hot(j[:2], 3)  multi_hot(i, 6, axis=0)  multi_hot(i - 1, 4, dtype="int32")
binary_crossentropy(p, sigmoid(x))  binary_crossentropy(p, x, from_logits=True)
categorical_crossentropy(p, softmax(x))  categorical_crossentropy(p, x, from_logits=True)
categorical_crossentropy(p, x, True, axis=0)  categorical_crossentropy(p, exp(x))
sparse_categorical_crossentropy([0, 2], softmax(x))
sparse_categorical_crossentropy([0, 2], x, from_logits=True)
sparse_categorical_crossentropy([[0], [2]], x, from_logits=True)  normalize(x)  normalize(x, axis=0)
normalize(x, order=1)  normalize(x, order=3)  normalize(x, epsilon=1.0)  normalize(x, (0, 1))
normalize(h)  moments(x, axes=0)  moments(x, axes=(0, 1))  moments(x, axes=[1], keepdims=True)
moments(h, 0)  batch_normalization(x, v, v * v + 1, 1)
batch_normalization(x, v, y[0] + 3, -1, v, v, 0.1)  batch_normalization(x, p[:, 0], p[:, 1], 0)
layer_normalization(x)  layer_normalization(x, v, v)  layer_normalization(x, axis=0, epsilon=0.1)
layer_normalization(x, y, x, axis=(0, 1))  rms_normalization(x)  rms_normalization(x, v)
rms_normalization(x, axis=0, epsilon=0.5)  rms_normalization(x, y, axis=(0, 1))  cast(x, "int32")
saturate_cast(x * 1000, "int8")  saturate_cast(x, "uint8")  saturate_cast(i, "uint8")
saturate_cast(i * 100 - 200, "int8")  saturate_cast(x, "float16")  saturate_cast(b, "int32")
custom_gradient(lambda a: (a * a, lambda upstream: upstream * 7))(x)  array([1.5])
array([1, 2], "float32")  append(x, y)  append(x, v)  append(x, y, axis=0)  append(j, v)
bartlett(4)  blackman(4)  hamming(4)  hanning(4)  kaiser(4, 3.0)  hanning(1)
broadcast_to(v, (2, 3))  cdist(x, y)  cholesky(m)  cholesky(m, upper=True)  cholesky_inverse(m)
cholesky_inverse(m, upper=True)  corrcoef(x)  correlate(v, [1.0, 2.0])
correlate(v, [1.0, 2.0], mode="same")  correlate(v, [1.0, 2.0], mode="full")  correlate(j, k)
det(m)  det(matmul(x, transpose(y)))  logdet(m)  slogdet(m)  inv(m)  solve(m, v)
solve(m, transpose(x))  solve_triangular(m, transpose(x))  solve_triangular(m, v, lower=True)
lstsq(m, v)  lstsq(transpose(x), v)  eigh(m)[0]  svd(m)[1]  svd(x, compute_uv=False)
svd(x, full_matrices=False)[1]  abs(qr(m)[1])  abs(qr(transpose(y), mode="complete")[0])  pinv(x)
matrix_rank(m)  matrix_rank(x, 0.5)  diff(x)  diff(x, axis=0)  diff(x, 2)  diff(i)  diff(b)
dstack([x, y])  hstack([x, y])  hstack([v, j])  vstack([x, y])  dtype(x)  dtype(i)  empty((2,))
empty_like(i)  full_like(i, 2)  full_like(x, 3, "int32")  extract_sequences(v, 2, 1)
extract_sequences(t, 2, 1)  isin(i, [1, 2])  isin(x, [0.5, 1.0], invert=True)  isin(i, j)
jvp(lambda a: a * a, (x,), (y,))  jvp(lambda a, z: (a * z, sum(a)), (x, y), (y, x))  nanargmax(c)
nanargmax(c, axis=1)  nanargmin(c, axis=0)  nanargmin(c, axis=1, keepdims=True)  nanargmax(i)
nanmax(c)  nanmax(c, axis=1, keepdims=True)  nanmin(c, axis=1)  nanmin(i)  nanmean(c)
nanmean(c, axis=0)  nanmean(i)  nanprod(c, axis=1)  nansum(c)  nansum(c, axis=1, keepdims=True)
nansum(b)  nanstd(c, axis=1)  nanvar(c)  nanvar(c, axis=1, keepdims=True)  nonzero(b)  nonzero(i)
nanstd(n, axis=1)  nanvar(n)
space_to_depth(reshape(arange(64), (2, 4, 2, 4)), 2)
space_to_depth(reshape(arange(64), (2, 2, 4, 4)), 2, "channels_first")
depth_to_space(reshape(arange(64), (2, 2, 2, 8)), 2)
depth_to_space(reshape(arange(64), (2, 8, 2, 2)), 2, data_format="channels_first")
psnr(x, y, 2.0)  ptp(x)  ptp(x, axis=1, keepdims=True)  ptp(i, axis=0)
rearrange(t, "a b c -> c (a b)")  rearrange(x, "(a d) c -> a d c", a=2)  rearrange(x, "a b -> b a")
rearrange(t, "a b c -> (a b) c")  select([x > 0.4, x > -1.0], [x, y], 5.0)  select([b], [i], 0)
select([b, b], [x, y])  trapezoid(x)  trapezoid(x, dx=0.5, axis=0)  trapezoid(x, y)  trapezoid(i)
unravel_index([1, 5], (2, 3))  vander(v)  vander(v, 2)  vander(j, 4, increasing=True)  trunc(i)
cbrt(j)  exp2(k)  log10(h)  deg2rad(i)  sinc(i)  erf(h)  exp2(h)  gelu(h)  elu(h)  log2(d)
hypot(d, v)  arctan2(j, j)  fabs(s)  fabs(b)  trunc(b)  logaddexp(k, h)  nextafter(v, j)
"""


def calls() -> list[str]:
    """Return the text of each call."""
    unary = [
        f"{name}({_INSIDE.get(name, _LOGS.get(name, 'x'))})"
        for name in _UNARY.split()
        if name != "bitwise_not"
    ]
    pairs = [f"{name}(x, y)" for name in _PAIRS.split()]
    pairs += [f"{name}({given})" for name in _OF_INTEGERS.split() for given in ("j, k", "s, 2.5")]
    listed = [call for line in CALLS.strip().splitlines() for call in line.strip().split("  ")]
    return list(dict.fromkeys([*unary, *pairs, *listed]))


def called(text: str, ops: Any, given: dict[str, Any]) -> Any:
    """Return what a call gives.

    Args:
        text: The call.
        ops: Keras' operations.
        given: What it is of, by name.
    """
    return eval(text, {**_names(ops), **given})


@functools.cache
def _names(ops: Any) -> dict[str, Any]:
    names = {name: getattr(ops, name) for name in dir(ops) if not name.startswith("_")}
    return {"__builtins__": {"float": float}, **names}


def flattened(result: Any) -> list[Any]:
    """Return what is in lists and tuples, from the first to the last."""
    if isinstance(result, list | tuple):
        return [each for item in result for each in flattened(item)]
    return [result]


def main() -> None:
    """Write what Keras gives."""
    tf: Any = importlib.import_module("tensorflow")
    keras: Any = importlib.import_module("keras")
    found = {}
    for text in calls():
        given = {name: tf.constant(each) for name, each in GIVEN.items()}
        try:
            with tf.GradientTape() as tape:
                tape.watch(given["x"])
                results = flattened(called(text, keras.ops, given))
                floats = [r for r in results if tf.is_tensor(r) and r.dtype.is_floating]
                total = (
                    tf.add_n([tf.reduce_sum(weighed(tf, r)) for r in floats]) if floats else None
                )
            slope = None if not floats else tape.gradient(total, given["x"])
        except LookupError:
            slope, floats = None, []
        except Exception as error:
            print(f"{text}: {type(error).__name__}: {str(error)[:150]}")
            continue
        found[text] = {
            "results": [described(each) for each in results],
            # None where Keras has no gradient; TensorFlow lacks some that JAX has.
            "slope": None if slope is None else rounded(np.asarray(slope)),
            **kept(keras, text),
        }
    lines = (f"{json.dumps(text)}: {json.dumps(each)}" for text, each in found.items())
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def kept(keras: Any, text: str) -> dict[str, Any]:
    """Return what a file says of a call, where it is one operation on placeholders alone.

    Args:
        keras: Keras, or what has its names.
        text: The call.
    """
    words = set(re.findall(r'(?<![\w"])([a-z])(?![\w"(])', text))
    used = sorted(words & {"x", "y", "p"})
    if "lambda" in text or not used or words & GIVEN.keys() != {*used}:
        return {}
    inputs = {name: keras.Input(batch_shape=(2, 3), name=name) for name in used}
    try:
        drawn = flattened(called(text, keras.ops, inputs))
        said = json.loads(keras.Model(list(inputs.values()), drawn).to_json())["config"]["layers"]
    except Exception:  # Keras' placeholders are not for all that its tensors are for.
        return {}
    operations = [each for each in said if each["class_name"] != "InputLayer"]
    if len(operations) != 1:
        return {}
    (one,) = operations
    # (What is deprecated, and False, is left out.)
    said_of = one["config"].items()
    settings = {name: each for name, each in said_of if name not in ("name", "rms_scaling")}
    call = one["inbound_nodes"][0]
    given = [len(call["args"]), sorted(name for name, each in call["kwargs"].items() if each)]
    return {"kept": [one["module"], one["class_name"], settings, given]}


def weighed(library: Any, result: Any) -> Any:
    """Return the elements of a result, each times a number of its own, as float32."""
    weights = np.cos(np.arange(np.prod(result.shape, dtype=int)), dtype=_F)
    return library.cast(result, "float32") * weights.reshape(tuple(result.shape))


def described(result: Any) -> Any:
    """Return a result as JSON has it: dtype and numbers, or what else it is."""
    if not hasattr(result, "dtype"):
        return result
    return [np.asarray(result).dtype.name, rounded(np.asarray(result))]


def rounded(array: Any) -> Any:
    """Return numbers as lists, of as many digits as float32 has."""
    return json.loads(json.dumps(np.asarray(array, np.float64).tolist()), parse_float=_digits)


def _digits(text: str) -> float:
    return float(f"{float(text):.8g}")


if __name__ == "__main__":
    main()
