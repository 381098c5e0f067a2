"""The maths: tensors, and each op once, with its kernel, gradient and devices.

Everything above computes with the functions that are named here. Their parameters are TensorFlow's,
in its order; `name` is accepted for compatibility, since eager ops have no name.
"""

from mirrored._late import late_module as _late_module
from mirrored.ops import comparison as _comparison  # noqa: F401  Operators of Python call them.
from mirrored.ops import elementwise as _elementwise  # noqa: F401
from mirrored.ops.add_n import add_n as add_n
from mirrored.ops.dropout import dropout as dropout
from mirrored.ops.softmax import softmax as softmax

_late_module(
    __name__,
    {
        "mirrored.ops.activations": "bias_add logits_of relu sigmoid softplus tanh",
        "mirrored.ops.add_n": "accumulate_n",
        "mirrored.ops.assertions": """
            assert_equal assert_greater assert_greater_equal assert_less
            assert_less_equal assert_near assert_negative assert_non_negative
            assert_non_positive assert_none_equal assert_positive
        """,
        "mirrored.ops.checks": "Assert assert_all_finite check_numerics",
        "mirrored.ops.clipping": """
            clip_by_global_norm clip_by_norm clip_by_value global_norm l2_normalize
        """,
        "mirrored.ops.comparison": """
            equal greater greater_equal is_finite is_inf is_nan less less_equal
            logical_and logical_not logical_or logical_xor not_equal reduce_all
            reduce_any
        """,
        "mirrored.ops.contraction": "einsum",
        "mirrored.ops.conversion": "constant convert_to_tensor",
        "mirrored.ops.convolution_functions": """
            atrous_conv2d atrous_conv2d_transpose conv1d conv1d_transpose conv2d conv2d_transpose
            conv3d conv3d_transpose conv_transpose convolution depthwise_conv2d separable_conv2d
        """,
        "mirrored.ops.creation": "fill ones ones_like zeros zeros_like",
        "mirrored.ops.cross_entropy": """
            log_poisson_loss sigmoid_cross_entropy_with_logits softmax_cross_entropy_with_logits
            sparse_softmax_cross_entropy_with_logits weighted_cross_entropy_with_logits
        """,
        "mirrored.ops.diagonals": """
            band_part diag diag_part set_diag tensor_diag tensor_diag_part trace
        """,
        "mirrored.ops.dropout": "dropped general_dropout stateless_dropout",
        "mirrored.ops.elementwise": """
            abs add divide divide_no_nan maximum minimum multiply multiply_no_nan negative
            reciprocal_no_nan scalar_mul sign subtract xdivy xlog1py xlogy
        """,
        "mirrored.ops.gathering": "embedding_lookup gather gather_nd",
        "mirrored.ops.histograms": """
            bincount confusion_matrix histogram_fixed_width histogram_fixed_width_bins
        """,
        "mirrored.ops.host_function": "numpy_function py_function timestamp",
        "mirrored.ops.host_tensor": "transfer",
        "mirrored.ops.indexed_slices": "IndexedSlices",
        "mirrored.ops.manipulation": """
            depth_to_space pad reverse reverse_sequence roll space_to_depth split stack tile unstack
        """,
        "mirrored.ops.linalg": "matmul",
        "mirrored.ops.narrow_floats": "autocast autocast_dtype",
        "mirrored.ops.nonlinearities": """
            crelu elu gelu leaky_relu log_sigmoid relu6 selu silu softsign swish
        """,
        "mirrored.ops.norms": "l2_loss norm normalize reduce_euclidean_norm",
        "mirrored.ops.op": "OPS Op OpCall register",
        "mirrored.ops.partitioning": "boolean_mask dynamic_partition dynamic_stitch repeat",
        "mirrored.ops.pooling_functions": """
            avg_pool avg_pool1d avg_pool2d avg_pool3d max_pool max_pool1d max_pool2d max_pool3d pool
        """,
        "mirrored.ops.powers": """
            exp expm1 log log1p polyval pow reciprocal rsqrt sqrt square
            squared_difference
        """,
        "mirrored.ops.printing": "print",
        "mirrored.ops.products": "adjoint cross matrix_transpose matvec tensordot",
        "mirrored.ops.random": "SeedGenerator random_normal random_uniform set_seed",
        "mirrored.ops.ranges": """
            ensure_shape eye linspace meshgrid one_hot range rank sequence_mask shape
            size
        """,
        "mirrored.ops.reduction": """
            argmax argmin reduce_max reduce_mean reduce_min reduce_prod reduce_sum
        """,
        "mirrored.ops.rng_state": "ShardPosition shard_position",
        "mirrored.ops.rounding": "ceil floor floordiv floormod nextafter rint round",
        "mirrored.ops.scans": "cumprod cumsum cumulative_logsumexp",
        "mirrored.ops.scattering": """
            scatter_nd tensor_scatter_nd_add tensor_scatter_nd_max tensor_scatter_nd_min
            tensor_scatter_nd_sub tensor_scatter_nd_update
        """,
        "mirrored.ops.searching": "invert_permutation searchsorted unique unique_with_counts",
        "mirrored.ops.segments": """
            segment_max segment_mean segment_min segment_prod segment_sum
            unsorted_segment_max unsorted_segment_mean unsorted_segment_min
            unsorted_segment_prod unsorted_segment_sqrt_n unsorted_segment_sum
        """,
        "mirrored.ops.select": "where",
        "mirrored.ops.shaping": """
            broadcast_to cast concat expand_dims identity reshape squeeze stop_gradient
            transpose
        """,
        "mirrored.ops.slices": "slice strided_slice",
        "mirrored.ops.softmax": "log_softmax reduce_logsumexp",
        "mirrored.ops.solving": """
            cholesky cholesky_solve det inv logdet lstsq slogdet solve triangular_solve
        """,
        "mirrored.ops.sorting": """
            argsort in_top_k is_non_decreasing is_strictly_increasing sort top_k
        """,
        "mirrored.ops.spec": """
            TensorSpec as_dtype bfloat16 bool_ float16 float32 float64 floatx image_data_format
            int16 int32 int64 int8 set_floatx set_image_data_format uint16 uint32 uint64 uint8
        """,
        "mirrored.ops.special_functions": "digamma erf erfc erfcinv erfinv lbeta lgamma ndtri",
        "mirrored.ops.spectra": "eigh eigvalsh matrix_rank pinv qr svd",
        "mirrored.ops.static_assertions": """
            assert_integer assert_proper_iterable assert_rank assert_rank_at_least
            assert_rank_in assert_same_float_dtype assert_scalar assert_shapes
            assert_type is_numeric_tensor
        """,
        "mirrored.ops.statistics": """
            batch_normalization count_nonzero moments normalize_moments reduce_std reduce_variance
            sufficient_statistics weighted_moments zero_fraction
        """,
        "mirrored.ops.tensor": "Tensor",
        "mirrored.ops.tensor_shape": "TensorShape",
        "mirrored.ops.trigonometry": "acos acosh asin asinh atan atan2 atanh cos cosh sin sinh tan",
    },
)
