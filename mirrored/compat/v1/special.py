"""Functions whose arguments were others in TensorFlow 1 than they are today."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from mirrored import ops
from mirrored._types import DTypeLike, PartialShapeLike, ShapeLike, TensorLike
from mirrored.compat.v1.boolean_masks import places_where
from mirrored.compat.v1.drawn_calls import drawn, drawn_with_constants
from mirrored.compat.v1.graph import drawing_into, get_default_graph, graph_of
from mirrored.compat.v1.graph_elements import Tensor
from mirrored.compat.v1.operands import Call
from mirrored.compat.v1.partial_shapes import sizes_of
from mirrored.compat.v1.sources import converted
from mirrored.graph import placeholders
from mirrored.ops.random_draws import random_poisson as _poisson
from mirrored.ops.spec import as_dtype


def to_float(x: TensorLike, name: str = "ToFloat") -> Any:
    """Return a tensor as float32."""
    return drawn(ops.cast, (x, "float32"), "Cast", name)


def to_double(x: TensorLike, name: str = "ToDouble") -> Any:
    """Return a tensor as float64."""
    return drawn(ops.cast, (x, "float64"), "Cast", name)


def to_int32(x: TensorLike, name: str = "ToInt32") -> Any:
    """Return a tensor as int32."""
    return drawn(ops.cast, (x, "int32"), "Cast", name)


def to_int64(x: TensorLike, name: str = "ToInt64") -> Any:
    """Return a tensor as int64."""
    return drawn(ops.cast, (x, "int64"), "Cast", name)


def div(x: TensorLike, y: TensorLike, name: str = "div") -> Any:
    """Return the quotient; quotients of integers are rounded down, as in Python 2."""

    def quotient(x: Any, y: Any) -> Any:
        x = ops.convert_to_tensor(x)
        return x / y if x.dtype.kind == "f" else x // y

    return drawn_with_constants(quotient, Call((x, y), {}, ()), "RealDiv", name)


def where(
    condition: TensorLike,
    x: TensorLike | None = None,
    y: TensorLike | None = None,
    name: str = "Select",
) -> Any:
    """Return elements of `x` where a condition is true, and of `y` elsewhere.

    Args:
        condition: Booleans of the shape of `x`, or one for each of its rows.
        x: A tensor; None, as `y`: where the condition is true, in a run that is not recorded.
        y: A tensor of its shape.
        name: Its name.

    Raises:
        ValueError: One of `x` and `y` is missing, or a shape does not fit.
    """
    if x is None and y is None:
        return places_where(condition, "Where" if name == "Select" else name)
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")

    def select(condition: Any, x: Any, y: Any) -> Any:
        condition, x = ops.convert_to_tensor(condition), ops.convert_to_tensor(x)
        if len(condition.shape) == 1 and len(x.shape) > 1:
            condition = ops.reshape(condition, (-1, *[1] * (len(x.shape) - 1)))
        return ops.where(condition, x, y)

    return drawn(select, (condition, x, y), "Select", name)


def embedding_lookup(
    params: Any,
    ids: TensorLike,
    partition_strategy: str = "mod",
    name: str | None = None,
    validate_indices: bool = True,
    max_norm: float | None = None,
) -> Any:
    """Return rows of a tensor.

    Args:
        params: The tensor.
        ids: Which rows.
        partition_strategy: Accepted for compatibility: there is one tensor.
        name: Its name.
        validate_indices: Accepted for compatibility.
        max_norm: What rows are clipped to; None: they are not.

    Raises:
        ValueError: There are several tensors, or the strategy is none.
    """
    if partition_strategy not in ("mod", "div"):
        raise ValueError(
            f"Unrecognized partition strategy: {partition_strategy}. Must be one of either `mod` "
            "or `div`."
        )
    if isinstance(params, list | tuple) and placeholders(params):
        if len(params) != 1:
            raise ValueError(
                f"`params` must be one tensor. Received: {len(params)} parts. Join them, for "
                "example with `tf.concat`."
            )
        (params,) = params
    arguments = (params, ids, max_norm)
    return drawn(ops.embedding_lookup, arguments, "EmbeddingLookup", name or "embedding_lookup")


def clip_by_global_norm(
    t_list: Sequence[TensorLike | None],
    clip_norm: TensorLike,
    use_norm: TensorLike | None = None,
    name: str | None = None,
) -> tuple[list[Any], Any]:
    """Return tensors scaled so that their global norm is at most `clip_norm`, and that norm.

    Args:
        t_list: The tensors; None stays None.
        clip_norm: The norm.
        use_norm: Their norm, where it is known.
        name: Its name.
    """
    there = [tensor for tensor in t_list if tensor is not None]
    arguments = (there, clip_norm, use_norm)
    kind = "ClipByGlobalNorm"
    name = name or "clip_by_global_norm"
    clipped, norm = drawn(ops.clip_by_global_norm, arguments, kind, name)
    rest = iter(clipped)
    return [None if tensor is None else next(rest) for tensor in t_list], norm


def ensure_shape(x: TensorLike, shape: PartialShapeLike | None, name: str | None = None) -> Tensor:
    """Return a tensor, and raise in a run if its shape differs.

    Args:
        x: The tensor.
        shape: The shape, with None for any size.
        name: Its name.

    Raises:
        ValueError: It is known that it has another.
    """
    tensor = converted(x)
    sizes = tensor.shape.merge_with(shape).sizes
    return tensor.graph.draw(
        ops.ensure_shape,
        (tensor, sizes_of(shape)),
        kind="EnsureShape",
        name=name or "EnsureShape",
        results=Tensor(sizes, tensor._dtype, ""),
    ).outputs[0]


def in_top_k(predictions: TensorLike, targets: TensorLike, k: int, name: str = "in_top_k") -> Any:
    """Return whether each row's target is among the `k` largest of its predictions."""
    return drawn(ops.in_top_k, (targets, predictions, k), "InTopKV2", f"{name}/InTopKV2")


