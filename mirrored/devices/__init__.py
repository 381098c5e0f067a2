"""Devices: what they are called, which there are, how they are configured, and where ops run.

Everything above this package asks here for a device and never looks at the hardware itself.
"""

from mirrored.backends import Storage as Storage
from mirrored.devices.config import (
    enable_tensor_float_32_execution as enable_tensor_float_32_execution,
)
from mirrored.devices.config import get_device_policy as get_device_policy
from mirrored.devices.config import (
    get_logical_device_configuration as get_logical_device_configuration,
)
from mirrored.devices.config import get_memory_fraction as get_memory_fraction
from mirrored.devices.config import get_memory_growth as get_memory_growth
from mirrored.devices.config import get_visible_devices as get_visible_devices
from mirrored.devices.config import set_device_policy as set_device_policy
from mirrored.devices.config import (
    set_logical_device_configuration as set_logical_device_configuration,
)
from mirrored.devices.config import set_memory_fraction as set_memory_fraction
from mirrored.devices.config import set_memory_growth as set_memory_growth
from mirrored.devices.config import set_simulated_gpus as set_simulated_gpus
from mirrored.devices.config import set_visible_devices as set_visible_devices
from mirrored.devices.config import (
    tensor_float_32_execution_enabled as tensor_float_32_execution_enabled,
)
from mirrored.devices.info import get_device_details as get_device_details
from mirrored.devices.info import get_memory_info as get_memory_info
from mirrored.devices.info import list_logical_devices as list_logical_devices
from mirrored.devices.info import list_physical_devices as list_physical_devices
from mirrored.devices.info import reset_memory_stats as reset_memory_stats
from mirrored.devices.logical_device import Device as Device
from mirrored.devices.names import DeviceSpec as DeviceSpec
from mirrored.devices.names import LogicalDevice as LogicalDevice
from mirrored.devices.names import PhysicalDevice as PhysicalDevice
from mirrored.devices.placement import current_device_spec as current_device_spec
from mirrored.devices.placement import device as device
from mirrored.devices.placement import get_device as get_device
from mirrored.devices.placement import get_log_device_placement as get_log_device_placement
from mirrored.devices.placement import get_soft_device_placement as get_soft_device_placement
from mirrored.devices.placement import log_placement as log_placement
from mirrored.devices.placement import logical_devices as logical_devices
from mirrored.devices.placement import place as place
from mirrored.devices.placement import placed_as as placed_as
from mirrored.devices.placement import set_log_device_placement as set_log_device_placement
from mirrored.devices.placement import set_soft_device_placement as set_soft_device_placement
from mirrored.devices.registry import LogicalDeviceConfiguration as LogicalDeviceConfiguration
from mirrored.devices.registry import make_none_where as make_none_where
from mirrored.devices.resetting import empty_with as empty_with
from mirrored.devices.resetting import hold_devices as hold_devices
from mirrored.devices.resetting import refuse_reset_where as refuse_reset_where
from mirrored.devices.resetting import reset_devices as reset_devices
