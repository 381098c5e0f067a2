"""TensorFlow 1's names: `import mirrored.compat.v1 as tf` lets its programs run.

They draw graphs, which sessions run. Names outside of this package are eager until
`disable_eager_execution` is called.
"""

import mirrored.compat.v1.drawn_calls as _calls  # noqa: F401 (Tensors' operators draw calls.)
from mirrored.compat.v1.call_table import rows_of as _rows_of
from mirrored.compat.v1.drawn_assertions import ASSERTIONS as _ASSERTIONS
from mirrored.compat.v1.listing import list_names as _list_names
from mirrored.version import VERSION as _VERSION

__version__ = _VERSION

_list_names(
    __name__,
    {
        "mirrored.compat.v1.drawn_calls": _rows_of(),
        "mirrored.compat.v1.drawn_assertions": " ".join(("Assert", *_ASSERTIONS)),
        "mirrored": "config dtypes errors test",
        "mirrored.compat.v1": """
            app contrib data debugging flags gfile initializers layers linalg logging losses math
            metrics nn random summary train
        """,
        "mirrored.compat.v1.control_flow": "case cond while_loop",
        "mirrored.compat.v1.device_scopes": "NodeDef colocate_with device",
        "mirrored.compat.v1.device_spec": "DeviceSpec",
        "mirrored.compat.v1.graph_draws": """
            clip_by_value random_normal random_uniform truncated_normal
        """,
        "mirrored.compat.v1.eager_execution": """
            disable_control_flow_v2 disable_eager_execution disable_resource_variables
            disable_tensor_equality disable_v2_behavior enable_eager_execution enable_v2_behavior
            executing_eagerly
        """,
        "mirrored.compat.v1.graph_elements": "Operation Tensor",
        "mirrored.compat.v1.functional": "foldl foldr map_fn scan",
        "mirrored.compat.v1.differentiation": "AggregationMethod gradients",
        "mirrored.compat.v1.graph": "Graph get_default_graph reset_default_graph",
        "mirrored.compat.v1.groups": """
            all_variables=global_variables global_variables global_variables_initializer group
            initialize_all_variables=global_variables_initializer
            initialize_local_variables=local_variables_initializer
            initialize_variables=variables_initializer is_variable_initialized local_variables
            local_variables_initializer moving_average_variables no_op
            report_uninitialized_variables trainable_variables tuple=tuple_ variables_initializer
        """,
        "mirrored.compat.v1.host_calls": "Print py_func",
        "mirrored.compat.v1.initializers": """
            constant_initializer glorot_normal_initializer glorot_uniform_initializer
            ones_initializer random_normal_initializer random_uniform_initializer
            truncated_normal_initializer variance_scaling_initializer zeros_initializer
        """,
        "mirrored.compat.v1.boolean_masks": """
            boolean_mask dynamic_partition unique unique_with_counts
        """,
        "mirrored.compat.v1.messages": "ConfigProto GPUOptions RunMetadata RunOptions",
        "mirrored.compat.v1.scopes": """
            AUTO_REUSE VariableScope get_variable get_variable_scope variable_scope
        """,
        "mirrored.compat.v1.session": "InteractiveSession Session get_default_session",
        "mirrored.compat.v1.partial_shapes": """
            Dimension TensorShape disable_v2_tensorshape enable_v2_tensorshape
        """,
        "mirrored.compat.v1.sources": "constant placeholder placeholder_with_default",
        "mirrored.compat.v1.special": """
            add_to_collection clip_by_global_norm control_dependencies convert_to_tensor div
            ensure_shape get_collection get_collection_ref name_scope random_poisson
            set_random_seed to_double to_float to_int32 to_int64 where
        """,
        "mirrored.compat.v1.variables": """
            GraphKeys Variable assign assign_add assign_sub scatter_add scatter_sub scatter_update
        """,
        "mirrored.dtypes": """
            as_dtype bfloat16 bool double float16 float32 float64 half int8 int16 int32 int64 uint8
            uint16 uint32 uint64
        """,
        "mirrored.version": "VERSION",
        "numpy": "newaxis",
    },
    refused={
        "A variable's value is a reference: leave it out.": "enable_resource_variables",
        "Loops are the same in both versions here: leave it out.": "enable_control_flow_v2",
        "Use `tf.equal`: `==` compares whether two tensors are one.": "enable_tensor_equality",
        "Images are arrays of NumPy's: change them before they are fed.": "image",
        "Keras trains without sessions: `import mirrored as tf` has `tf.keras`.": "keras",
        "Tensors are of numbers and booleans: keep texts in Python.": "string",
        "There are no queues: feed batches, of a `mirrored.data.Dataset` for example.": """
            FIFOQueue PaddingFIFOQueue PriorityQueue QueueBase RandomShuffleQueue
        """,
    },
)
