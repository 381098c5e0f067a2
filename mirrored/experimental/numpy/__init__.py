"""NumPy's functions of tensors, under TensorFlow's rules, as ``mr.experimental.numpy``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.experimental.numpy",
    __name__,
    {
        "mirrored.experimental.numpy": "random",
        "mirrored.numpy_functions.array_creation": """
            arange diag diag_indices diagflat diagonal empty empty_like eye full
            full_like geomspace identity linspace logspace meshgrid ones ones_like tri
            tril triu vander zeros zeros_like
        """,
        "mirrored.numpy_functions.array_indexing": """
            argsort compress ix_ nonzero select sort take take_along_axis where
        """,
        "mirrored.numpy_functions.array_manipulation": """
            append atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_to
            concatenate dsplit dstack expand_dims flatten flip fliplr flipud hsplit
            hstack isscalar moveaxis ndim pad ravel repeat reshape roll rot90 shape size
            split squeeze stack swapaxes tile transpose vsplit vstack
        """,
        "mirrored.numpy_functions.array_products": """
            cross dot einsum inner kron matmul outer tensordot vdot
        """,
        "mirrored.numpy_functions.array_reductions": """
            all amax amin any argmax argmin average count_nonzero cumprod cumsum diff
            max mean min nanmean nanprod nansum prod ptp std sum trace var
        """,
        "mirrored.numpy_functions.array_conversion": """
            array asanyarray asarray ascontiguousarray copy finfo promote_types
            result_type
        """,
        "mirrored.numpy_functions.ufuncs": """
            abs absolute add allclose angle arccos arccosh arcsin arcsinh arctan arctan2
            arctanh around array_equal cbrt ceil clip conj conjugate cos cosh deg2rad
            divide divmod equal exp exp2 expm1 fabs fix float_power floor floor_divide
            greater greater_equal heaviside hypot isclose iscomplexobj isfinite isinf
            isnan isneginf isposinf isrealobj less less_equal log log10 log1p log2
            logaddexp logaddexp2 logical_and logical_not logical_or logical_xor maximum
            minimum mod multiply negative nextafter not_equal polyval positive power
            rad2deg real reciprocal remainder round sign signbit sin sinc sinh sqrt
            square subtract tan tanh true_divide
        """,
        "mirrored.ops": "ndarray=Tensor",
        "numpy": """
            bool_ e float16 float32 float64 float_=float64 iinfo inexact inf int16 int32
            int64 int8 int_ issubdtype newaxis pi uint16 uint32 uint64 uint8
        """,
    },
)
