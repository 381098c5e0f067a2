"""``mr.config`` and ``mr.config.experimental`` hold names, and no logic of their own."""

from types import ModuleType

import pytest
from case_table import cases

from mirrored import config, devices
from mirrored.config import experimental
from mirrored.devices import configuration

CONFIG = {
    name: name
    for name in (
        "LogicalDevice",
        "LogicalDeviceConfiguration",
        "PhysicalDevice",
        "get_logical_device_configuration",
        "get_soft_device_placement",
        "get_visible_devices",
        "list_logical_devices",
        "list_physical_devices",
        "set_logical_device_configuration",
        "set_soft_device_placement",
        "set_visible_devices",
    )
}
EXPERIMENTAL = {
    name: name
    for name in (
        "get_device_details",
        "get_device_policy",
        "get_memory_fraction",
        "get_memory_growth",
        "get_memory_info",
        "get_visible_devices",
        "list_logical_devices",
        "list_physical_devices",
        "reset_devices",
        "reset_memory_stats",
        "set_device_policy",
        "set_memory_fraction",
        "set_memory_growth",
        "set_simulated_gpus",
        "set_visible_devices",
    )
} | {
    "VirtualDeviceConfiguration": "LogicalDeviceConfiguration",
    "get_virtual_device_configuration": "get_logical_device_configuration",
    "set_virtual_device_configuration": "set_logical_device_configuration",
}
# Of recorded functions: `tests/program/test_function_eager.py` has their tests.
FUNCTIONS = {
    f"{prefix}{name}"
    for prefix in ("", "experimental_")
    for name in ("run_functions_eagerly", "functions_run_eagerly")
}
PRECISION = ("enable_tensor_float_32_execution", "tensor_float_32_execution_enabled")


@cases(
    ("module", "name", "meaning"),
    [(config, *names) for names in CONFIG.items()]
    + [(experimental, *names) for names in EXPERIMENTAL.items()],
)
def test_names(module: ModuleType, name: str, meaning: str) -> None:
    assert getattr(module, name) is getattr(devices, meaning)


@pytest.mark.parametrize("name", PRECISION)
def test_names_of_precision(name: str) -> None:
    assert getattr(experimental, name) is getattr(configuration, name)


@pytest.mark.parametrize(
    ("module", "names"),
    [(config, {*CONFIG, *FUNCTIONS, "experimental"}), (experimental, {*EXPERIMENTAL, *PRECISION})],
)
def test_there_is_nothing_else(module: ModuleType, names: set[str]) -> None:
    # pytest rewrites the modules of a package that comes with a plugin, and imports into them what
    # it needs under names such as "@pytest_ar", which no program can write.
    found = {name for name in dir(module) if name.isidentifier() and not name.startswith("_")}
    assert found == names
