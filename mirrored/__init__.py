"""Multi-GPU data-parallel training with TensorFlow's MirroredStrategy programming model.

Import it ``as mr``. Every public name is listed here, or in a module that is.
"""

import typing as _typing
from functools import partial as _partial
from importlib import import_module as _import_module

from mirrored import autodiff as autodiff
from mirrored import data as data
from mirrored import distribute as distribute
from mirrored import errors as errors
from mirrored import keras as keras
from mirrored import layers as layers
from mirrored import optim as optim
from mirrored import version as version
from mirrored._absent import public_module as _public_module
from mirrored._name_scope import get_current_name_scope as get_current_name_scope
from mirrored._name_scope import name_scope as name_scope
from mirrored.autodiff import GradientTape as GradientTape
from mirrored.autodiff.tape import UnconnectedGradients as UnconnectedGradients
from mirrored.autodiff.tape import gradients as gradients
from mirrored.devices import device as device
from mirrored.distribute import MirroredStrategy as MirroredStrategy
from mirrored.ops import IndexedSlices as IndexedSlices
from mirrored.ops import Tensor as Tensor
from mirrored.ops import TensorShape as TensorShape
from mirrored.ops import TensorSpec as TensorSpec
from mirrored.ops import abs as abs
from mirrored.ops import add as add
from mirrored.ops import add_n as add_n
from mirrored.ops import argmax as argmax
from mirrored.ops import argmin as argmin
from mirrored.ops import as_dtype as as_dtype
from mirrored.ops import bool_ as bool_
from mirrored.ops import broadcast_to as broadcast_to
from mirrored.ops import cast as cast
from mirrored.ops import clip_by_global_norm as clip_by_global_norm
from mirrored.ops import clip_by_norm as clip_by_norm
from mirrored.ops import clip_by_value as clip_by_value
from mirrored.ops import concat as concat
from mirrored.ops import constant as constant
from mirrored.ops import convert_to_tensor as convert_to_tensor
from mirrored.ops import divide as divide
from mirrored.ops import equal as equal
from mirrored.ops import exp as exp
from mirrored.ops import expand_dims as expand_dims
from mirrored.ops import fill as fill
from mirrored.ops import float16 as float16
from mirrored.ops import float32 as float32
from mirrored.ops import float64 as float64
from mirrored.ops import greater as greater
from mirrored.ops import greater_equal as greater_equal
from mirrored.ops import identity as identity
from mirrored.ops import int8 as int8
from mirrored.ops import int16 as int16
from mirrored.ops import int32 as int32
from mirrored.ops import int64 as int64
from mirrored.ops import less as less
from mirrored.ops import less_equal as less_equal
from mirrored.ops import log as log
from mirrored.ops import logical_and as logical_and
from mirrored.ops import logical_not as logical_not
from mirrored.ops import logical_or as logical_or
from mirrored.ops import matmul as matmul
from mirrored.ops import maximum as maximum
from mirrored.ops import minimum as minimum
from mirrored.ops import multiply as multiply
from mirrored.ops import negative as negative
from mirrored.ops import not_equal as not_equal
from mirrored.ops import ones as ones
from mirrored.ops import ones_like as ones_like
from mirrored.ops import pow as pow
from mirrored.ops import reduce_all as reduce_all
from mirrored.ops import reduce_any as reduce_any
from mirrored.ops import reduce_logsumexp as reduce_logsumexp
from mirrored.ops import reduce_max as reduce_max
from mirrored.ops import reduce_mean as reduce_mean
from mirrored.ops import reduce_min as reduce_min
from mirrored.ops import reduce_prod as reduce_prod
from mirrored.ops import reduce_sum as reduce_sum
from mirrored.ops import reshape as reshape
from mirrored.ops import scalar_mul as scalar_mul
from mirrored.ops import sigmoid as sigmoid
from mirrored.ops import sign as sign
from mirrored.ops import slice as slice
from mirrored.ops import sqrt as sqrt
from mirrored.ops import square as square
from mirrored.ops import squeeze as squeeze
from mirrored.ops import stop_gradient as stop_gradient
from mirrored.ops import strided_slice as strided_slice
from mirrored.ops import subtract as subtract
from mirrored.ops import tanh as tanh
from mirrored.ops import transpose as transpose
from mirrored.ops import uint8 as uint8
from mirrored.ops import uint16 as uint16
from mirrored.ops import uint32 as uint32
from mirrored.ops import uint64 as uint64
from mirrored.ops import where as where
from mirrored.ops import zeros as zeros
from mirrored.ops import zeros_like as zeros_like
from mirrored.ops.spec import DType as _DType
from mirrored.ops.spec import bfloat16 as _bfloat16
from mirrored.program import function as function
from mirrored.training import Model as Model
from mirrored.training import Sequential as Sequential
from mirrored.variables import Module as Module
from mirrored.variables import Variable as Variable
from mirrored.variables import VariableAggregation as VariableAggregation
from mirrored.variables import VariableSynchronization as VariableSynchronization
from mirrored.variables import variable_creator_scope as variable_creator_scope

