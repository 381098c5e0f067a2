"""The arguments that docs/reference/behaviour-rows.md names, with their order and their defaults.

Scripts pass them by position, and leave out what has a default.
"""

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from case_table import cases

import mirrored as mr
from mirrored import distribute
from mirrored.distribute.experimental import CommunicationImplementation, CommunicationOptions

NEEDED = inspect.Parameter.empty
AUTO = CommunicationImplementation.AUTO

# TensorFlow 2.21's, and Keras 3.15's of `fit`.
SIGNATURES: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "constant": (
        mr.constant,
        {"value": NEEDED, "dtype": None, "shape": None, "name": "Const"},
    ),
    "PhysicalDevice": (mr.config.PhysicalDevice, {"name": NEEDED, "device_type": NEEDED}),
    "LogicalDevice": (mr.config.LogicalDevice, {"name": NEEDED, "device_type": NEEDED}),
    "LogicalDeviceConfiguration": (
        mr.config.LogicalDeviceConfiguration,
        {"memory_limit": None, "experimental_priority": None},
    ),
    "list_physical_devices": (mr.config.list_physical_devices, {"device_type": None}),
    "list_logical_devices": (mr.config.list_logical_devices, {"device_type": None}),
    "get_visible_devices": (mr.config.get_visible_devices, {"device_type": None}),
    "set_visible_devices": (
        mr.config.set_visible_devices,
        {"devices": NEEDED, "device_type": None},
    ),
    "set_memory_growth": (
        mr.config.experimental.set_memory_growth,
        {"device": NEEDED, "enable": NEEDED},
    ),
    "MirroredStrategy": (
        distribute.MirroredStrategy,
        {"devices": None, "cross_device_ops": None},
    ),
    "run": (
        distribute.MirroredStrategy.run,
        {"self": NEEDED, "fn": NEEDED, "args": (), "kwargs": None, "options": None},
    ),
    "gather": (
        distribute.MirroredStrategy.gather,
        {"self": NEEDED, "value": NEEDED, "axis": NEEDED},
    ),
    "ReductionToOneDevice": (
        distribute.ReductionToOneDevice,
        {"reduce_to_device": None, "accumulation_fn": None},
    ),
    "NcclAllReduce": (distribute.NcclAllReduce, {"num_packs": 1}),
    "HierarchicalCopyAllReduce": (distribute.HierarchicalCopyAllReduce, {"num_packs": 1}),
    "CommunicationOptions": (
        CommunicationOptions,
        {"bytes_per_pack": 0, "timeout_seconds": None, "implementation": AUTO},
    ),
    "compute_average_loss": (
        mr.nn.compute_average_loss,
        {"per_example_loss": NEEDED, "sample_weight": None, "global_batch_size": None},
    ),
    "scale_regularization_loss": (
        mr.nn.scale_regularization_loss,
        {"regularization_loss": NEEDED},
    ),
    "fit": (
        mr.keras.Model.fit,
        {
            "self": NEEDED,
            "x": None,
            "y": None,
            "batch_size": None,
            "epochs": 1,
            "verbose": "auto",
            "callbacks": None,
            "validation_split": 0.0,
            "validation_data": None,
            "shuffle": True,
            "class_weight": None,
            "sample_weight": None,
            "initial_epoch": 0,
            "steps_per_epoch": None,
            "validation_steps": None,
            "validation_batch_size": None,
            "validation_freq": 1,
        },
    ),
}


@pytest.mark.behaviour(
    "device-tuples",
    "logical-configuration",
    "constant-dtype",
    "default-devices",
    "run",
    "average-loss",
    "collectives",
    "communication-options",
    "fit-arguments",
)
@cases(("function", "expected"), SIGNATURES.values(), ids=SIGNATURES)
def test_arguments_and_defaults(function: Callable[..., Any], expected: dict[str, Any]) -> None:
    found = {
        each.name: each.default
        for each in inspect.signature(function).parameters.values()
        if each.kind is each.POSITIONAL_OR_KEYWORD
    }
    assert list(found.items()) == list(expected.items())


@pytest.mark.behaviour("strategy-options", "nccl-failure", "deterministic-option", "fixed-replicas")
def test_our_own_options_are_given_by_name() -> None:
    found = {
        each.name: each.default
        for each in inspect.signature(distribute.MirroredStrategy).parameters.values()
        if each.kind is each.KEYWORD_ONLY
    }
    assert found == {
        "executor": "auto",
        "communication_options": None,
        "on_nccl_failure": "raise",
        "deterministic": False,
        "replicas": None,
    }
