"""The names that TensorFlow keeps under ``tf.config.experimental``, and simulated GPUs.

Scripts find them in the same place; what they do is in ``mirrored.devices``.
"""

from mirrored._absent import public_module as _public_module
from mirrored.devices import LogicalDeviceConfiguration as _LogicalDeviceConfiguration
from mirrored.devices import get_device_details as get_device_details
from mirrored.devices import get_device_policy as get_device_policy
from mirrored.devices import get_logical_device_configuration as _get_logical_device_configuration
from mirrored.devices import get_memory_fraction as get_memory_fraction
from mirrored.devices import get_memory_growth as get_memory_growth
from mirrored.devices import get_memory_info as get_memory_info
from mirrored.devices import get_visible_devices as get_visible_devices
from mirrored.devices import list_logical_devices as list_logical_devices
from mirrored.devices import list_physical_devices as list_physical_devices
from mirrored.devices import reset_devices as reset_devices
from mirrored.devices import reset_memory_stats as reset_memory_stats
from mirrored.devices import set_device_policy as set_device_policy
from mirrored.devices import set_logical_device_configuration as _set_logical_device_configuration
from mirrored.devices import set_memory_fraction as set_memory_fraction
from mirrored.devices import set_memory_growth as set_memory_growth
from mirrored.devices import set_simulated_gpus as set_simulated_gpus
from mirrored.devices import set_visible_devices as set_visible_devices
from mirrored.devices.config import (
    enable_tensor_float_32_execution as enable_tensor_float_32_execution,
)
from mirrored.devices.config import (
    tensor_float_32_execution_enabled as tensor_float_32_execution_enabled,
)

VirtualDeviceConfiguration = _LogicalDeviceConfiguration
get_virtual_device_configuration = _get_logical_device_configuration
set_virtual_device_configuration = _set_logical_device_configuration

_public_module("tf.config.experimental", __name__)
