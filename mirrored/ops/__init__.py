"""The maths: tensors, and each op once, with its kernel, gradient and devices.

Everything above computes with the functions that are named here. Their parameters are TensorFlow's,
in its order; `name` is accepted for compatibility, since eager ops have no name.
"""

import typing as _typing

from mirrored._late import late_module as _late_module
from mirrored.ops import dispatch as _dispatch  # noqa: F401  Ops that are called run by it.
from mirrored.ops.activations import bias_add as bias_add
from mirrored.ops.activations import logits_of as logits_of
from mirrored.ops.activations import relu as relu
from mirrored.ops.activations import sigmoid as sigmoid
from mirrored.ops.activations import softplus as softplus
from mirrored.ops.activations import tanh as tanh
from mirrored.ops.add_n import accumulate_n as accumulate_n
from mirrored.ops.add_n import add_n as add_n
from mirrored.ops.clipping import clip_by_global_norm as clip_by_global_norm
from mirrored.ops.clipping import clip_by_norm as clip_by_norm
from mirrored.ops.clipping import clip_by_value as clip_by_value
from mirrored.ops.clipping import global_norm as global_norm
from mirrored.ops.clipping import l2_normalize as l2_normalize
from mirrored.ops.comparison import equal as equal
from mirrored.ops.comparison import greater as greater
from mirrored.ops.comparison import greater_equal as greater_equal
from mirrored.ops.comparison import is_finite as is_finite
from mirrored.ops.comparison import is_inf as is_inf
from mirrored.ops.comparison import is_nan as is_nan
from mirrored.ops.comparison import less as less
from mirrored.ops.comparison import less_equal as less_equal
from mirrored.ops.comparison import logical_and as logical_and
from mirrored.ops.comparison import logical_not as logical_not
from mirrored.ops.comparison import logical_or as logical_or
from mirrored.ops.comparison import logical_xor as logical_xor
from mirrored.ops.comparison import not_equal as not_equal
from mirrored.ops.comparison import reduce_all as reduce_all
from mirrored.ops.comparison import reduce_any as reduce_any
from mirrored.ops.conversion import constant as constant
from mirrored.ops.conversion import convert_to_tensor as convert_to_tensor
from mirrored.ops.creation import fill as fill
from mirrored.ops.creation import ones as ones
from mirrored.ops.creation import ones_like as ones_like
from mirrored.ops.creation import zeros as zeros
from mirrored.ops.creation import zeros_like as zeros_like
from mirrored.ops.cross_entropy import log_poisson_loss as log_poisson_loss
from mirrored.ops.cross_entropy import (
    sigmoid_cross_entropy_with_logits as sigmoid_cross_entropy_with_logits,
)
from mirrored.ops.cross_entropy import (
    softmax_cross_entropy_with_logits as softmax_cross_entropy_with_logits,
)
from mirrored.ops.cross_entropy import (
    weighted_cross_entropy_with_logits as weighted_cross_entropy_with_logits,
)
from mirrored.ops.dropout import dropout as dropout
from mirrored.ops.dropout import dropped as dropped
from mirrored.ops.dropout import general_dropout as general_dropout
from mirrored.ops.dropout import stateless_dropout as stateless_dropout
from mirrored.ops.elementwise import abs as abs
from mirrored.ops.elementwise import add as add
from mirrored.ops.elementwise import divide as divide
from mirrored.ops.elementwise import maximum as maximum
from mirrored.ops.elementwise import minimum as minimum
from mirrored.ops.elementwise import multiply as multiply
from mirrored.ops.elementwise import negative as negative
from mirrored.ops.elementwise import scalar_mul as scalar_mul
from mirrored.ops.elementwise import sign as sign
from mirrored.ops.elementwise import subtract as subtract
from mirrored.ops.host_tensor import transfer as transfer
from mirrored.ops.indexed_slices import IndexedSlices as IndexedSlices
from mirrored.ops.linalg import matmul as matmul
from mirrored.ops.narrow_floats import autocast as autocast
from mirrored.ops.narrow_floats import autocast_dtype as autocast_dtype
from mirrored.ops.op import OPS as OPS
from mirrored.ops.op import Op as Op
from mirrored.ops.op import OpCall as OpCall
from mirrored.ops.op import register as register
from mirrored.ops.powers import exp as exp
from mirrored.ops.powers import expm1 as expm1
from mirrored.ops.powers import log as log
from mirrored.ops.powers import log1p as log1p
from mirrored.ops.powers import polyval as polyval
from mirrored.ops.powers import pow as pow
from mirrored.ops.powers import reciprocal as reciprocal
from mirrored.ops.powers import rsqrt as rsqrt
from mirrored.ops.powers import sqrt as sqrt
from mirrored.ops.powers import square as square
from mirrored.ops.powers import squared_difference as squared_difference
from mirrored.ops.random import SeedGenerator as SeedGenerator
from mirrored.ops.random import random_normal as random_normal
from mirrored.ops.random import random_uniform as random_uniform
from mirrored.ops.random import set_seed as set_seed
from mirrored.ops.reduction import argmax as argmax
from mirrored.ops.reduction import argmin as argmin
from mirrored.ops.reduction import reduce_max as reduce_max
from mirrored.ops.reduction import reduce_mean as reduce_mean
from mirrored.ops.reduction import reduce_min as reduce_min
from mirrored.ops.reduction import reduce_prod as reduce_prod
from mirrored.ops.reduction import reduce_sum as reduce_sum
from mirrored.ops.rng_state import ShardPosition as ShardPosition
from mirrored.ops.rng_state import shard_position as shard_position
from mirrored.ops.select import where as where
from mirrored.ops.shaping import broadcast_to as broadcast_to
from mirrored.ops.shaping import cast as cast
from mirrored.ops.shaping import concat as concat
from mirrored.ops.shaping import expand_dims as expand_dims
from mirrored.ops.shaping import identity as identity
from mirrored.ops.shaping import reshape as reshape
from mirrored.ops.shaping import squeeze as squeeze
from mirrored.ops.shaping import stop_gradient as stop_gradient
from mirrored.ops.shaping import transpose as transpose
from mirrored.ops.slices import slice as slice
from mirrored.ops.slices import strided_slice as strided_slice
from mirrored.ops.softmax import log_softmax as log_softmax
from mirrored.ops.softmax import reduce_logsumexp as reduce_logsumexp
from mirrored.ops.softmax import softmax as softmax
from mirrored.ops.sparse_cross_entropy import (
    sparse_softmax_cross_entropy_with_logits as sparse_softmax_cross_entropy_with_logits,
)
from mirrored.ops.spec import TensorSpec as TensorSpec
from mirrored.ops.spec import as_dtype as as_dtype
from mirrored.ops.spec import bfloat16 as bfloat16
from mirrored.ops.spec import bool_ as bool_
from mirrored.ops.spec import float16 as float16
from mirrored.ops.spec import float32 as float32
from mirrored.ops.spec import float64 as float64
from mirrored.ops.spec import floatx as floatx
from mirrored.ops.spec import int8 as int8
from mirrored.ops.spec import int16 as int16
from mirrored.ops.spec import int32 as int32
from mirrored.ops.spec import int64 as int64
from mirrored.ops.spec import set_floatx as set_floatx
from mirrored.ops.spec import uint8 as uint8
from mirrored.ops.spec import uint16 as uint16
from mirrored.ops.spec import uint32 as uint32
from mirrored.ops.spec import uint64 as uint64
from mirrored.ops.tensor import Tensor as Tensor
from mirrored.ops.tensor_shape import TensorShape as TensorShape

