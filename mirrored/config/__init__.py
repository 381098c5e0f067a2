"""The names that TensorFlow keeps under ``tf.config``.

Scripts find them in the same place; what they do is in ``mirrored.devices``.
"""

from mirrored._absent import public_module as _public_module
from mirrored.config import experimental as experimental
from mirrored.devices import LogicalDevice as LogicalDevice
from mirrored.devices import LogicalDeviceConfiguration as LogicalDeviceConfiguration
from mirrored.devices import PhysicalDevice as PhysicalDevice
from mirrored.devices import get_logical_device_configuration as get_logical_device_configuration
from mirrored.devices import get_soft_device_placement as get_soft_device_placement
from mirrored.devices import get_visible_devices as get_visible_devices
from mirrored.devices import list_logical_devices as list_logical_devices
from mirrored.devices import list_physical_devices as list_physical_devices
from mirrored.devices import set_logical_device_configuration as set_logical_device_configuration
from mirrored.devices import set_soft_device_placement as set_soft_device_placement
from mirrored.devices import set_visible_devices as set_visible_devices
from mirrored.program import functions_run_eagerly as functions_run_eagerly
from mirrored.program import run_functions_eagerly as run_functions_eagerly

__all__ = [
    "LogicalDevice",
    "LogicalDeviceConfiguration",
    "PhysicalDevice",
    "experimental",
    "experimental_functions_run_eagerly",
    "experimental_run_functions_eagerly",
    "functions_run_eagerly",
    "get_logical_device_configuration",
    "get_soft_device_placement",
    "get_visible_devices",
    "list_logical_devices",
    "list_physical_devices",
    "run_functions_eagerly",
    "set_logical_device_configuration",
    "set_soft_device_placement",
    "set_visible_devices",
]

# Their older names.
experimental_functions_run_eagerly = functions_run_eagerly
experimental_run_functions_eagerly = run_functions_eagerly

_public_module("tf.config", __name__)
