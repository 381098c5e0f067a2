"""The public names of mathematical operations, as ``mr.math``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.math",
    __name__,
    {
        "mirrored.ops": """
            abs accumulate_n acos acosh add add_n argmax argmin asin asinh atan atan2
            atanh bincount ceil confusion_matrix cos cosh count_nonzero cumprod cumsum
            cumulative_logsumexp digamma divide divide_no_nan equal erf erfc erfcinv
            erfinv exp expm1 floor floordiv floormod greater greater_equal in_top_k
            invert_permutation is_finite is_inf is_nan is_non_decreasing
            is_strictly_increasing l2_normalize lbeta less less_equal lgamma log log1p
            log_sigmoid log_softmax logical_and logical_not logical_or logical_xor
            maximum minimum mod=floormod multiply multiply_no_nan ndtri negative
            nextafter not_equal polyval pow reciprocal reciprocal_no_nan reduce_all
            reduce_any reduce_euclidean_norm reduce_logsumexp reduce_max reduce_mean
            reduce_min reduce_prod reduce_std reduce_sum reduce_variance rint round
            rsqrt scalar_mul segment_max segment_mean segment_min segment_prod
            segment_sum sigmoid sign sin sinh softmax softplus softsign sqrt square
            squared_difference subtract tan tanh top_k truediv=divide
            unsorted_segment_max unsorted_segment_mean unsorted_segment_min
            unsorted_segment_prod unsorted_segment_sqrt_n unsorted_segment_sum xdivy
            xlog1py xlogy zero_fraction
        """,
    },
)
