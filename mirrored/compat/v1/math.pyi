# Written by tests/support/stubs.py from the table in math.py; do not edit it.
from mirrored.compat.v1.call_table import rows_of as _rows_of
from mirrored.compat.v1.listing import list_names as _list_names
import typing as _typing
from mirrored.compat.v1.drawn_calls import abs as abs
from mirrored.compat.v1.drawn_calls import accumulate_n as accumulate_n
from mirrored.compat.v1.drawn_calls import acos as acos
from mirrored.compat.v1.drawn_calls import acosh as acosh
from mirrored.compat.v1.drawn_calls import add as add
from mirrored.compat.v1.drawn_calls import add_n as add_n
from mirrored.compat.v1.drawn_calls import argmax as argmax
from mirrored.compat.v1.drawn_calls import argmin as argmin
from mirrored.compat.v1.drawn_calls import asin as asin
from mirrored.compat.v1.drawn_calls import asinh as asinh
from mirrored.compat.v1.drawn_calls import atan as atan
from mirrored.compat.v1.drawn_calls import atan2 as atan2
from mirrored.compat.v1.drawn_calls import atanh as atanh
from mirrored.compat.v1.drawn_calls import bincount as bincount
from mirrored.compat.v1.drawn_calls import ceil as ceil
from mirrored.compat.v1.drawn_calls import confusion_matrix as confusion_matrix
from mirrored.compat.v1.drawn_calls import cos as cos
from mirrored.compat.v1.drawn_calls import cosh as cosh
from mirrored.compat.v1.drawn_calls import count_nonzero as count_nonzero
from mirrored.compat.v1.drawn_calls import cumprod as cumprod
from mirrored.compat.v1.drawn_calls import cumsum as cumsum
cumulative_logsumexp: _typing.Any
from mirrored.compat.v1.drawn_calls import digamma as digamma
from mirrored.compat.v1.drawn_calls import divide as divide
from mirrored.compat.v1.drawn_calls import divide_no_nan as divide_no_nan
from mirrored.compat.v1.drawn_calls import equal as equal
from mirrored.compat.v1.drawn_calls import erf as erf
from mirrored.compat.v1.drawn_calls import erfc as erfc
erfcinv: _typing.Any
erfinv: _typing.Any
from mirrored.compat.v1.drawn_calls import exp as exp
from mirrored.compat.v1.drawn_calls import expm1 as expm1
from mirrored.compat.v1.drawn_calls import floor as floor
from mirrored.compat.v1.drawn_calls import floordiv as floordiv
from mirrored.compat.v1.drawn_calls import floormod as floormod
from mirrored.compat.v1.drawn_calls import greater as greater
from mirrored.compat.v1.drawn_calls import greater_equal as greater_equal
from mirrored.compat.v1.special import in_top_k as in_top_k
from mirrored.compat.v1.drawn_calls import invert_permutation as invert_permutation
from mirrored.compat.v1.drawn_calls import is_finite as is_finite
from mirrored.compat.v1.drawn_calls import is_inf as is_inf
from mirrored.compat.v1.drawn_calls import is_nan as is_nan
from mirrored.compat.v1.drawn_calls import is_non_decreasing as is_non_decreasing
from mirrored.compat.v1.drawn_calls import is_strictly_increasing as is_strictly_increasing
l2_normalize: _typing.Any
from mirrored.compat.v1.drawn_calls import lbeta as lbeta
from mirrored.compat.v1.drawn_calls import less as less
from mirrored.compat.v1.drawn_calls import less_equal as less_equal
from mirrored.compat.v1.drawn_calls import lgamma as lgamma
from mirrored.compat.v1.drawn_calls import log as log
from mirrored.compat.v1.drawn_calls import log1p as log1p
from mirrored.compat.v1.drawn_calls import log_sigmoid as log_sigmoid
log_softmax: _typing.Any
from mirrored.compat.v1.drawn_calls import logical_and as logical_and
from mirrored.compat.v1.drawn_calls import logical_not as logical_not
from mirrored.compat.v1.drawn_calls import logical_or as logical_or
from mirrored.compat.v1.drawn_calls import logical_xor as logical_xor
from mirrored.compat.v1.drawn_calls import maximum as maximum
from mirrored.compat.v1.drawn_calls import minimum as minimum
from mirrored.compat.v1.drawn_calls import mod as mod
from mirrored.compat.v1.drawn_calls import multiply as multiply
multiply_no_nan: _typing.Any
ndtri: _typing.Any
from mirrored.compat.v1.drawn_calls import negative as negative
nextafter: _typing.Any
from mirrored.compat.v1.drawn_calls import not_equal as not_equal
polyval: _typing.Any
from mirrored.compat.v1.drawn_calls import pow as pow
from mirrored.compat.v1.drawn_calls import reciprocal as reciprocal
reciprocal_no_nan: _typing.Any
from mirrored.compat.v1.drawn_calls import reduce_all as reduce_all
from mirrored.compat.v1.drawn_calls import reduce_any as reduce_any
reduce_euclidean_norm: _typing.Any
from mirrored.compat.v1.drawn_calls import reduce_logsumexp as reduce_logsumexp
from mirrored.compat.v1.drawn_calls import reduce_max as reduce_max
from mirrored.compat.v1.drawn_calls import reduce_mean as reduce_mean
from mirrored.compat.v1.drawn_calls import reduce_min as reduce_min
from mirrored.compat.v1.drawn_calls import reduce_prod as reduce_prod
reduce_std: _typing.Any
from mirrored.compat.v1.drawn_calls import reduce_sum as reduce_sum
reduce_variance: _typing.Any
from mirrored.compat.v1.drawn_calls import rint as rint
from mirrored.compat.v1.drawn_calls import round as round
from mirrored.compat.v1.drawn_calls import rsqrt as rsqrt
from mirrored.compat.v1.drawn_calls import scalar_mul as scalar_mul
from mirrored.compat.v1.drawn_calls import segment_max as segment_max
from mirrored.compat.v1.drawn_calls import segment_mean as segment_mean
from mirrored.compat.v1.drawn_calls import segment_min as segment_min
from mirrored.compat.v1.drawn_calls import segment_prod as segment_prod
from mirrored.compat.v1.drawn_calls import segment_sum as segment_sum
from mirrored.compat.v1.drawn_calls import sigmoid as sigmoid
from mirrored.compat.v1.drawn_calls import sign as sign
from mirrored.compat.v1.drawn_calls import sin as sin
from mirrored.compat.v1.drawn_calls import sinh as sinh
softmax: _typing.Any
softplus: _typing.Any
softsign: _typing.Any
from mirrored.compat.v1.drawn_calls import sqrt as sqrt
from mirrored.compat.v1.drawn_calls import square as square
from mirrored.compat.v1.drawn_calls import squared_difference as squared_difference
from mirrored.compat.v1.drawn_calls import subtract as subtract
from mirrored.compat.v1.drawn_calls import tan as tan
from mirrored.compat.v1.drawn_calls import tanh as tanh
top_k: _typing.Any
from mirrored.compat.v1.drawn_calls import truediv as truediv
from mirrored.compat.v1.drawn_calls import unsorted_segment_max as unsorted_segment_max
from mirrored.compat.v1.drawn_calls import unsorted_segment_mean as unsorted_segment_mean
from mirrored.compat.v1.drawn_calls import unsorted_segment_min as unsorted_segment_min
from mirrored.compat.v1.drawn_calls import unsorted_segment_prod as unsorted_segment_prod
from mirrored.compat.v1.drawn_calls import unsorted_segment_sqrt_n as unsorted_segment_sqrt_n
from mirrored.compat.v1.drawn_calls import unsorted_segment_sum as unsorted_segment_sum
xdivy: _typing.Any
xlog1py: _typing.Any
xlogy: _typing.Any
zero_fraction: _typing.Any
