"""NumPy's functions of tensors, under TensorFlow's rules, as ``mr.experimental.numpy``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.experimental.numpy",
    __name__,
    {
        "mirrored.experimental.numpy": "random",
        "mirrored.numpy_functions.averages": "average diff nanmean nanprod nansum trace",
        "mirrored.numpy_functions.selection": """
            compress ix_ nonzero select take take_along_axis where
        """,
        "mirrored.numpy_functions.creation": """
            arange empty empty_like full full_like geomspace linspace logspace ones
            ones_like zeros zeros_like
        """,
        "mirrored.numpy_functions.unary": """
            abs absolute angle arccos arccosh arcsin arcsinh arctan arctanh around cbrt
            ceil conj conjugate cos cosh deg2rad exp exp2 expm1 fabs fix floor
            iscomplexobj isfinite isinf isnan isneginf isposinf isrealobj log log10
            log1p log2 logical_not negative positive rad2deg real reciprocal round sign
            signbit sin sinc sinh sqrt square tan tanh
        """,
        "mirrored.numpy_functions.matrices": """
            diag diag_indices diagflat diagonal eye identity meshgrid tri tril triu
            vander
        """,
        "mirrored.numpy_functions.manipulation": """
            argsort dsplit flip fliplr flipud hsplit pad repeat roll rot90 sort split
            tile vsplit
        """,
        "mirrored.numpy_functions.binary": """
            add allclose arctan2 array_equal clip divide divmod equal float_power
            floor_divide greater greater_equal heaviside hypot isclose less less_equal
            logaddexp logaddexp2 logical_and logical_or logical_xor maximum minimum mod
            multiply nextafter not_equal polyval power remainder subtract true_divide
        """,
        "mirrored.numpy_functions.products": """
            cross dot einsum inner kron matmul outer tensordot vdot
        """,
        "mirrored.numpy_functions.promotion": """
            array asanyarray asarray ascontiguousarray copy finfo promote_types
            result_type
        """,
        "mirrored.numpy_functions.reductions": """
            all amax amin any argmax argmin count_nonzero cumprod cumsum max mean min
            prod ptp std sum var
        """,
        "mirrored.numpy_functions.shapes": """
            append atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_to
            concatenate dstack expand_dims flatten hstack isscalar moveaxis ndim ravel
            reshape shape size squeeze stack swapaxes transpose vstack
        """,
        "mirrored.ops": "ndarray=Tensor",
        "numpy": """
            bool_ e float16 float32 float64 float_=float64 iinfo inexact inf int16 int32
            int64 int8 int_ issubdtype newaxis pi uint16 uint32 uint64 uint8
        """,
    },
)
