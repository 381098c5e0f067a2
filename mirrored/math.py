"""The public names of mathematical operations, as ``mr.math``.

An alias module without logic of its own.
"""

import typing as _typing

from mirrored._absent import public_module as _public_module
from mirrored.ops import abs as abs
from mirrored.ops import accumulate_n as accumulate_n
from mirrored.ops import add as add
from mirrored.ops import add_n as add_n
from mirrored.ops import argmax as argmax
from mirrored.ops import argmin as argmin
from mirrored.ops import divide as divide
from mirrored.ops import equal as equal
from mirrored.ops import exp as exp
from mirrored.ops import expm1 as expm1
from mirrored.ops import floormod as floormod
from mirrored.ops import greater as greater
from mirrored.ops import greater_equal as greater_equal
from mirrored.ops import is_finite as is_finite
from mirrored.ops import is_inf as is_inf
from mirrored.ops import is_nan as is_nan
from mirrored.ops import l2_normalize as l2_normalize
from mirrored.ops import less as less
from mirrored.ops import less_equal as less_equal
from mirrored.ops import log as log
from mirrored.ops import log1p as log1p
from mirrored.ops import log_softmax as log_softmax
from mirrored.ops import logical_and as logical_and
from mirrored.ops import logical_not as logical_not
from mirrored.ops import logical_or as logical_or
from mirrored.ops import logical_xor as logical_xor
from mirrored.ops import maximum as maximum
from mirrored.ops import minimum as minimum
from mirrored.ops import multiply as multiply
from mirrored.ops import negative as negative
from mirrored.ops import not_equal as not_equal
from mirrored.ops import polyval as polyval
from mirrored.ops import pow as pow
from mirrored.ops import reciprocal as reciprocal
from mirrored.ops import reduce_all as reduce_all
from mirrored.ops import reduce_any as reduce_any
from mirrored.ops import reduce_logsumexp as reduce_logsumexp
from mirrored.ops import reduce_max as reduce_max
from mirrored.ops import reduce_mean as reduce_mean
from mirrored.ops import reduce_min as reduce_min
from mirrored.ops import reduce_prod as reduce_prod
from mirrored.ops import reduce_sum as reduce_sum
from mirrored.ops import rsqrt as rsqrt
from mirrored.ops import scalar_mul as scalar_mul
from mirrored.ops import sigmoid as sigmoid
from mirrored.ops import sign as sign
from mirrored.ops import softmax as softmax
from mirrored.ops import softplus as softplus
from mirrored.ops import sqrt as sqrt
from mirrored.ops import square as square
from mirrored.ops import squared_difference as squared_difference
from mirrored.ops import subtract as subtract
from mirrored.ops import tanh as tanh

if _typing.TYPE_CHECKING:
    from mirrored.ops import acos as acos
    from mirrored.ops import acosh as acosh
    from mirrored.ops import asin as asin
    from mirrored.ops import asinh as asinh
    from mirrored.ops import atan as atan
    from mirrored.ops import atan2 as atan2
    from mirrored.ops import atanh as atanh
    from mirrored.ops import bincount as bincount
    from mirrored.ops import ceil as ceil
    from mirrored.ops import confusion_matrix as confusion_matrix
    from mirrored.ops import cos as cos
    from mirrored.ops import cosh as cosh
    from mirrored.ops import count_nonzero as count_nonzero
    from mirrored.ops import cumprod as cumprod
    from mirrored.ops import cumsum as cumsum
    from mirrored.ops import cumulative_logsumexp as cumulative_logsumexp
    from mirrored.ops import digamma as digamma
    from mirrored.ops import divide_no_nan as divide_no_nan
    from mirrored.ops import erf as erf
    from mirrored.ops import erfc as erfc
    from mirrored.ops import erfcinv as erfcinv
    from mirrored.ops import erfinv as erfinv
    from mirrored.ops import floor as floor
    from mirrored.ops import floordiv as floordiv
    from mirrored.ops import in_top_k as in_top_k
    from mirrored.ops import invert_permutation as invert_permutation
    from mirrored.ops import is_non_decreasing as is_non_decreasing
    from mirrored.ops import is_strictly_increasing as is_strictly_increasing
    from mirrored.ops import lbeta as lbeta
    from mirrored.ops import lgamma as lgamma
    from mirrored.ops import log_sigmoid as log_sigmoid
    from mirrored.ops import multiply_no_nan as multiply_no_nan
    from mirrored.ops import ndtri as ndtri
    from mirrored.ops import nextafter as nextafter
    from mirrored.ops import reciprocal_no_nan as reciprocal_no_nan
    from mirrored.ops import reduce_euclidean_norm as reduce_euclidean_norm
    from mirrored.ops import reduce_std as reduce_std
    from mirrored.ops import reduce_variance as reduce_variance
    from mirrored.ops import rint as rint
    from mirrored.ops import round as round
    from mirrored.ops import segment_max as segment_max
    from mirrored.ops import segment_mean as segment_mean
    from mirrored.ops import segment_min as segment_min
    from mirrored.ops import segment_prod as segment_prod
    from mirrored.ops import segment_sum as segment_sum
    from mirrored.ops import sin as sin
    from mirrored.ops import sinh as sinh
    from mirrored.ops import softsign as softsign
    from mirrored.ops import tan as tan
    from mirrored.ops import top_k as top_k
    from mirrored.ops import unsorted_segment_max as unsorted_segment_max
    from mirrored.ops import unsorted_segment_mean as unsorted_segment_mean
    from mirrored.ops import unsorted_segment_min as unsorted_segment_min
    from mirrored.ops import unsorted_segment_prod as unsorted_segment_prod
    from mirrored.ops import unsorted_segment_sqrt_n as unsorted_segment_sqrt_n
    from mirrored.ops import unsorted_segment_sum as unsorted_segment_sum
    from mirrored.ops import xdivy as xdivy
    from mirrored.ops import xlog1py as xlog1py
    from mirrored.ops import xlogy as xlogy
    from mirrored.ops import zero_fraction as zero_fraction

mod = floormod
truediv = divide

_LATE = {
    "mirrored.ops": (
        "acos acosh asin asinh atan atan2 atanh bincount ceil confusion_matrix cos cosh "
        "count_nonzero cumprod cumsum cumulative_logsumexp digamma divide_no_nan erf erfc "
        "erfcinv erfinv floor floordiv in_top_k invert_permutation is_non_decreasing "
        "is_strictly_increasing lbeta lgamma log_sigmoid multiply_no_nan ndtri nextafter "
        "reciprocal_no_nan reduce_euclidean_norm reduce_std reduce_variance rint round "
        "segment_max segment_mean segment_min segment_prod segment_sum sin sinh softsign tan "
        "top_k unsorted_segment_max unsorted_segment_mean unsorted_segment_min "
        "unsorted_segment_prod unsorted_segment_sqrt_n unsorted_segment_sum xdivy xlog1py "
        "xlogy zero_fraction"
    ),
}
_public_module("tf.math", __name__, _LATE)