def dropout(
    x: TensorLike,
    keep_prob: TensorLike | None = None,
    noise_shape: PartialShapeLike | None = None,
    seed: int | None = None,
    name: str = "dropout",
    rate: TensorLike | None = None,
) -> Any:
    """Return a tensor with some elements set to zero, and the others scaled up.

    Args:
        x: The tensor.
        keep_prob: How likely an element stays: 1 - `rate`.
        noise_shape: The shape in which it is drawn what stays.
        seed: A stream of draws of its own.
        name: Its name.
        rate: How likely an element is dropped.

    Raises:
        ValueError: Neither or both of `rate` and `keep_prob` are given.
    """
    if rate is not None and keep_prob is not None:
        raise ValueError("Cannot specify both 'keep_prob' and 'rate'.")
    if rate is None and keep_prob is None:
        raise ValueError("`rate` must be provided. Received: rate=None")

    def drop(x: Any, part: Any, kept: bool) -> Any:
        return ops.dropout(x, 1.0 - part if kept else part, noise_shape, seed)

    arguments = (x, keep_prob, True) if rate is None else (x, rate, False)
    return drawn(drop, arguments, "Dropout", name)


def _named_only(sentinel: Any, function: str) -> None:
    if sentinel is not None:
        raise ValueError(
            f"Only call `{function}` with named arguments (labels=..., logits=..., ...)"
        )


def softmax_cross_entropy_with_logits(
    _sentinel: None = None,
    labels: TensorLike | None = None,
    logits: TensorLike | None = None,
    dim: int = -1,
    name: str = "softmax_cross_entropy_with_logits_sg",
    axis: int | None = None,
) -> Any:
    """Return the cross entropy of each row. No gradient flows to the labels."""
    _named_only(_sentinel, "softmax_cross_entropy_with_logits")

    def entropy(labels: Any, logits: Any) -> Any:
        fixed = ops.stop_gradient(labels)
        return ops.softmax_cross_entropy_with_logits(fixed, logits, dim if axis is None else axis)

    return drawn(entropy, (labels, logits), "SoftmaxCrossEntropyWithLogits", name)