if _typing.TYPE_CHECKING:
    from mirrored.ops.assertions import assert_equal as assert_equal
    from mirrored.ops.assertions import assert_greater as assert_greater
    from mirrored.ops.assertions import assert_greater_equal as assert_greater_equal
    from mirrored.ops.assertions import assert_less as assert_less
    from mirrored.ops.assertions import assert_less_equal as assert_less_equal
    from mirrored.ops.assertions import assert_near as assert_near
    from mirrored.ops.assertions import assert_negative as assert_negative
    from mirrored.ops.assertions import assert_non_negative as assert_non_negative
    from mirrored.ops.assertions import assert_non_positive as assert_non_positive
    from mirrored.ops.assertions import assert_none_equal as assert_none_equal
    from mirrored.ops.assertions import assert_positive as assert_positive
    from mirrored.ops.checks import Assert as Assert
    from mirrored.ops.checks import assert_all_finite as assert_all_finite
    from mirrored.ops.checks import check_numerics as check_numerics
    from mirrored.ops.contraction import einsum as einsum
    from mirrored.ops.diagonals import band_part as band_part
    from mirrored.ops.diagonals import diag as diag
    from mirrored.ops.diagonals import diag_part as diag_part
    from mirrored.ops.diagonals import set_diag as set_diag
    from mirrored.ops.diagonals import tensor_diag as tensor_diag
    from mirrored.ops.diagonals import tensor_diag_part as tensor_diag_part
    from mirrored.ops.diagonals import trace as trace
    from mirrored.ops.distinct import invert_permutation as invert_permutation
    from mirrored.ops.distinct import unique as unique
    from mirrored.ops.distinct import unique_with_counts as unique_with_counts
    from mirrored.ops.embedding import embedding_lookup as embedding_lookup
    from mirrored.ops.error_functions import erf as erf
    from mirrored.ops.error_functions import erfc as erfc
    from mirrored.ops.gamma_functions import digamma as digamma
    from mirrored.ops.gamma_functions import lbeta as lbeta
    from mirrored.ops.gamma_functions import lgamma as lgamma
    from mirrored.ops.gathering import gather as gather
    from mirrored.ops.gathering import gather_nd as gather_nd
    from mirrored.ops.histograms import bincount as bincount
    from mirrored.ops.histograms import confusion_matrix as confusion_matrix
    from mirrored.ops.histograms import histogram_fixed_width as histogram_fixed_width
    from mirrored.ops.histograms import histogram_fixed_width_bins as histogram_fixed_width_bins
    from mirrored.ops.host_function import numpy_function as numpy_function
    from mirrored.ops.host_function import py_function as py_function
    from mirrored.ops.host_function import timestamp as timestamp
    from mirrored.ops.joining import pad as pad
    from mirrored.ops.joining import reverse as reverse
    from mirrored.ops.joining import roll as roll
    from mirrored.ops.joining import split as split
    from mirrored.ops.joining import stack as stack
    from mirrored.ops.joining import tile as tile
    from mirrored.ops.joining import unstack as unstack
    from mirrored.ops.no_nan import divide_no_nan as divide_no_nan
    from mirrored.ops.no_nan import multiply_no_nan as multiply_no_nan
    from mirrored.ops.no_nan import reciprocal_no_nan as reciprocal_no_nan
    from mirrored.ops.no_nan import xdivy as xdivy
    from mirrored.ops.no_nan import xlog1py as xlog1py
    from mirrored.ops.no_nan import xlogy as xlogy
    from mirrored.ops.nonlinearities import crelu as crelu
    from mirrored.ops.nonlinearities import elu as elu
    from mirrored.ops.nonlinearities import gelu as gelu
    from mirrored.ops.nonlinearities import leaky_relu as leaky_relu
    from mirrored.ops.nonlinearities import log_sigmoid as log_sigmoid
    from mirrored.ops.nonlinearities import relu6 as relu6
    from mirrored.ops.nonlinearities import selu as selu
    from mirrored.ops.nonlinearities import silu as silu
    from mirrored.ops.nonlinearities import softsign as softsign
    from mirrored.ops.nonlinearities import swish as swish
    from mirrored.ops.normalization import batch_normalization as batch_normalization
    from mirrored.ops.normalization import normalize_moments as normalize_moments
    from mirrored.ops.norms import l2_loss as l2_loss
    from mirrored.ops.norms import norm as norm
    from mirrored.ops.norms import normalize as normalize
    from mirrored.ops.norms import reduce_euclidean_norm as reduce_euclidean_norm
    from mirrored.ops.partitioning import boolean_mask as boolean_mask
    from mirrored.ops.partitioning import dynamic_partition as dynamic_partition
    from mirrored.ops.partitioning import dynamic_stitch as dynamic_stitch
    from mirrored.ops.partitioning import repeat as repeat
    from mirrored.ops.printing import print as print
    from mirrored.ops.products import adjoint as adjoint
    from mirrored.ops.products import cross as cross
    from mirrored.ops.products import matrix_transpose as matrix_transpose
    from mirrored.ops.products import matvec as matvec
    from mirrored.ops.products import tensordot as tensordot
    from mirrored.ops.quantiles import erfcinv as erfcinv
    from mirrored.ops.quantiles import erfinv as erfinv
    from mirrored.ops.quantiles import ndtri as ndtri
    from mirrored.ops.ranges import ensure_shape as ensure_shape
    from mirrored.ops.ranges import eye as eye
    from mirrored.ops.ranges import linspace as linspace
    from mirrored.ops.ranges import meshgrid as meshgrid
    from mirrored.ops.ranges import one_hot as one_hot
    from mirrored.ops.ranges import range as range
    from mirrored.ops.ranges import rank as rank
    from mirrored.ops.ranges import sequence_mask as sequence_mask
    from mirrored.ops.ranges import shape as shape
    from mirrored.ops.ranges import size as size
    from mirrored.ops.rounding import ceil as ceil
    from mirrored.ops.rounding import floor as floor
    from mirrored.ops.rounding import floordiv as floordiv
    from mirrored.ops.rounding import floormod as floormod
    from mirrored.ops.rounding import nextafter as nextafter
    from mirrored.ops.rounding import rint as rint
    from mirrored.ops.rounding import round as round
    from mirrored.ops.scans import cumprod as cumprod
    from mirrored.ops.scans import cumsum as cumsum
    from mirrored.ops.scans import cumulative_logsumexp as cumulative_logsumexp
    from mirrored.ops.scattering_nd import scatter_nd as scatter_nd
    from mirrored.ops.scattering_nd import tensor_scatter_nd_add as tensor_scatter_nd_add
    from mirrored.ops.scattering_nd import tensor_scatter_nd_max as tensor_scatter_nd_max
    from mirrored.ops.scattering_nd import tensor_scatter_nd_min as tensor_scatter_nd_min
    from mirrored.ops.scattering_nd import tensor_scatter_nd_sub as tensor_scatter_nd_sub
    from mirrored.ops.scattering_nd import tensor_scatter_nd_update as tensor_scatter_nd_update
    from mirrored.ops.searching import searchsorted as searchsorted
    from mirrored.ops.segments import segment_max as segment_max
    from mirrored.ops.segments import segment_mean as segment_mean
    from mirrored.ops.segments import segment_min as segment_min
    from mirrored.ops.segments import segment_prod as segment_prod
    from mirrored.ops.segments import segment_sum as segment_sum
    from mirrored.ops.segments import unsorted_segment_max as unsorted_segment_max
    from mirrored.ops.segments import unsorted_segment_mean as unsorted_segment_mean
    from mirrored.ops.segments import unsorted_segment_min as unsorted_segment_min
    from mirrored.ops.segments import unsorted_segment_prod as unsorted_segment_prod
    from mirrored.ops.segments import unsorted_segment_sqrt_n as unsorted_segment_sqrt_n
    from mirrored.ops.segments import unsorted_segment_sum as unsorted_segment_sum
    from mirrored.ops.sequences import reverse_sequence as reverse_sequence
    from mirrored.ops.solving import cholesky as cholesky
    from mirrored.ops.solving import cholesky_solve as cholesky_solve
    from mirrored.ops.solving import det as det
    from mirrored.ops.solving import inv as inv
    from mirrored.ops.solving import logdet as logdet
    from mirrored.ops.solving import lstsq as lstsq
    from mirrored.ops.solving import slogdet as slogdet
    from mirrored.ops.solving import solve as solve
    from mirrored.ops.solving import triangular_solve as triangular_solve
    from mirrored.ops.sorting import argsort as argsort
    from mirrored.ops.sorting import in_top_k as in_top_k
    from mirrored.ops.sorting import is_non_decreasing as is_non_decreasing
    from mirrored.ops.sorting import is_strictly_increasing as is_strictly_increasing
    from mirrored.ops.sorting import sort as sort
    from mirrored.ops.sorting import top_k as top_k
    from mirrored.ops.spectra import eigh as eigh
    from mirrored.ops.spectra import eigvalsh as eigvalsh
    from mirrored.ops.spectra import matrix_rank as matrix_rank
    from mirrored.ops.spectra import pinv as pinv
    from mirrored.ops.spectra import qr as qr
    from mirrored.ops.spectra import svd as svd
    from mirrored.ops.static_assertions import assert_integer as assert_integer
    from mirrored.ops.static_assertions import assert_proper_iterable as assert_proper_iterable
    from mirrored.ops.static_assertions import assert_rank as assert_rank
    from mirrored.ops.static_assertions import assert_rank_at_least as assert_rank_at_least
    from mirrored.ops.static_assertions import assert_rank_in as assert_rank_in
    from mirrored.ops.static_assertions import assert_same_float_dtype as assert_same_float_dtype
    from mirrored.ops.static_assertions import assert_scalar as assert_scalar
    from mirrored.ops.static_assertions import assert_shapes as assert_shapes
    from mirrored.ops.static_assertions import assert_type as assert_type
    from mirrored.ops.static_assertions import is_numeric_tensor as is_numeric_tensor
    from mirrored.ops.statistics import count_nonzero as count_nonzero
    from mirrored.ops.statistics import moments as moments
    from mirrored.ops.statistics import reduce_std as reduce_std
    from mirrored.ops.statistics import reduce_variance as reduce_variance
    from mirrored.ops.statistics import sufficient_statistics as sufficient_statistics
    from mirrored.ops.statistics import weighted_moments as weighted_moments
    from mirrored.ops.statistics import zero_fraction as zero_fraction
    from mirrored.ops.trigonometry import acos as acos
    from mirrored.ops.trigonometry import acosh as acosh
    from mirrored.ops.trigonometry import asin as asin
    from mirrored.ops.trigonometry import asinh as asinh
    from mirrored.ops.trigonometry import atan as atan
    from mirrored.ops.trigonometry import atan2 as atan2
    from mirrored.ops.trigonometry import atanh as atanh
    from mirrored.ops.trigonometry import cos as cos
    from mirrored.ops.trigonometry import cosh as cosh
    from mirrored.ops.trigonometry import sin as sin
    from mirrored.ops.trigonometry import sinh as sinh
    from mirrored.ops.trigonometry import tan as tan

