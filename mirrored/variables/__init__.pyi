# Written by tests/support/stubs.py from the table in __init__.py; do not edit it.
from mirrored._late import late_module as _late_module
from mirrored.variables import device_variable as _default
from mirrored.variables.device_variable import DeviceVariable as DeviceVariable
from mirrored.variables.generator import Generator as Generator
from mirrored.variables.module import Module as Module
from mirrored.variables.variable import Prepared as Prepared
from mirrored.variables.variable import Variable as Variable
from mirrored.variables.variable import VariableAggregation as VariableAggregation
from mirrored.variables.device_variable import VariableStorage as VariableStorage
from mirrored.variables.variable import VariableSynchronization as VariableSynchronization
from mirrored.variables.variable import set_variable_creators as set_variable_creators
from mirrored.variables.variable import variable_creator_scope as variable_creator_scope
