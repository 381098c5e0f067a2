"""The questions that scripts ask about GPUs, as ``mr.test``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.test",
    __name__,
    {
        "mirrored.devices.info": "gpu_device_name is_built_with_cuda is_gpu_available",
    },
)
