"""Keras' operations, as ``mr.keras.ops``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.ops",
    __name__,
    {
        "mirrored.keras.ops": "image linalg nn numpy",
        "mirrored.keras_functions.convolution_and_pooling": """
            average_pool conv conv_transpose depthwise_conv max_pool separable_conv
        """,
        "mirrored.keras_functions.core": """
            associative_scan cast cond convert_to_numpy convert_to_tensor
            custom_gradient dtype fori_loop is_tensor map saturate_cast scan scatter
            scatter_update shape slice slice_update stop_gradient switch unstack
            vectorized_map while_loop
        """,
        "mirrored.keras_functions.einops": "rearrange",
        "mirrored.keras_functions.linalg": """
            cholesky cholesky_inverse det eigh inv jvp logdet lstsq matrix_rank norm
            pinv qr slogdet solve solve_triangular svd
        """,
        "mirrored.keras_functions.math": """
            cdist erf erfc erfinv extract_sequences in_top_k logsumexp rsqrt segment_max
            segment_min segment_prod segment_sum top_k
        """,
        "mirrored.keras_functions.nn": """
            batch_normalization binary_crossentropy categorical_crossentropy
            depth_to_space dot_product_attention gelu layer_normalization log_softmax
            moments multi_hot normalize one_hot psnr relu rms_normalization softmax
            softplus space_to_depth sparse_categorical_crossentropy
        """,
        "mirrored.keras_functions.numpy.creation": """
            arange array bartlett blackman diag diagflat diagonal empty empty_like eye
            full full_like geomspace hamming hanning identity kaiser linspace logspace
            meshgrid ones ones_like trace tri tril triu vander zeros zeros_like
        """,
        "mirrored.keras_functions.numpy.elementwise": """
            abs absolute add allclose angle arccos arccosh arcsin arcsinh arctan arctan2
            arctanh cbrt ceil clip conj conjugate copy cos cosh deg2rad divide
            divide_no_nan equal exp exp2 expm1 fabs floor floor_divide fmax fmin fmod
            greater greater_equal heaviside hypot imag isclose isfinite isinf isnan
            isneginf isposinf isreal ldexp less less_equal log log10 log1p log2
            logaddexp logaddexp2 logical_and logical_not logical_or logical_xor maximum
            minimum mod multiply nan_to_num negative nextafter not_equal power rad2deg
            real reciprocal round sign signbit sin sinc sinh sqrt square subtract tan
            tanh true_divide trunc
        """,
        "mirrored.keras_functions.numpy.indexing": """
            get_item isin nonzero select take take_along_axis unravel_index where
        """,
        "mirrored.keras_functions.numpy.manipulation": """
            append array_split broadcast_to concatenate dsplit dstack expand_dims flip
            fliplr flipud hsplit hstack moveaxis ndim pad ravel repeat reshape roll
            rot90 size split squeeze stack swapaxes tile transpose vsplit vstack
        """,
        "mirrored.keras_functions.numpy.products": """
            correlate cross dot einsum inner kron matmul outer tensordot vdot
        """,
        "mirrored.keras_functions.numpy.reductions": """
            all amax amin any argmax argmin average corrcoef count_nonzero cumprod
            cumsum diff max mean min nanargmax nanargmin nancumprod nancumsum nanmax
            nanmean nanmin nanprod nanstd nansum nanvar prod ptp std sum trapezoid var
        """,
        "mirrored.keras_functions.numpy.sorting": """
            argpartition argsort bincount digitize histogram median nanmedian
            nanpercentile nanquantile percentile quantile searchsorted sort unique
        """,
        "mirrored.layers.activations": "sigmoid",
        "mirrored.layers.activation_functions": """
            celu elu glu hard_shrink hard_sigmoid hard_silu hard_swish hard_tanh
            leaky_relu log_sigmoid relu6 selu silu soft_shrink softsign sparse_plus
            sparse_sigmoid sparsemax squareplus swish tanh_shrink threshold
        """,
    },
)
