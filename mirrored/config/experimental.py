"""The names that TensorFlow keeps under ``tf.config.experimental``, and simulated GPUs.

Scripts find them in the same place; what they do is in ``mirrored.devices``.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.config.experimental",
    __name__,
    {
        "mirrored.devices": """
            VirtualDeviceConfiguration=LogicalDeviceConfiguration get_device_details
            get_device_policy get_memory_fraction get_memory_growth get_memory_info
            get_virtual_device_configuration=get_logical_device_configuration
            get_visible_devices list_logical_devices list_physical_devices reset_devices
            reset_memory_stats set_device_policy set_memory_fraction set_memory_growth
            set_simulated_gpus
            set_virtual_device_configuration=set_logical_device_configuration
            set_visible_devices
        """,
        "mirrored.devices.configuration": """
            enable_tensor_float_32_execution tensor_float_32_execution_enabled
        """,
    },
)
