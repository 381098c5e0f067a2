"""Types that annotate arguments, as ``mr.types``.

- `TensorLike`: whatever `mr.convert_to_tensor` converts: numbers, nested sequences of them, NumPy
  arrays, tensors, variables, and objects with the array protocols of NumPy or DLPack.
- `ShapeLike`: the sizes of all axes, or one size for a single axis.
- `PartialShapeLike`: sizes of which some are None, because they are not known yet.
- `AxisLike`: one axis, or several; negative ones count from the last.
- `DTypeLike`: a dtype of NumPy, its name, a scalar type, or Python's float, int and bool.
- `PathLike`: a string, or a path object such as `pathlib.Path`.
- `Identifier`: a layer's, loss's or metric's part by its name, its configuration, or itself: a
  function, or an object of an initializer, a regularizer and so on.
- `Nest[X]`: an `X`, or nested lists, tuples and dicts of them.

Type checkers refuse a call whose arguments are something else. At run time the names have no
values to compare with: functions check their arguments themselves.

Example:
    >>> import mirrored as mr
    >>> def double(x: mr.types.TensorLike) -> mr.Tensor:
    ...     return mr.convert_to_tensor(x) * 2.0
    >>> double([1.0, 2.0]).numpy()
    array([2., 4.], dtype=float32)
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.types",
    __name__,
    {
        "mirrored._types": """
            AxisLike DTypeLike Identifier Nest PartialShapeLike PathLike ShapeLike TensorLike
        """,
        "mirrored.types": "experimental",
    },
)
