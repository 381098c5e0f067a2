"""Ops at hard values: the calls, for any module with TensorFlow's names, and what it gives there.

The numbers in hard_values.json are TensorFlow 2.21's. Where it is installed,
`python tests/support/hard_values.py` writes them anew.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
FILE = Path(__file__).with_suffix(".json")

INF, NAN = float("inf"), float("nan")
LARGE, TINY = 3e38, 2e-38  # Of float32's numbers. (TensorFlow takes smaller ones for 0.)
ONE = (0.0, -0.0, 0.5, 1.0, -1.0, 100.0, -100.0, INF, -INF, NAN, LARGE, -LARGE, TINY, -TINY)
PAIRED = (0.0, -0.0, 1.0, -2.0, 3.0, 0.5, INF, -INF, NAN, LARGE)
FIRST, SECOND = zip(*((x, y) for x in PAIRED for y in PAIRED), strict=True)
EACH = [[i] for i in range(len(FIRST))]
ROWS = (
    (0.0, 0.0, 0.0),
    (1.0, 1.0, -2.0),
    (-0.0, 0.0, -1.0),
    (0.0, 2.0, 3.0),
    (0.0, 0.0, 5.0),
    (100.0, -100.0, 0.0),
    (1000.0, 0.0, 1000.0),
    (-INF, 0.0, 1.0),
    (-INF, -INF, -INF),
    (INF, 0.0, 1.0),
    (INF, INF, -1.0),
    (INF, -INF, 0.0),
    (NAN, 0.0, 1.0),
    (0.0, NAN, INF),
    (LARGE, LARGE, LARGE),
    (LARGE, 0.0, 1.0),
    (TINY, TINY, TINY),
    (3.0, -0.5, 2.0),
)


MATRICES = (
    ((2.0, 1.0), (1.0, 3.0)),
    ((1.0, 0.0), (0.0, 1.0)),
    ((0.5, -1.0), (-1.0, 4.0)),
)


# The elements of a small image, and of filters or weights beside it.
IMAGE = (0.0, -0.0, 1.0, 1.0, INF, -1.0, 2.0, -INF, 3.0, NAN, -2.0, 0.5, 4.0, -3.0, 1.5, LARGE)
FILTERS = (1.0, -1.0, 0.5, 2.0)
# In max_pool3d TensorFlow's CPU misses an infinite element, and gives each of equals the gradient.
VOLUME = tuple(value if abs(value) < LARGE else 5.0 + i for i, value in enumerate(IMAGE))

PARTS = {
    "zeros": ((0.0, -0.0), (0.0,)),
    "numbers": ((3.0, 0.0), (4.0,)),
    "infinity": ((3.0, 0.0), (INF,)),
    "NaN": ((3.0, 0.0), (NAN,)),
    "overflow": ((3.0, LARGE), (4.0,)),
    "underflow": ((TINY, 0.0), (TINY,)),
}


class Case(NamedTuple):
    """A function of a module that has TensorFlow's names, and of the inputs."""

    function: Callable[..., Any]
    inputs: tuple[Any, ...]


def _each(inputs: tuple[Any, ...], functions: dict[str, Callable[..., Any]]) -> dict[str, Case]:
    return {name: Case(function, inputs) for name, function in functions.items()}