if _typing.TYPE_CHECKING:
    from mirrored import callbacks as callbacks
    from mirrored import config as config
    from mirrored import debugging as debugging
    from mirrored import dtypes as dtypes
    from mirrored import experimental as experimental
    from mirrored import initializers as initializers
    from mirrored import io as io
    from mirrored import linalg as linalg
    from mirrored import losses as losses
    from mirrored import math as math
    from mirrored import metrics as metrics
    from mirrored import nest as nest
    from mirrored import nn as nn
    from mirrored import optimizers as optimizers
    from mirrored import profiler as profiler
    from mirrored import random as random
    from mirrored import summary as summary
    from mirrored import test as test
    from mirrored import train as train
    from mirrored.autodiff.custom_gradients import custom_gradient as custom_gradient
    from mirrored.autodiff.custom_gradients import grad_pass_through as grad_pass_through
    from mirrored.autodiff.custom_gradients import recompute_grad as recompute_grad
    from mirrored.compat.v1.graph import Graph as Graph
    from mirrored.control_flow.conditions import case as case
    from mirrored.control_flow.conditions import cond as cond
    from mirrored.control_flow.conditions import switch_case as switch_case
    from mirrored.control_flow.loops import while_loop as while_loop
    from mirrored.control_flow.mapping import foldl as foldl
    from mirrored.control_flow.mapping import foldr as foldr
    from mirrored.control_flow.mapping import map_fn as map_fn
    from mirrored.control_flow.mapping import scan as scan
    from mirrored.control_flow.mapping import vectorized_map as vectorized_map
    from mirrored.control_flow.order import control_dependencies as control_dependencies
    from mirrored.control_flow.order import group as group
    from mirrored.control_flow.order import identity_n as identity_n
    from mirrored.control_flow.order import no_op as no_op
    from mirrored.control_flow.recording import executing_eagerly as executing_eagerly
    from mirrored.control_flow.recording import get_static_value as get_static_value
    from mirrored.control_flow.recording import init_scope as init_scope
    from mirrored.control_flow.recording import is_symbolic_tensor as is_symbolic_tensor
    from mirrored.control_flow.recording import is_tensor as is_tensor
    from mirrored.ops import Assert as Assert
    from mirrored.ops import acos as acos
    from mirrored.ops import acosh as acosh
    from mirrored.ops import argsort as argsort
    from mirrored.ops import asin as asin
    from mirrored.ops import asinh as asinh
    from mirrored.ops import assert_equal as assert_equal
    from mirrored.ops import assert_greater as assert_greater
    from mirrored.ops import assert_less as assert_less
    from mirrored.ops import assert_rank as assert_rank
    from mirrored.ops import atan as atan
    from mirrored.ops import atan2 as atan2
    from mirrored.ops import atanh as atanh
    from mirrored.ops import boolean_mask as boolean_mask
    from mirrored.ops import cos as cos
    from mirrored.ops import cosh as cosh
    from mirrored.ops import cumsum as cumsum
    from mirrored.ops import dynamic_partition as dynamic_partition
    from mirrored.ops import dynamic_stitch as dynamic_stitch
    from mirrored.ops import einsum as einsum
    from mirrored.ops import ensure_shape as ensure_shape
    from mirrored.ops import eye as eye
    from mirrored.ops import floor as floor
    from mirrored.ops import gather as gather
    from mirrored.ops import gather_nd as gather_nd
    from mirrored.ops import histogram_fixed_width as histogram_fixed_width
    from mirrored.ops import histogram_fixed_width_bins as histogram_fixed_width_bins
    from mirrored.ops import linspace as linspace
    from mirrored.ops import meshgrid as meshgrid
    from mirrored.ops import norm as norm
    from mirrored.ops import numpy_function as numpy_function
    from mirrored.ops import one_hot as one_hot
    from mirrored.ops import pad as pad
    from mirrored.ops import print as print
    from mirrored.ops import py_function as py_function
    from mirrored.ops import range as range
    from mirrored.ops import rank as rank
    from mirrored.ops import repeat as repeat
    from mirrored.ops import reverse as reverse
    from mirrored.ops import reverse_sequence as reverse_sequence
    from mirrored.ops import roll as roll
    from mirrored.ops import round as round
    from mirrored.ops import scatter_nd as scatter_nd
    from mirrored.ops import searchsorted as searchsorted
    from mirrored.ops import sequence_mask as sequence_mask
    from mirrored.ops import shape as shape
    from mirrored.ops import sin as sin
    from mirrored.ops import sinh as sinh
    from mirrored.ops import size as size
    from mirrored.ops import sort as sort
    from mirrored.ops import split as split
    from mirrored.ops import stack as stack
    from mirrored.ops import tan as tan
    from mirrored.ops import tensor_scatter_nd_add as tensor_scatter_nd_add
    from mirrored.ops import tensor_scatter_nd_max as tensor_scatter_nd_max
    from mirrored.ops import tensor_scatter_nd_min as tensor_scatter_nd_min
    from mirrored.ops import tensor_scatter_nd_sub as tensor_scatter_nd_sub
    from mirrored.ops import tensor_scatter_nd_update as tensor_scatter_nd_update
    from mirrored.ops import tensordot as tensordot
    from mirrored.ops import tile as tile
    from mirrored.ops import timestamp as timestamp
    from mirrored.ops import unique as unique
    from mirrored.ops import unique_with_counts as unique_with_counts
    from mirrored.ops import unstack as unstack

