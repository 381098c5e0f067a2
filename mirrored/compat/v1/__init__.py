"""TensorFlow 1's names: `import mirrored.compat.v1 as tf` lets its programs run.

They draw graphs, which sessions run. Names outside of this package are eager until
`disable_eager_execution` is called.
"""

import typing as _typing

from mirrored import config as config
from mirrored import dtypes as dtypes
from mirrored import errors as errors
from mirrored import test as test
from mirrored.compat.v1 import app as app
from mirrored.compat.v1 import contrib as contrib
from mirrored.compat.v1 import data as data
from mirrored.compat.v1 import debugging as debugging
from mirrored.compat.v1 import flags as flags
from mirrored.compat.v1 import gfile as gfile
from mirrored.compat.v1 import initializers as initializers
from mirrored.compat.v1 import layers as layers
from mirrored.compat.v1 import linalg as linalg
from mirrored.compat.v1 import logging as logging
from mirrored.compat.v1 import losses as losses
from mirrored.compat.v1 import math as math
from mirrored.compat.v1 import metrics as metrics
from mirrored.compat.v1 import nn as nn
from mirrored.compat.v1 import random as random
from mirrored.compat.v1 import summary as summary
from mirrored.compat.v1 import train as train
from mirrored.compat.v1.assertions import ASSERTIONS as _ASSERTIONS
from mirrored.compat.v1.assertions import Assert as Assert
from mirrored.compat.v1.assertions import assertion as _assertion
from mirrored.compat.v1.calls import ROWS as _ROWS
from mirrored.compat.v1.calls import named_call as _named_call
from mirrored.compat.v1.control_flow import case as case
from mirrored.compat.v1.control_flow import cond as cond
from mirrored.compat.v1.control_flow import while_loop as while_loop
from mirrored.compat.v1.device_scopes import NodeDef as NodeDef
from mirrored.compat.v1.device_scopes import colocate_with as colocate_with
from mirrored.compat.v1.device_scopes import device as device
from mirrored.compat.v1.device_spec import DeviceSpec as DeviceSpec
from mirrored.compat.v1.draws import clip_by_value as clip_by_value
from mirrored.compat.v1.draws import random_normal as random_normal
from mirrored.compat.v1.draws import random_uniform as random_uniform
from mirrored.compat.v1.draws import truncated_normal as truncated_normal
from mirrored.compat.v1.eager_execution import disable_control_flow_v2 as disable_control_flow_v2
from mirrored.compat.v1.eager_execution import disable_eager_execution as disable_eager_execution
from mirrored.compat.v1.eager_execution import (
    disable_resource_variables as disable_resource_variables,
)
from mirrored.compat.v1.eager_execution import disable_tensor_equality as disable_tensor_equality
from mirrored.compat.v1.eager_execution import disable_v2_behavior as disable_v2_behavior
from mirrored.compat.v1.eager_execution import enable_eager_execution as enable_eager_execution
from mirrored.compat.v1.eager_execution import enable_v2_behavior as enable_v2_behavior
from mirrored.compat.v1.eager_execution import executing_eagerly as executing_eagerly
from mirrored.compat.v1.elements import Operation as Operation
from mirrored.compat.v1.elements import Tensor as Tensor
from mirrored.compat.v1.functional import foldl as foldl
from mirrored.compat.v1.functional import foldr as foldr
from mirrored.compat.v1.functional import map_fn as map_fn
from mirrored.compat.v1.functional import scan as scan
from mirrored.compat.v1.gradients import AggregationMethod as AggregationMethod
from mirrored.compat.v1.gradients import gradients as gradients
from mirrored.compat.v1.graph import Graph as Graph
from mirrored.compat.v1.graph import get_default_graph as get_default_graph
from mirrored.compat.v1.graph import reset_default_graph as reset_default_graph
from mirrored.compat.v1.groups import global_variables as global_variables
from mirrored.compat.v1.groups import global_variables_initializer as global_variables_initializer
from mirrored.compat.v1.groups import group as group
from mirrored.compat.v1.groups import is_variable_initialized as is_variable_initialized
from mirrored.compat.v1.groups import local_variables as local_variables
from mirrored.compat.v1.groups import local_variables_initializer as local_variables_initializer
from mirrored.compat.v1.groups import moving_average_variables as moving_average_variables
from mirrored.compat.v1.groups import no_op as no_op
from mirrored.compat.v1.groups import (
    report_uninitialized_variables as report_uninitialized_variables,
)
from mirrored.compat.v1.groups import trainable_variables as trainable_variables
from mirrored.compat.v1.groups import tuple_ as _tuple
from mirrored.compat.v1.groups import variables_initializer as variables_initializer
from mirrored.compat.v1.host_calls import Print as Print
from mirrored.compat.v1.host_calls import py_func as py_func
from mirrored.compat.v1.initializers import constant_initializer as constant_initializer
from mirrored.compat.v1.initializers import glorot_normal_initializer as glorot_normal_initializer
from mirrored.compat.v1.initializers import glorot_uniform_initializer as glorot_uniform_initializer
from mirrored.compat.v1.initializers import ones_initializer as ones_initializer
from mirrored.compat.v1.initializers import random_normal_initializer as random_normal_initializer
from mirrored.compat.v1.initializers import random_uniform_initializer as random_uniform_initializer
from mirrored.compat.v1.initializers import (
    truncated_normal_initializer as truncated_normal_initializer,
)
from mirrored.compat.v1.initializers import (
    variance_scaling_initializer as variance_scaling_initializer,
)
from mirrored.compat.v1.initializers import zeros_initializer as zeros_initializer
from mirrored.compat.v1.masks import boolean_mask as boolean_mask
from mirrored.compat.v1.masks import dynamic_partition as dynamic_partition
from mirrored.compat.v1.masks import unique as unique
from mirrored.compat.v1.masks import unique_with_counts as unique_with_counts
from mirrored.compat.v1.messages import ConfigProto as ConfigProto
from mirrored.compat.v1.messages import GPUOptions as GPUOptions
from mirrored.compat.v1.run_options import RunMetadata as RunMetadata
from mirrored.compat.v1.run_options import RunOptions as RunOptions
from mirrored.compat.v1.scatters import scatter_add as scatter_add
from mirrored.compat.v1.scatters import scatter_sub as scatter_sub
from mirrored.compat.v1.scatters import scatter_update as scatter_update
from mirrored.compat.v1.scopes import AUTO_REUSE as AUTO_REUSE
from mirrored.compat.v1.scopes import VariableScope as VariableScope
from mirrored.compat.v1.scopes import get_variable as get_variable
from mirrored.compat.v1.scopes import get_variable_scope as get_variable_scope
from mirrored.compat.v1.scopes import variable_scope as variable_scope
from mirrored.compat.v1.session import InteractiveSession as InteractiveSession
from mirrored.compat.v1.session import Session as Session
from mirrored.compat.v1.session import get_default_session as get_default_session
from mirrored.compat.v1.shapes import Dimension as Dimension
from mirrored.compat.v1.shapes import TensorShape as TensorShape
from mirrored.compat.v1.shapes import disable_v2_tensorshape as disable_v2_tensorshape
from mirrored.compat.v1.shapes import enable_v2_tensorshape as enable_v2_tensorshape
from mirrored.compat.v1.sources import constant as constant
from mirrored.compat.v1.sources import placeholder as placeholder
from mirrored.compat.v1.sources import placeholder_with_default as placeholder_with_default
from mirrored.compat.v1.special import add_to_collection as add_to_collection
from mirrored.compat.v1.special import clip_by_global_norm as clip_by_global_norm
from mirrored.compat.v1.special import control_dependencies as control_dependencies
from mirrored.compat.v1.special import convert_to_tensor as convert_to_tensor
from mirrored.compat.v1.special import div as div
from mirrored.compat.v1.special import ensure_shape as ensure_shape
from mirrored.compat.v1.special import get_collection as get_collection
from mirrored.compat.v1.special import get_collection_ref as get_collection_ref
from mirrored.compat.v1.special import name_scope as name_scope
from mirrored.compat.v1.special import random_poisson as random_poisson
from mirrored.compat.v1.special import set_random_seed as set_random_seed
from mirrored.compat.v1.special import to_double as to_double
from mirrored.compat.v1.special import to_float as to_float
from mirrored.compat.v1.special import to_int32 as to_int32
from mirrored.compat.v1.special import to_int64 as to_int64
from mirrored.compat.v1.special import where as where
from mirrored.compat.v1.variables import GraphKeys as GraphKeys
from mirrored.compat.v1.variables import Variable as Variable
from mirrored.compat.v1.variables import assign as assign
from mirrored.compat.v1.variables import assign_add as assign_add
from mirrored.compat.v1.variables import assign_sub as assign_sub
from mirrored.dtypes import as_dtype as as_dtype
from mirrored.dtypes import bool as bool
from mirrored.dtypes import double as double
from mirrored.dtypes import float16 as float16
from mirrored.dtypes import float32 as float32
from mirrored.dtypes import float64 as float64
from mirrored.dtypes import half as half
from mirrored.dtypes import int8 as int8
from mirrored.dtypes import int16 as int16
from mirrored.dtypes import int32 as int32
from mirrored.dtypes import int64 as int64
from mirrored.dtypes import uint8 as uint8
from mirrored.dtypes import uint16 as uint16
from mirrored.dtypes import uint32 as uint32
from mirrored.dtypes import uint64 as uint64
from mirrored.ops.spec import bfloat16 as _bfloat16
from mirrored.version import VERSION as VERSION

