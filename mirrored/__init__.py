"""Multi-GPU data-parallel training with TensorFlow's MirroredStrategy programming model.

Import it ``as mr``. Every public name is listed here, or in a module that is.
"""

import typing as _typing
from functools import partial as _partial
from importlib import import_module as _import_module

from mirrored._absent import public_module as _public_module
from mirrored.ops.spec import DType as _DType
from mirrored.ops.spec import bfloat16 as _bfloat16
from mirrored.version import VERSION as _VERSION

newaxis = None

__version__ = _VERSION

# There when it is first asked for: another package defines it.
bfloat16: _DType

# TensorFlow 1's programs, which nobody else loads.
compat: _typing.Any

_public_module(
    "tf",
    __name__,
    {
        "mirrored": """
            autodiff callbacks config data debugging distribute dtypes errors
            experimental image initializers io keras layers linalg losses math metrics
            nest nn optim optimizers profiler random summary test train types version
        """,
        "mirrored._logging": "get_logger",
        "mirrored._naming": "get_current_name_scope name_scope",
        "mirrored.autodiff": "GradientTape",
        "mirrored.autodiff.custom_gradients": "custom_gradient grad_pass_through recompute_grad",
        "mirrored.autodiff.tape": "UnconnectedGradients gradients",
        "mirrored.compat.v1.graph": "Graph",
        "mirrored.control_flow.branches": "case cond switch_case while_loop",
        "mirrored.control_flow.mapping": "foldl foldr map_fn scan vectorized_map",
        "mirrored.control_flow.recording_state": """
            control_dependencies executing_eagerly get_static_value group identity_n init_scope
            is_symbolic_tensor is_tensor no_op
        """,
        "mirrored.devices": "device",
        "mirrored.distribute": "MirroredStrategy",
        "mirrored.layers.starting_values": """
            ones_initializer=Ones random_normal_initializer=RandomNormal
            random_uniform_initializer=RandomUniform zeros_initializer=Zeros
        """,
        "mirrored.ops": """
            Assert IndexedSlices Tensor TensorShape TensorSpec abs acos acosh add add_n
            argmax argmin argsort as_dtype asin asinh assert_equal assert_greater
            assert_less assert_rank atan atan2 atanh bool=bool_ bool_ boolean_mask
            broadcast_to cast clip_by_global_norm clip_by_norm clip_by_value concat
            constant convert_to_tensor cos cosh cumsum divide double=float64
            dynamic_partition dynamic_stitch einsum ensure_shape equal exp expand_dims
            eye fill float16 float32 float64 floor gather gather_nd greater
            greater_equal half=float16 histogram_fixed_width histogram_fixed_width_bins
            identity int16 int32 int64 int8 less less_equal linspace log logical_and
            logical_not logical_or matmul maximum meshgrid minimum multiply negative
            norm not_equal numpy_function one_hot ones ones_like pad pow print
            py_function range rank reduce_all reduce_any reduce_logsumexp reduce_max
            reduce_mean reduce_min reduce_prod reduce_sum repeat reshape reverse
            reverse_sequence roll round scalar_mul scatter_nd searchsorted sequence_mask
            shape sigmoid sign sin sinh size slice sort split sqrt square squeeze stack
            stop_gradient strided_slice subtract tan tanh tensor_scatter_nd_add
            tensor_scatter_nd_max tensor_scatter_nd_min tensor_scatter_nd_sub
            tensor_scatter_nd_update tensordot tile timestamp transpose truediv=divide
            uint16 uint32 uint64 uint8 unique unique_with_counts unstack where zeros
            zeros_like
        """,
        "mirrored.program": "function",
        "mirrored.training": "Model Sequential",
        "mirrored.variables": """
            Module Variable VariableAggregation VariableSynchronization
            variable_creator_scope
        """,
    },
    constants=("newaxis",),
    unlisted=("autodiff",),
    bfloat16=_bfloat16,
    compat=_partial(_import_module, "mirrored.compat"),
)
