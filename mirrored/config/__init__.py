"""The names that TensorFlow keeps under ``tf.config``.

Scripts find them in the same place; what they do is in ``mirrored.devices``.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.config",
    __name__,
    {
        "mirrored.config": "experimental",
        "mirrored.devices": """
            LogicalDevice LogicalDeviceConfiguration PhysicalDevice
            get_logical_device_configuration get_soft_device_placement
            get_visible_devices list_logical_devices list_physical_devices
            set_logical_device_configuration set_soft_device_placement
            set_visible_devices
        """,
        "mirrored.program": """
            experimental_functions_run_eagerly=functions_run_eagerly
            experimental_run_functions_eagerly=run_functions_eagerly
            functions_run_eagerly run_functions_eagerly
        """,
    },
)
