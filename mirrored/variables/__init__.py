"""Variables: named values that can be assigned, alone on a device or with a copy on each replica.

Strategies decide which copies a variable has, through creators.
"""

from mirrored._late import late_module as _late_module
from mirrored.variables import device_variable as _default  # noqa: F401  Without a strategy.

_late_module(
    __name__,
    {
        "mirrored.variables.device_variable": "DeviceVariable VariableStorage",
        "mirrored.variables.generator": "Generator",
        "mirrored.variables.module": "Module",
        "mirrored.variables.variable": """
            Prepared Variable VariableAggregation VariableSynchronization
            set_variable_creators variable_creator_scope
        """,
    },
)