_LATE = {
    "mirrored.ops.assertions": (
        "assert_equal assert_greater assert_greater_equal assert_less assert_less_equal "
        "assert_near assert_negative assert_non_negative assert_non_positive assert_none_equal "
        "assert_positive"
    ),
    "mirrored.ops.checks": "Assert assert_all_finite check_numerics",
    "mirrored.ops.contraction": "einsum",
    "mirrored.ops.diagonals": (
        "band_part diag diag_part set_diag tensor_diag tensor_diag_part trace"
    ),
    "mirrored.ops.distinct": "invert_permutation unique unique_with_counts",
    "mirrored.ops.embedding": "embedding_lookup",
    "mirrored.ops.error_functions": "erf erfc",
    "mirrored.ops.gamma_functions": "digamma lbeta lgamma",
    "mirrored.ops.gathering": "gather gather_nd",
    "mirrored.ops.histograms": (
        "bincount confusion_matrix histogram_fixed_width histogram_fixed_width_bins"
    ),
    "mirrored.ops.host_function": "numpy_function py_function timestamp",
    "mirrored.ops.joining": "pad reverse roll split stack tile unstack",
    "mirrored.ops.no_nan": "divide_no_nan multiply_no_nan reciprocal_no_nan xdivy xlog1py xlogy",
    "mirrored.ops.nonlinearities": (
        "crelu elu gelu leaky_relu log_sigmoid relu6 selu silu softsign swish"
    ),
    "mirrored.ops.normalization": "batch_normalization normalize_moments",
    "mirrored.ops.norms": "l2_loss norm normalize reduce_euclidean_norm",
    "mirrored.ops.partitioning": "boolean_mask dynamic_partition dynamic_stitch repeat",
    "mirrored.ops.printing": "print",
    "mirrored.ops.products": "adjoint cross matrix_transpose matvec tensordot",
    "mirrored.ops.quantiles": "erfcinv erfinv ndtri",
    "mirrored.ops.ranges": (
        "ensure_shape eye linspace meshgrid one_hot range rank sequence_mask shape size"
    ),
    "mirrored.ops.rounding": "ceil floor floordiv floormod nextafter rint round",
    "mirrored.ops.scans": "cumprod cumsum cumulative_logsumexp",
    "mirrored.ops.scattering_nd": (
        "scatter_nd tensor_scatter_nd_add tensor_scatter_nd_max tensor_scatter_nd_min "
        "tensor_scatter_nd_sub tensor_scatter_nd_update"
    ),
    "mirrored.ops.searching": "searchsorted",
    "mirrored.ops.segments": (
        "segment_max segment_mean segment_min segment_prod segment_sum unsorted_segment_max "
        "unsorted_segment_mean unsorted_segment_min unsorted_segment_prod unsorted_segment_sqrt_n "
        "unsorted_segment_sum"
    ),
    "mirrored.ops.sequences": "reverse_sequence",
    "mirrored.ops.solving": (
        "cholesky cholesky_solve det inv logdet lstsq slogdet solve triangular_solve"
    ),
    "mirrored.ops.sorting": "argsort in_top_k is_non_decreasing is_strictly_increasing sort top_k",
    "mirrored.ops.spectra": "eigh eigvalsh matrix_rank pinv qr svd",
    "mirrored.ops.static_assertions": (
        "assert_integer assert_proper_iterable assert_rank assert_rank_at_least assert_rank_in "
        "assert_same_float_dtype assert_scalar assert_shapes assert_type is_numeric_tensor"
    ),
    "mirrored.ops.statistics": (
        "count_nonzero moments reduce_std reduce_variance sufficient_statistics weighted_moments "
        "zero_fraction"
    ),
    "mirrored.ops.trigonometry": "acos acosh asin asinh atan atan2 atanh cos cosh sin sinh tan",
}
_late_module(__name__, _LATE)