CASES: dict[str, Case] = {
    **_each(
        (ONE,),
        {
            "abs": lambda tf, x: tf.abs(x),
            "crelu": lambda tf, x: tf.nn.crelu(x),
            "elu": lambda tf, x: tf.nn.elu(x),
            "erf": lambda tf, x: tf.math.erf(x),
            "erfc": lambda tf, x: tf.math.erfc(x),
            "erfinv": lambda tf, x: tf.math.erfinv(x) + 0.0,  # Without signs of zeros.
            "exp": lambda tf, x: tf.exp(x),
            "expm1": lambda tf, x: tf.math.expm1(x),
            "gelu": lambda tf, x: tf.nn.gelu(x),
            "gelu, approximate": lambda tf, x: tf.nn.gelu(x, approximate=True),
            "l2_loss": lambda tf, x: tf.nn.l2_loss(x),
            "leaky_relu": lambda tf, x: tf.nn.leaky_relu(x),
            "log": lambda tf, x: tf.math.log(x),
            "log1p": lambda tf, x: tf.math.log1p(x),
            "log_sigmoid": lambda tf, x: tf.math.log_sigmoid(x),
            "negative": lambda tf, x: tf.negative(x),
            "one over x": lambda tf, x: 1.0 / x,
            "reciprocal": lambda tf, x: tf.math.reciprocal(x),
            "reciprocal_no_nan": lambda tf, x: tf.math.reciprocal_no_nan(x),
            "relu": lambda tf, x: tf.nn.relu(x),
            "relu6": lambda tf, x: tf.nn.relu6(x),
            "ndtri of a square": lambda tf, x: tf.math.ndtri(x * x),
            "rsqrt": lambda tf, x: tf.math.rsqrt(x),
            "selu": lambda tf, x: tf.nn.selu(x),
            "sigmoid": lambda tf, x: tf.sigmoid(x),
            "sign": lambda tf, x: tf.sign(x),
            "silu": lambda tf, x: tf.nn.silu(x),
            "softplus": lambda tf, x: tf.math.softplus(x),
            "softsign": lambda tf, x: tf.nn.softsign(x),
            "sqrt": lambda tf, x: tf.sqrt(x),
            "sqrt of maximum": lambda tf, x: tf.sqrt(tf.maximum(x, 0.0)),
            "log of minimum": lambda tf, x: tf.math.log(tf.minimum(0.0, x)),
            "sqrt of clip_by_value": lambda tf, x: tf.sqrt(tf.clip_by_value(x, 0.0, 1.0)),
            "sqrt of relu": lambda tf, x: tf.sqrt(tf.nn.relu(x)),
            "square": lambda tf, x: tf.square(x),
            "acos": lambda tf, x: tf.acos(x),
            "acosh": lambda tf, x: tf.acosh(x),
            "asin": lambda tf, x: tf.asin(x),
            "asinh": lambda tf, x: tf.asinh(x),
            "atan": lambda tf, x: tf.atan(x),
            "atanh": lambda tf, x: tf.atanh(x),
            "cos": lambda tf, x: tf.cos(x),
            "cosh": lambda tf, x: tf.cosh(x),
            "lgamma": lambda tf, x: tf.math.lgamma(x),
            "digamma": lambda tf, x: tf.math.digamma(x),
            "floor": lambda tf, x: tf.floor(x),
            "round": lambda tf, x: tf.round(x),
            "sin": lambda tf, x: tf.sin(x),
            "sinh": lambda tf, x: tf.sinh(x),
            "tan": lambda tf, x: tf.tan(x),
            "ceil": lambda tf, x: tf.math.ceil(x),
            "rint": lambda tf, x: tf.math.rint(x),
            "is_nan": lambda tf, x: tf.cast(tf.math.is_nan(x), x.dtype),
            "is_inf": lambda tf, x: tf.cast(tf.math.is_inf(x), x.dtype),
            "is_finite": lambda tf, x: tf.cast(tf.math.is_finite(x), x.dtype),
            "scalar_mul": lambda tf, x: tf.scalar_mul(-2.0, x),
            "tanh": lambda tf, x: tf.tanh(x),
            "clip_by_value": lambda tf, x: tf.clip_by_value(x, -1.0, 1.0),
            "clip_by_value at infinity": lambda tf, x: tf.clip_by_value(x, -INF, INF),
            "clip_by_value at zero": lambda tf, x: tf.clip_by_value(x, 0.0, 0.0),
            "cast": lambda tf, x: tf.cast(x, tf.float64),
            "shapes": lambda tf, x: tf.squeeze(
                tf.transpose(tf.expand_dims(tf.reshape(tf.identity(x), (7, 2)), 1))[:, :, 1:5], 1
            ),
            "broadcast_to": lambda tf, x: tf.broadcast_to(x, (2, len(ONE))),
            "lists": lambda tf, x: tf.concat([tf.convert_to_tensor([x[0], x[9]]), x], 0),
            "gather": lambda tf, x: tf.gather(tf.reshape(x, (14,)), [[13, 9], [9, 7]]),
            "gather_nd": lambda tf, x: tf.gather_nd(
                tf.reshape(x, (7, 2)), [[4, 1], [4, 1], [6, 0], [1, 1]]
            ),
            **{
                f"unsorted_segment_{kind}": lambda tf, x, kind=kind: getattr(
                    tf.math, f"unsorted_segment_{kind}"
                )(x, [0, 0, 1, 2, 2, -1, 3, 3, 4, 5, 6, 6, 7, 5], 9)
                for kind in ("sum", "mean", "sqrt_n", "prod", "max", "min")
            },
            **{
                f"segment_{kind}": lambda tf, x, kind=kind: getattr(tf.math, f"segment_{kind}")(
                    x, [0, 0, 1, 1, 2, 3, 3, 4, 6, 6, 6, 8, 8, 8]
                )
                for kind in ("sum", "mean", "prod", "max", "min")
            },
            "sigmoid_cross_entropy of ones": lambda tf, x: tf.nn.sigmoid_cross_entropy_with_logits(
                tf.ones_like(x), x
            ),
        },
    ),
    **_each(
        (FIRST, SECOND),
        {
            "add": lambda tf, x, y: tf.add(x, y),
            "accumulate_n": lambda tf, x, y: tf.math.accumulate_n([x, y]),
            "add_n": lambda tf, x, y: tf.add_n([x, y]),
            "atan2": lambda tf, x, y: tf.atan2(x, y),
            "nextafter": lambda tf, x, y: tf.math.nextafter(x, y),
            "floordiv": lambda tf, x, y: x // y,
            "floormod": lambda tf, x, y: x % y,
            "squared_difference of pairs": lambda tf, x, y: tf.math.squared_difference(x, y),
            "divide": lambda tf, x, y: tf.divide(x, y),
            "divide_no_nan": lambda tf, x, y: tf.math.divide_no_nan(x, y),
            "multiply_no_nan": lambda tf, x, y: tf.math.multiply_no_nan(x, y),
            "xdivy": lambda tf, x, y: tf.math.xdivy(x, y),
            "xlogy": lambda tf, x, y: tf.math.xlogy(x, y),
            "xlog1py": lambda tf, x, y: tf.math.xlog1py(x, y),
            "maximum": lambda tf, x, y: tf.maximum(x, y),
            "minimum": lambda tf, x, y: tf.minimum(x, y),
            "multiply": lambda tf, x, y: tf.multiply(x, y),
            "pow": lambda tf, x, y: tf.pow(x, y),
            "subtract": lambda tf, x, y: tf.subtract(x, y),
            "where": lambda tf, x, y: tf.where(x > y, x, y),
            "scatter_nd": lambda tf, x, y: tf.scatter_nd(EACH, y, x.shape),
            **{
                f"tensor_scatter_nd_{kind}": lambda tf, x, y, kind=kind: getattr(
                    tf, f"tensor_scatter_nd_{kind}"
                )(x, EACH, y)
                for kind in ("add", "sub", "max", "min", "update")
            },
            "sigmoid_cross_entropy": lambda tf, x, y: tf.nn.sigmoid_cross_entropy_with_logits(
                labels=y, logits=x
            ),
        },
    ),
    **_each(
        (ROWS,),
        {
            "reduce_sum": lambda tf, x: tf.reduce_sum(x, axis=1),
            "reduce_mean": lambda tf, x: tf.reduce_mean(x, axis=1),
            "reduce_max": lambda tf, x: tf.reduce_max(x, axis=1),
            "reduce_min": lambda tf, x: tf.reduce_min(x, axis=1),
            "reduce_prod": lambda tf, x: tf.reduce_prod(x, axis=1),
            "reduce_logsumexp": lambda tf, x: tf.reduce_logsumexp(x, axis=1),
            # Without NaN, which TensorFlow leaves where its way of sorting does.
            "sort": lambda tf, x: tf.sort(x[:12], axis=1),
            "top_k": lambda tf, x: tf.math.top_k(x[:12], 2).values,
            "check_numerics": lambda tf, x: tf.debugging.check_numerics(x[:7], "Not finite"),
            "cumsum": lambda tf, x: tf.cumsum(x, axis=1),
            "cumprod": lambda tf, x: tf.math.cumprod(x, axis=1, reverse=True),
            # Without NaN, and without two infinities, which TensorFlow's passes over.
            "cumulative_logsumexp": lambda tf, x: tf.math.cumulative_logsumexp(x[:10], axis=1),
            "matmul": lambda tf, x: tf.matmul(x, tf.constant([[0.0], [1.0], [-2.0]])),
            "matmul of batches": lambda tf, x: tf.matmul(
                tf.reshape(x, (2, len(ROWS) // 2, 3)), tf.constant([[[0.0], [1.0], [-2.0]]] * 2)
            ),
            "bias_add": lambda tf, x: tf.nn.bias_add(x, x[9]),
            "softmax": lambda tf, x: tf.nn.softmax(x),
            "log_softmax": lambda tf, x: tf.nn.log_softmax(x),
            "l2_normalize": lambda tf, x: tf.math.l2_normalize(x, axis=1),
            "norm": lambda tf, x: tf.norm(x, axis=1),
            "norm of order 1": lambda tf, x: tf.norm(x, 1, axis=1),
            "norm of order 3": lambda tf, x: tf.norm(x, 3, axis=1),
            "norm of order inf": lambda tf, x: tf.norm(x, INF, axis=1),
            "norms of matrices": lambda tf, x: tf.norm(tf.reshape(x, (6, 3, 3)), INF, [1, 2]),
            "normalize": lambda tf, x: tf.linalg.normalize(x, axis=1)[0],
            "reduce_euclidean_norm": lambda tf, x: tf.math.reduce_euclidean_norm(x, axis=1),
            "weighted_moments": lambda tf, x: tf.concat(
                tf.nn.weighted_moments(x, [1], [0.0, 0.0, 2.0]), 0
            ),
            "polyval": lambda tf, x: tf.math.polyval([2.0, 0.0, -1.0], x),
            "reduce_variance": lambda tf, x: tf.math.reduce_variance(x, axis=1),
            "reduce_std": lambda tf, x: tf.math.reduce_std(x, axis=1),
            "moments": lambda tf, x: tf.concat(tf.nn.moments(x, [1]), 0),
            "count_nonzero": lambda tf, x: tf.math.count_nonzero(x, 1, dtype=x.dtype),
            "squared_difference": lambda tf, x: tf.math.squared_difference(x, x[0]),
            "sqrt of a sum of squares": lambda tf, x: tf.sqrt(tf.reduce_sum(tf.square(x), axis=1)),
            "clip_by_norm": lambda tf, x: tf.clip_by_norm(x, 1.0, axes=1),
            "softmax_cross_entropy": lambda tf, x: tf.nn.softmax_cross_entropy_with_logits(
                tf.constant([[0.0, 0.25, 0.75]] * len(ROWS)), x
            ),
            "softmax_cross_entropy of no class": lambda tf, x: (
                tf.nn.softmax_cross_entropy_with_logits(tf.zeros_like(x), x)
            ),
            "softmax_cross_entropy of several": lambda tf, x: (
                tf.nn.softmax_cross_entropy_with_logits(tf.ones_like(x), x)
            ),
            "sparse_softmax_cross_entropy": lambda tf, x: (
                tf.nn.sparse_softmax_cross_entropy_with_logits([2] * len(ROWS), x)
            ),
        },
    ),
}


CASES |= _each(
    (MATRICES,),
    {
        "cholesky": lambda tf, x: tf.linalg.cholesky(x),
        "det": lambda tf, x: tf.linalg.det(x),
        "eigvalsh": lambda tf, x: tf.linalg.eigvalsh(x),
        "inv": lambda tf, x: tf.linalg.inv(x),
        "qr": lambda tf, x: tf.concat(tf.linalg.qr(x), -1) + 0.0,  # Without signs of zeros.
        "slogdet": lambda tf, x: tf.stack(tf.linalg.slogdet(x)),
        "solve": lambda tf, x: tf.linalg.solve(x, tf.ones_like(x)),
        "svd": lambda tf, x: tf.linalg.svd(x, compute_uv=False),
        "triangular_solve": lambda tf, x: tf.linalg.triangular_solve(x, tf.ones_like(x)),
    },
)


def _image(tf: Any, x: Any, rank: int) -> Any:
    """Return sixteen elements as one image."""
    return tf.reshape(x, (1, 4, 4, 1) if rank == 2 else (1, 4, 2, 2, 1))


def _pooled_slope(tf: Any, x: Any, rank: int) -> Any:
    """Return the gradient of the largest elements, each times itself: of pooled gradients too."""
    pool = tf.nn.max_pool2d if rank == 2 else tf.nn.max_pool3d
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = pool(_image(tf, x, rank), 2, 2, "SAME")
        total = tf.reduce_sum(y * y)
    return tape.gradient(total, x)


CASES |= _each(
    (IMAGE,),
    {
        "avg_pool": lambda tf, x: tf.nn.avg_pool2d(_image(tf, x, 2), 2, 2, "SAME"),
        "avg_pool, padded": lambda tf, x: tf.nn.avg_pool2d(_image(tf, x, 2), 3, 2, "SAME"),
        "max_pool": lambda tf, x: tf.nn.max_pool2d(_image(tf, x, 2), 2, 2, "VALID"),
        "max_pool, padded": lambda tf, x: tf.nn.max_pool2d(_image(tf, x, 2), 3, 2, "SAME"),
        "slope of max_pool": lambda tf, x: _pooled_slope(tf, x, 2),
    },
)
CASES |= _each(
    (VOLUME,),
    {
        "avg_pool of volumes": lambda tf, x: tf.nn.avg_pool3d(_image(tf, x, 3), 2, 2, "SAME"),
        "max_pool of volumes": lambda tf, x: tf.nn.max_pool3d(_image(tf, x, 3), 2, 2, "SAME"),
        "slope of max_pool of volumes": lambda tf, x: _pooled_slope(tf, x, 3),
    },
)
CASES |= _each(
    (IMAGE, FILTERS),
    {
        "conv2d": lambda tf, x, w: tf.nn.conv2d(
            _image(tf, x, 2), tf.reshape(w, (2, 2, 1, 1)), 1, "VALID"
        ),
        "conv3d": lambda tf, x, w: tf.nn.conv3d(
            _image(tf, x, 3), tf.reshape(w, (1, 2, 2, 1, 1)), [1] * 5, "VALID"
        ),
        "depthwise_conv2d": lambda tf, x, w: tf.nn.depthwise_conv2d(
            _image(tf, x, 2), tf.reshape(w, (2, 2, 1, 1)), [1] * 4, "VALID"
        ),
    },
)
for _name, _parts in PARTS.items():
    CASES[f"clip_by_global_norm of {_name}"] = Case(
        lambda tf, x, y: tf.concat(tf.clip_by_global_norm([x, y], 1.0)[0], 0), _parts
    )
    CASES[f"global_norm of {_name}"] = Case(lambda tf, x, y: tf.linalg.global_norm([x, y]), _parts)


def inputs_of(tf: Any, case: Case) -> list[Any]:
    """Return the inputs of a case as tensors."""
    return [tf.constant(np.array(each, np.float32)) for each in case.inputs]


def differentiated(tf: Any, case: Case, inputs: list[Any], upstream: Any) -> list[Any]:
    """Return the result of a case, and its gradients by the inputs where `upstream` flows in."""
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        result = case.function(tf, *inputs)
    flow = tf.zeros_like(result) + tf.cast(upstream, result.dtype)
    return [result, *tape.gradient(result, inputs, flow, unconnected_gradients="zero")]


def table() -> dict[str, dict[str, list[list[float]]]]:
    """Return what TensorFlow gave, by case and upstream gradient: the result and the gradients."""
    read: dict[str, dict[str, list[list[float]]]] = json.loads(FILE.read_text())
    return read


def _line(tf: Any, case: Case, upstream: float) -> str:
    results = differentiated(tf, case, inputs_of(tf, case), tf.constant(upstream))
    return json.dumps(
        [[float(f"{value:.7g}") for value in each.numpy().reshape(-1)] for each in results]
    )


if __name__ == "__main__":
    import tensorflow

    FILE.write_text(
        "{\n"
        + ",\n".join(
            f'{json.dumps(name)}: {{\n  "0": {_line(tensorflow, case, 0.0)},\n'
            f'  "1": {_line(tensorflow, case, 1.0)}\n}}'
            for name, case in CASES.items()
        )
        + "\n}\n"
    )