initialize_all_variables = global_variables_initializer
initialize_local_variables = local_variables_initializer
initialize_variables = variables_initializer
all_variables = global_variables
newaxis = None
__version__ = VERSION
tuple = _tuple


# What is refused, by the names of TensorFlow 1's, with what to do instead.
_REFUSED = {
    "enable_resource_variables": "A variable's value is a reference: leave it out.",
    "enable_control_flow_v2": "Loops are the same in both versions here: leave it out.",
    "enable_tensor_equality": "Use `tf.equal`: `==` compares whether two tensors are one.",
    "image": "Images are arrays of NumPy's: change them before they are fed.",
    "keras": "Keras trains without sessions: `import mirrored as tf` has `tf.keras`.",
    "string": "Tensors are of numbers and booleans: keep texts in Python.",
    **dict.fromkeys(
        ("FIFOQueue", "PaddingFIFOQueue", "PriorityQueue", "RandomShuffleQueue", "QueueBase"),
        "There are no queues: feed batches, of a `mirrored.data.Dataset` for example.",
    ),
}


def __getattr__(name: str) -> _typing.Any:
    if name == "bfloat16":
        return _bfloat16()  # It takes a package that not everybody has.
    if name in _ROWS:
        call = globals()[name] = _named_call(name)
        return call
    if name in _ASSERTIONS:
        call = globals()[name] = _assertion(name)
        return call
    if name in _REFUSED:
        raise AttributeError(f"{__name__} has no {name!r}. {_REFUSED[name]}")
    raise AttributeError(
        f"module {__name__!r} has no attribute {name!r}. docs/from-tensorflow-1.md lists what is "
        "there."
    )


def __dir__() -> list[str]:
    names = {name for name in (*globals(), *_ROWS, *_ASSERTIONS, "bfloat16") if "." not in name}
    return sorted(name for name in names if not name.startswith("_"))
