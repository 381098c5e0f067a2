"""Keras' names for what this library has, as ``mr.keras``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module
from mirrored.version import _KERAS as _KERAS

__version__ = _KERAS

_public_module(
    "tf.keras",
    __name__,
    {
        "mirrored._naming": "name_scope=keras_name_scope",
        "mirrored.devices": "device",
        "mirrored.graph": "KerasTensor=SymbolicTensor",
        "mirrored.keras": """
            activations backend callbacks config constraints datasets initializers
            layers losses metrics mixed_precision models ops optimizers random
            regularizers saving tree utils wrappers
        """,
        "mirrored.keras_functions.backend": "version",
        "mirrored.keras_functions.keras_variable": "Variable",
        "mirrored.layers": "Input Layer",
        "mirrored.layers.initializers": "Initializer",
        "mirrored.layers.policy": "DTypePolicy",
        "mirrored.layers.regularizers": "Regularizer",
        "mirrored.optim": "Optimizer",
        "mirrored.training": "Model Sequential",
        "mirrored.training.losses": "Loss",
        "mirrored.training.metrics": "Metric",
    },
)
