"""Keras' backend: its settings and its older functions, as ``mr.keras.backend``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module
from mirrored.keras_functions.backend_numbers import all as all
from mirrored.keras_functions.backend_numbers import any as any
from mirrored.keras_functions.backend_numbers import argmax as argmax
from mirrored.keras_functions.backend_numbers import argmin as argmin
from mirrored.keras_functions.backend_numbers import clip as clip
from mirrored.keras_functions.backend_numbers import hard_sigmoid as hard_sigmoid
from mirrored.keras_functions.backend_numbers import l2_normalize as l2_normalize
from mirrored.keras_functions.backend_numbers import max as max
from mirrored.keras_functions.backend_numbers import mean as mean
from mirrored.keras_functions.backend_numbers import min as min
from mirrored.keras_functions.backend_numbers import pow as pow
from mirrored.keras_functions.backend_numbers import prod as prod
from mirrored.keras_functions.backend_numbers import softmax as softmax
from mirrored.keras_functions.backend_numbers import sqrt as sqrt
from mirrored.keras_functions.backend_numbers import std as std
from mirrored.keras_functions.backend_numbers import sum as sum
from mirrored.keras_functions.backend_numbers import var as var
from mirrored.keras_functions.backend_shapes import batch_flatten as batch_flatten
from mirrored.keras_functions.backend_shapes import concatenate as concatenate
from mirrored.keras_functions.backend_shapes import expand_dims as expand_dims
from mirrored.keras_functions.backend_shapes import flatten as flatten
from mirrored.keras_functions.backend_shapes import one_hot as one_hot
from mirrored.keras_functions.backend_shapes import ones_like as ones_like
from mirrored.keras_functions.backend_shapes import permute_dimensions as permute_dimensions
from mirrored.keras_functions.backend_shapes import repeat as repeat
from mirrored.keras_functions.backend_shapes import reshape as reshape
from mirrored.keras_functions.backend_shapes import reverse as reverse
from mirrored.keras_functions.backend_shapes import squeeze as squeeze
from mirrored.keras_functions.backend_shapes import stack as stack
from mirrored.keras_functions.backend_shapes import stop_gradient as stop_gradient
from mirrored.keras_functions.backend_shapes import tile as tile
from mirrored.keras_functions.backend_shapes import transpose as transpose
from mirrored.keras_functions.backend_shapes import zeros_like as zeros_like
from mirrored.keras_functions.backend_values import batch_get_value as batch_get_value
from mirrored.keras_functions.backend_values import batch_set_value as batch_set_value
from mirrored.keras_functions.backend_values import cast as cast
from mirrored.keras_functions.backend_values import cast_to_floatx as cast_to_floatx
from mirrored.keras_functions.backend_values import constant as constant
from mirrored.keras_functions.backend_values import count_params as count_params
from mirrored.keras_functions.backend_values import dtype as dtype
from mirrored.keras_functions.backend_values import epsilon as epsilon
from mirrored.keras_functions.backend_values import get_value as get_value
from mirrored.keras_functions.backend_values import int_shape as int_shape
from mirrored.keras_functions.backend_values import ndim as ndim
from mirrored.keras_functions.backend_values import result_type as result_type
from mirrored.keras_functions.backend_values import set_value as set_value
from mirrored.keras_functions.backend_values import shape as shape
from mirrored.keras_functions.backend_values import update as update
from mirrored.keras_functions.backend_values import update_add as update_add
from mirrored.keras_functions.backend_values import update_sub as update_sub
from mirrored.keras_functions.settings import backend as backend
from mirrored.keras_functions.settings import image_data_format as image_data_format
from mirrored.layers import reset_names as _reset_names
from mirrored.ops import abs as abs
from mirrored.ops import cos as cos
from mirrored.ops import equal as equal
from mirrored.ops import exp as exp
from mirrored.ops import floatx as floatx
from mirrored.ops import greater as greater
from mirrored.ops import greater_equal as greater_equal
from mirrored.ops import less as less
from mirrored.ops import less_equal as less_equal
from mirrored.ops import log as log
from mirrored.ops import maximum as maximum
from mirrored.ops import minimum as minimum
from mirrored.ops import not_equal as not_equal
from mirrored.ops import round as round
from mirrored.ops import set_floatx as set_floatx
from mirrored.ops import sigmoid as sigmoid
from mirrored.ops import sign as sign
from mirrored.ops import sin as sin
from mirrored.ops import square as square
from mirrored.ops import tanh as tanh

clear_session = _reset_names

_public_module("tf.keras.backend", __name__)
