"""The maths: tensors, and each op once, with its kernel, gradient and devices.

Everything above computes with the functions that are named here. Their parameters are TensorFlow's,
in its order; `name` is accepted for compatibility, since eager ops have no name.
"""

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
from mirrored.ops.cross_entropy import (
    sigmoid_cross_entropy_with_logits as sigmoid_cross_entropy_with_logits,
)
from mirrored.ops.cross_entropy import (
    softmax_cross_entropy_with_logits as softmax_cross_entropy_with_logits,
)
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
from mirrored.ops.host_bfloat16 import autocast as autocast
from mirrored.ops.host_bfloat16 import autocast_dtype as autocast_dtype
from mirrored.ops.host_function import numpy_function as numpy_function
from mirrored.ops.host_tensor import transfer as transfer
from mirrored.ops.joining import pad as pad
from mirrored.ops.joining import reverse as reverse
from mirrored.ops.joining import roll as roll
from mirrored.ops.joining import split as split
from mirrored.ops.joining import stack as stack
from mirrored.ops.joining import tile as tile
from mirrored.ops.joining import unstack as unstack
from mirrored.ops.linalg import matmul as matmul
from mirrored.ops.op import OPS as OPS
from mirrored.ops.op import Op as Op
from mirrored.ops.op import OpCall as OpCall
from mirrored.ops.op import register as register
from mirrored.ops.powers import exp as exp
from mirrored.ops.powers import expm1 as expm1
from mirrored.ops.powers import log as log
from mirrored.ops.powers import log1p as log1p
from mirrored.ops.powers import pow as pow
from mirrored.ops.powers import reciprocal as reciprocal
from mirrored.ops.powers import rsqrt as rsqrt
from mirrored.ops.powers import sqrt as sqrt
from mirrored.ops.powers import square as square
from mirrored.ops.powers import squared_difference as squared_difference
from mirrored.ops.random import SeedGenerator as SeedGenerator
from mirrored.ops.random import ShardPosition as ShardPosition
from mirrored.ops.random import random_normal as random_normal
from mirrored.ops.random import random_uniform as random_uniform
from mirrored.ops.random import set_seed as set_seed
from mirrored.ops.random import shard_position as shard_position
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
from mirrored.ops.reduction import argmax as argmax
from mirrored.ops.reduction import argmin as argmin
from mirrored.ops.reduction import reduce_max as reduce_max
from mirrored.ops.reduction import reduce_mean as reduce_mean
from mirrored.ops.reduction import reduce_min as reduce_min
from mirrored.ops.reduction import reduce_prod as reduce_prod
from mirrored.ops.reduction import reduce_sum as reduce_sum
from mirrored.ops.rounding import ceil as ceil
from mirrored.ops.rounding import floor as floor
from mirrored.ops.rounding import floordiv as floordiv
from mirrored.ops.rounding import floormod as floormod
from mirrored.ops.rounding import rint as rint
from mirrored.ops.rounding import round as round
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
from mirrored.ops.spec import float32 as float32
from mirrored.ops.spec import float64 as float64
from mirrored.ops.spec import floatx as floatx
from mirrored.ops.spec import int32 as int32
from mirrored.ops.spec import int64 as int64
from mirrored.ops.spec import set_floatx as set_floatx
from mirrored.ops.spec import uint8 as uint8
from mirrored.ops.statistics import count_nonzero as count_nonzero
from mirrored.ops.statistics import moments as moments
from mirrored.ops.statistics import reduce_std as reduce_std
from mirrored.ops.statistics import reduce_variance as reduce_variance
from mirrored.ops.tensor import Tensor as Tensor
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
