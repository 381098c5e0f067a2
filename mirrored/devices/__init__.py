"""Devices: names, lists, configuration and the placement of ops.

Everything above this package asks here for a device and never looks at the hardware itself.
"""

from mirrored._late import late_module as _late_module

_late_module(
    __name__,
    {
        "mirrored.backends": "Storage",
        "mirrored.devices.configuration": """
            enable_tensor_float_32_execution get_device_policy
            get_logical_device_configuration get_memory_fraction get_memory_growth
            get_visible_devices set_device_policy set_logical_device_configuration
            set_memory_fraction set_memory_growth set_simulated_gpus set_visible_devices
            tensor_float_32_execution_enabled
        """,
        "mirrored.devices.device_registry": "LogicalDeviceConfiguration",
        "mirrored.devices.info": """
            get_device_details get_memory_info list_logical_devices
            list_physical_devices reset_memory_stats
        """,
        "mirrored.devices.logical_device": "Device",
        "mirrored.devices.names": "DeviceSpec LogicalDevice PhysicalDevice",
        "mirrored.devices.placement": """
            active_scope current_device_spec device get_device get_log_device_placement
            get_soft_device_placement log_placement logical_devices place placed_as placed_nowhere
            set_log_device_placement set_soft_device_placement
        """,
        "mirrored.devices.resetting": "empty_with hold_devices refuse_reset_where reset_devices",
    },
)