def sparse_softmax_cross_entropy_with_logits(
    _sentinel: None = None,
    labels: TensorLike | None = None,
    logits: TensorLike | None = None,
    name: str = "SparseSoftmaxCrossEntropyWithLogits",
) -> Any:
    """Return the cross entropy of each row, for integer labels."""
    _named_only(_sentinel, "sparse_softmax_cross_entropy_with_logits")
    function = ops.sparse_softmax_cross_entropy_with_logits
    kind = "SparseSoftmaxCrossEntropyWithLogits"
    return drawn(function, (labels, logits), kind, f"{name}/{kind}")


def sigmoid_cross_entropy_with_logits(
    _sentinel: None = None,
    labels: TensorLike | None = None,
    logits: TensorLike | None = None,
    name: str = "logistic_loss",
) -> Any:
    """Return the cross entropy of each element."""
    _named_only(_sentinel, "sigmoid_cross_entropy_with_logits")
    function = ops.sigmoid_cross_entropy_with_logits
    return drawn(function, (labels, logits), "SigmoidCrossEntropyWithLogits", name)


def random_poisson(
    lam: TensorLike,
    shape: ShapeLike,
    dtype: DTypeLike = "float32",
    seed: int | None = None,
    name: str = "random_poisson",
) -> Any:
    """Return Poisson numbers: a tensor of the shape per rate."""
    arguments = (shape, lam, dtype, seed)
    return drawn(_poisson, arguments, "RandomPoissonV2", f"{name}/RandomPoissonV2")


def xw_plus_b(
    x: TensorLike, weights: TensorLike, biases: TensorLike, name: str = "xw_plus_b"
) -> Any:
    """Return a product with a bias added."""
    return drawn(lambda x, w, b: ops.matmul(x, w) + b, (x, weights, biases), "BiasAdd", name)


def relu_layer(
    x: TensorLike, weights: TensorLike, biases: TensorLike, name: str = "relu_layer"
) -> Any:
    """Return the ReLU of a product with a bias added."""

    def layer(x: Any, weights: Any, biases: Any) -> Any:
        return ops.relu(ops.matmul(x, weights) + biases)

    return drawn(layer, (x, weights, biases), "Relu", name)


def convert_to_tensor(
    value: TensorLike,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    preferred_dtype: DTypeLike | None = None,
    dtype_hint: DTypeLike | None = None,
) -> Any:
    """Return a value as a tensor of the graph.

    Args:
        value: The value.
        dtype: Its dtype; None: that of the value.
        name: Its name.
        preferred_dtype: The dtype of a value that has none itself, where it fits.
        dtype_hint: The same, by its later name.
    """
    hint = preferred_dtype if dtype_hint is None else dtype_hint
    if dtype is None and hint is not None and not hasattr(value, "dtype"):
        with suppress(TypeError, ValueError):
            return converted(value, as_dtype(hint), name or "Const")

    return converted(value, None if dtype is None else as_dtype(dtype), name or "Const")


def set_random_seed(seed: int) -> None:
    """Seed the operations that are created from now on, so that all sessions draw the same."""
    get_default_graph().seed = seed


@contextmanager
def name_scope(
    name: str | None, default_name: str | None = None, values: Sequence[Any] | None = None
) -> Iterator[str]:
    """Return a context that prefixes the names of operations, and yields the prefix.

    Args:
        name: What is added; one that ends with a slash stands for itself, None: `default_name`.
        default_name: What is added where `name` is None.
        values: Tensors, into whose graph operations are drawn.

    Raises:
        ValueError: There are tensors and no name.
    """
    name = default_name if name is None else name
    if name is None and values is not None:
        raise ValueError("At least one of name (None) and default_name (None) must be provided.")
    graph = graph_of(values)
    with drawing_into(graph), graph.name_scope(name) as scope:
        yield scope


def control_dependencies(control_inputs: Any) -> Any:
    """Return a context whose operations run after others."""
    return get_default_graph().control_dependencies(control_inputs)


def add_to_collection(name: str, value: Any) -> None:
    """Add a value to a collection of the default graph."""
    get_default_graph().add_to_collection(name, value)


def get_collection(key: str, scope: str | None = None) -> list[Any]:
    """Return the values of a collection of the default graph."""
    return get_default_graph().get_collection(key, scope)


def get_collection_ref(key: str) -> list[Any]:
    """Return a collection of the default graph itself, which changes with it."""
    return get_default_graph().get_collection_ref(key)
