"""The questions that scripts ask about GPUs, as ``mr.test``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module
from mirrored.devices.info import gpu_device_name as gpu_device_name
from mirrored.devices.info import is_built_with_cuda as is_built_with_cuda
from mirrored.devices.info import is_gpu_available as is_gpu_available

_public_module("tf.test", __name__)
