"""What Keras' files call the operations of `keras.ops`: the classes, and the arguments of calls."""

from collections.abc import Mapping
from typing import Any

from mirrored._naming import snake_case
from mirrored.serialization.class_names import public_operation

_OPERATIONS = "keras.src.ops."
# The modules of classes whose functions are in modules of other names here.
_MODULES = {"activation_functions": "nn", "activations": "nn", "convolution_and_pooling": "nn"}
_MODULE = {"logdet": "math", "slogdet": "numpy"}
# Classes whose names are not those of the functions with capitals.
_CLASSES = {
    "allclose": "AllClose",
    "batch_normalization": "BatchNorm",
    "cdist": "CDist",
    "conj": "Conjugate",
    "hard_swish": "HardSilu",
    "hsv_to_rgb": "HSVToRGB",
    "in_top_k": "InTopK",
    "isin": "IsIn",
    "layer_normalization": "LayerNorm",
    "psnr": "PSNR",
    "rgb_to_grayscale": "RGBToGrayscale",
    "rgb_to_hsv": "RGBToHSV",
    "rms_normalization": "RMSNorm",
    "searchsorted": "SearchSorted",
    "svd": "SVD",
    "swish": "Silu",
}
_SHARED = ("Conjugate", "HardSilu", "Silu")
_NAMES = {kind: name for name, kind in _CLASSES.items() if kind not in _SHARED}
# The arguments of functions that are those of a call; the others are settings.
OF_A_CALL = frozenset(("x", "x1", "x2", "xs", "condition", "variable", "fill_value"))
# By these arguments in the call's order: the functions of which they are.
_BY_ARGUMENTS = {
    "images transform": "affine_transform",
    "x": "average bincount pad rms_normalization",
    "x mean variance offset scale": "batch_normalization",
    "target output": "binary_crossentropy categorical_crossentropy sparse_categorical_crossentropy",
    "x y": "cdist",
    "images": "crop_images hsv_to_rgb pad_images resize rgb_to_grayscale rgb_to_hsv",
    "a": "diff",
    "x bins": "digitize",
    "query key value": "dot_product_attention",
    "operands": "einsum",
    "start stop": "geomspace linspace logspace",
    "targets predictions": "in_top_k",
    "x1 x2 rtol atol": "isclose",
    "x gamma beta": "layer_normalization",
    "a b": "lstsq solve solve_triangular",
    "inputs": "multi_hot",
    "inputs kernel": "conv depthwise_conv",
    "inputs depthwise_kernel pointwise_kernel": "separable_conv",
    "x q": "nanpercentile nanquantile percentile quantile",
    "tensor pattern": "rearrange",
    "array": "rot90",
    "indices values": "scatter",
    "inputs indices updates": "scatter_update",
    "sorted_sequence values": "searchsorted",
    "data segment_ids": "segment_max segment_min segment_prod segment_sum",
    "condlist choicelist default": "select",
    "inputs start_indices": "slice",
    "inputs start_indices updates": "slice_update",
    "x indices": "take take_along_axis",
    "y": "trapezoid",
    "indices": "unravel_index",
}
_CALLS = {name: call for call, names in _BY_ARGUMENTS.items() for name in names.split()}
_BY_NAME = {
    "average": ("weights",),
    "dot_product_attention": ("bias", "mask", "scale"),
    "pad": ("constant_values",),
    "rms_normalization": ("scale",),
}
# What calls functions, or makes no class in Keras.
WITHOUT_CLASS = """
    associative_scan bartlett blackman cond custom_gradient dtype empty eye fori_loop hamming
    hanning identity jvp kaiser map scan switch tri vectorized_map while_loop
"""


def class_of(name: str) -> tuple[str, str]:
    """Return the module and the name of the class that a function of `keras.ops` is in Keras.

    Args:
        name: The function's name.

    Example:
        >>> class_of("top_k")
        ('keras.src.ops.math', 'TopK')
    """
    kind = "".join(word.capitalize() for word in name.split("_"))
    home = public_operation(name).__module__.split(".")[2]
    module = _MODULE.get(name) or _MODULES.get(home, home)
    return f"{_OPERATIONS}{module}", _CLASSES.get(name, kind)


def function_of(module: object, kind: object) -> str | None:
    """Return the name of the function that a class of Keras' is; None: the class is no operation.

    Args:
        module: The class's module.
        kind: Its name.

    Example:
        >>> function_of("keras.src.ops.nn", "RMSNorm")
        'rms_normalization'
    """
    if not isinstance(module, str) or not module.startswith(_OPERATIONS):
        return None
    if not isinstance(kind, str):
        return None
    return _NAMES.get(kind) or snake_case(kind)


def of_a_call(name: str) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Return which arguments of a function are those of a call: by position, and by name.

    Args:
        name: The function's name.

    Returns:
        Names; None for the first ones: those in `OF_A_CALL`.
    """
    positional = _CALLS.get(name)
    return None if positional is None else tuple(positional.split()), _BY_NAME.get(name, ())


def arguments_of(
    name: str, args: tuple[Any, ...], settings: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a function for those of a call and the settings of a class.

    Args:
        name: The function's name.
        args: Those of the call.
        settings: Those of the class.
    """
    if name == "einsum":
        return (settings["subscripts"], *args), {}
    names = of_a_call(name)[0]
    if names is None:
        return args, dict(settings)
    return (), {**dict(zip(names, args, strict=False)), **settings}
