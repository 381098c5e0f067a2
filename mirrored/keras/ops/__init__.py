"""Keras' operations, as ``mr.keras.ops``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.ops",
    __name__,
    {
        "mirrored.keras.ops": "linalg nn numpy",
        "mirrored.keras_functions.arithmetic": """
            allclose arctan2 divide_no_nan fmax fmin fmod heaviside hypot isclose ldexp
            logaddexp logaddexp2 nan_to_num nextafter psnr saturate_cast
        """,
        "mirrored.keras_functions.attention": "dot_product_attention",
        "mirrored.keras_functions.control": """
            associative_scan cond custom_gradient dtype fori_loop jvp map scan switch
            vectorized_map while_loop
        """,
        "mirrored.keras_functions.counting": """
            bincount count_nonzero histogram segment_max segment_min segment_prod
            segment_sum unique
        """,
        "mirrored.keras_functions.elementwise": """
            abs absolute clip gelu is_tensor isfinite isinf isnan log_softmax
            logical_not negative one_hot reciprocal relu round rsqrt sign softmax
            softplus square stop_gradient
        """,
        "mirrored.keras_functions.indexing": """
            get_item isin multi_hot nonzero scatter scatter_update select slice
            slice_update take take_along_axis unravel_index
        """,
        "mirrored.keras_functions.creation": """
            array diag diagflat diagonal empty empty_like eye full_like identity trace
            tri tril triu vander
        """,
        "mirrored.keras_functions.matrices": """
            cholesky cholesky_inverse det eigh inv logdet lstsq matrix_rank norm pinv qr
            slogdet solve solve_triangular svd
        """,
        "mirrored.keras_functions.manipulation": """
            append array_split broadcast_to dsplit dstack extract_sequences flip fliplr
            flipud hsplit hstack moveaxis pad repeat roll rot90 split tile unstack
            vsplit vstack
        """,
        "mirrored.keras_functions.normalizing": """
            batch_normalization binary_crossentropy categorical_crossentropy
            layer_normalization moments normalize rms_normalization
            sparse_categorical_crossentropy
        """,
        "mirrored.keras_functions.sorting": """
            argpartition argsort digitize in_top_k median nanmedian nanpercentile
            nanquantile percentile quantile searchsorted sort top_k
        """,
        "mirrored.keras_functions.binary": """
            add divide equal floor_divide greater greater_equal less less_equal
            logical_and logical_or logical_xor matmul maximum minimum mod multiply
            not_equal power subtract true_divide where
        """,
        "mirrored.keras_functions.products": """
            cdist correlate cross dot einsum inner kron outer tensordot vdot
        """,
        "mirrored.keras_functions.rearranging": "rearrange",
        "mirrored.keras_functions.reductions": """
            all amax amin any argmax argmin logsumexp max mean min prod std sum var
        """,
        "mirrored.keras_functions.shapes": """
            arange cast concatenate convert_to_numpy convert_to_tensor expand_dims full
            ndim ones ones_like ravel reshape shape size squeeze stack swapaxes
            transpose zeros zeros_like
        """,
        "mirrored.keras_functions.spacing": "geomspace linspace logspace meshgrid",
        "mirrored.keras_functions.statistics": """
            average corrcoef cumprod cumsum diff nanargmax nanargmin nancumprod
            nancumsum nanmax nanmean nanmin nanprod nanstd nansum nanvar ptp trapezoid
        """,
        "mirrored.keras_functions.float_elementwise": """
            angle arccos arccosh arcsin arcsinh arctan arctanh cbrt ceil conj conjugate
            copy cos cosh deg2rad erf erfc erfinv exp exp2 expm1 fabs floor imag
            isneginf isposinf isreal log log10 log1p log2 rad2deg real signbit sin sinc
            sinh sqrt tan tanh trunc
        """,
        "mirrored.keras_functions.windows": "bartlett blackman hamming hanning kaiser",
        "mirrored.layers.activations": "sigmoid",
        "mirrored.layers.nonlinearities": """
            celu elu glu hard_shrink hard_sigmoid hard_silu hard_swish hard_tanh
            leaky_relu log_sigmoid relu6 selu silu soft_shrink softsign sparse_plus
            sparse_sigmoid sparsemax squareplus swish tanh_shrink threshold
        """,
    },
)
