"""Variables: named values that can be assigned, alone on a device or with a copy on each replica.

What copies there are is the business of strategies, which make them by a creator.
"""

import typing as _typing

from mirrored._late import late_module as _late_module
from mirrored.variables.device_variable import DeviceVariable as DeviceVariable
from mirrored.variables.device_variable import VariableStorage as VariableStorage
from mirrored.variables.module import Module as Module
from mirrored.variables.variable import Prepared as Prepared
from mirrored.variables.variable import Variable as Variable
from mirrored.variables.variable import VariableAggregation as VariableAggregation
from mirrored.variables.variable import VariableSynchronization as VariableSynchronization
from mirrored.variables.variable import set_variable_creators as set_variable_creators
from mirrored.variables.variable import variable_creator_scope as variable_creator_scope

if _typing.TYPE_CHECKING:
    from mirrored.variables.generator import Generator as Generator

_LATE = {
    "mirrored.variables.generator": "Generator",
}
_late_module(__name__, _LATE)