__all__ = [
    "Assert",
    "GradientTape",
    "Graph",
    "IndexedSlices",
    "MirroredStrategy",
    "Model",
    "Module",
    "Sequential",
    "Tensor",
    "TensorShape",
    "TensorSpec",
    "UnconnectedGradients",
    "Variable",
    "VariableAggregation",
    "VariableSynchronization",
    "acos",
    "acosh",
    "add",
    "add_n",
    "argmax",
    "argmin",
    "argsort",
    "as_dtype",
    "asin",
    "asinh",
    "assert_equal",
    "assert_greater",
    "assert_less",
    "assert_rank",
    "atan",
    "atan2",
    "atanh",
    "autodiff",
    "bool_",
    "boolean_mask",
    "broadcast_to",
    "callbacks",
    "case",
    "cast",
    "clip_by_global_norm",
    "clip_by_norm",
    "clip_by_value",
    "concat",
    "cond",
    "config",
    "constant",
    "control_dependencies",
    "convert_to_tensor",
    "cos",
    "cosh",
    "cumsum",
    "custom_gradient",
    "data",
    "debugging",
    "device",
    "distribute",
    "divide",
    "double",
    "dtypes",
    "dynamic_partition",
    "dynamic_stitch",
    "einsum",
    "ensure_shape",
    "equal",
    "errors",
    "executing_eagerly",
    "exp",
    "expand_dims",
    "experimental",
    "eye",
    "fill",
    "float16",
    "float32",
    "float64",
    "floor",
    "foldl",
    "foldr",
    "function",
    "gather",
    "gather_nd",
    "get_current_name_scope",
    "get_static_value",
    "grad_pass_through",
    "gradients",
    "greater",
    "greater_equal",
    "group",
    "half",
    "histogram_fixed_width",
    "histogram_fixed_width_bins",
    "identity",
    "identity_n",
    "init_scope",
    "initializers",
    "int8",
    "int16",
    "int32",
    "int64",
    "io",
    "is_symbolic_tensor",
    "is_tensor",
    "keras",
    "layers",
    "less",
    "less_equal",
    "linalg",
    "linspace",
    "log",
    "logical_and",
    "logical_not",
    "logical_or",
    "losses",
    "map_fn",
    "math",
    "matmul",
    "maximum",
    "meshgrid",
    "metrics",
    "minimum",
    "multiply",
    "name_scope",
    "negative",
    "nest",
    "newaxis",
    "nn",
    "no_op",
    "norm",
    "not_equal",
    "numpy_function",
    "one_hot",
    "ones",
    "ones_like",
    "optim",
    "optimizers",
    "pad",
    "profiler",
    "py_function",
    "random",
    "rank",
    "recompute_grad",
    "reduce_all",
    "reduce_any",
    "reduce_logsumexp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "repeat",
    "reshape",
    "reverse",
    "reverse_sequence",
    "roll",
    "scalar_mul",
    "scan",
    "scatter_nd",
    "searchsorted",
    "sequence_mask",
    "shape",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "size",
    "sort",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "stop_gradient",
    "strided_slice",
    "subtract",
    "summary",
    "switch_case",
    "tan",
    "tanh",
    "tensor_scatter_nd_add",
    "tensor_scatter_nd_max",
    "tensor_scatter_nd_min",
    "tensor_scatter_nd_sub",
    "tensor_scatter_nd_update",
    "tensordot",
    "test",
    "tile",
    "timestamp",
    "train",
    "transpose",
    "truediv",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unique",
    "unique_with_counts",
    "unstack",
    "variable_creator_scope",
    "vectorized_map",
    "version",
    "where",
    "while_loop",
    "zeros",
    "zeros_like",
]

# Other names that TensorFlow has for what is above.
bool = bool_
double = float64
half = float16
newaxis = None
truediv = divide

__version__ = version.VERSION

# There when it is first asked for: another package defines it.
bfloat16: _DType
# TensorFlow 1's programs, which nobody else loads.
compat: _typing.Any

_LATE = {
    "mirrored": (
        "callbacks config debugging dtypes experimental initializers io linalg losses math metrics "
        "nest nn optimizers profiler random summary test train"
    ),
    "mirrored.compat.v1.graph": "Graph",
    "mirrored.autodiff.custom_gradients": "custom_gradient grad_pass_through recompute_grad",
    "mirrored.control_flow.conditions": "case cond switch_case",
    "mirrored.control_flow.loops": "while_loop",
    "mirrored.control_flow.mapping": "foldl foldr map_fn scan vectorized_map",
    "mirrored.control_flow.order": "control_dependencies group identity_n no_op",
    "mirrored.control_flow.recording": (
        "executing_eagerly get_static_value init_scope is_symbolic_tensor is_tensor"
    ),
    "mirrored.ops": (
        "Assert acos acosh argsort asin asinh assert_equal assert_greater assert_less assert_rank "
        "atan atan2 atanh boolean_mask cos cosh cumsum dynamic_partition dynamic_stitch einsum "
        "ensure_shape eye floor gather gather_nd histogram_fixed_width histogram_fixed_width_bins "
        "linspace meshgrid norm numpy_function one_hot pad print py_function range rank repeat "
        "reverse reverse_sequence roll round scatter_nd searchsorted sequence_mask shape sin sinh "
        "size sort split stack tan tensor_scatter_nd_add tensor_scatter_nd_max "
        "tensor_scatter_nd_min tensor_scatter_nd_sub tensor_scatter_nd_update tensordot tile "
        "timestamp unique unique_with_counts unstack"
    ),
}
_public_module(
    "tf",
    __name__,
    _LATE,
    unlisted=("autodiff",),  # All that it has is listed here.
    bfloat16=_bfloat16,
    compat=_partial(_import_module, "mirrored.compat"),
)
