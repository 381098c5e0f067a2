"""What the options of sessions make of the devices, and what is said where they come too late."""

import copy
import logging
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mirrored as mr
import mirrored.compat.v1 as tf
from mirrored import devices, errors
from mirrored.devices.device_registry import registry

MB = 1 << 20
LATE = "have no effect: "


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as made:
        yield made


def options(**given: Any) -> tf.ConfigProto:
    """Return a configuration with these of its fields, or of its GPU options."""
    config = tf.ConfigProto()
    for name, value in given.items():
        setattr(config.gpu_options if name in tf.GPUOptions.FIELDS else config, name, value)
    return config


def gpus_of(made: Any) -> list[tuple[int, int | None]]:
    """Return the number of the physical GPU and the limit in MB of each logical one."""
    return [(int(d.physical.name[-1]), d.pool.limit and d.pool.limit // MB) for d in made]


@pytest.mark.parametrize(
    ("given", "gpus", "cpus"),
    [
        ({}, [(0, 100), (1, 100), (2, 100)], 1),
        ({"per_process_gpu_memory_fraction": 0.4}, [(0, 40), (1, 40), (2, 40)], 1),
        ({"visible_device_list": "2,0"}, [(2, 100), (0, 100)], 1),
        ({"visible_device_list": " 1"}, [(1, 100)], 1),
        ({"device_count": {"GPU": 0}}, [], 1),
        ({"device_count": {"GPU": 1, "TPU": 7}, "visible_device_list": "1,2"}, [(1, 100)], 1),
        ({"device_count": {"GPU": 5, "CPU": 2}}, [(0, 100), (1, 100), (2, 100)], 2),
        (
            {"visible_device_list": "1,0", "per_process_gpu_memory_fraction": 0.5},
            [(1, 50), (0, 50)],
            1,
        ),
    ],
)
def test_the_first_session_decides(
    given: dict[str, Any],
    gpus: list[tuple[int, int]],
    cpus: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    mr.config.experimental.set_simulated_gpus(3, memory_limit=100)
    x = tf.constant([1.0, 2.0]) * 2.0  # Which is drawn before.
    with tf.Session(config=options(**given)) as session:
        assert registry.initialised
        assert session.run(x).tolist() == [2.0, 4.0]
    tf.Session(config=options(**given)).close()  # The same again is no news.
    tf.Session().close()
    assert gpus_of(devices.logical_devices("GPU")) == gpus
    assert len(devices.logical_devices("CPU")) == cpus
    assert LATE not in caplog.text


@pytest.mark.parametrize(
    ("first", "second", "late"),
    [
        (
            {"per_process_gpu_memory_fraction": 0.4},
            {"per_process_gpu_memory_fraction": 0.5, "allow_growth": True},
            "per_process_gpu_memory_fraction=0.5",
        ),
        ({}, {"visible_device_list": "1,0"}, "visible_device_list='1,0'"),
        ({"visible_device_list": "1"}, {"device_count": {"GPU": 0}}, "device_count={'GPU': 0}"),
        ({"device_count": {"CPU": 2}}, {"device_count": {"CPU": 1}}, "device_count={'CPU': 1}"),
    ],
)
def test_another_session_is_told_once_that_it_comes_late(
    first: Any, second: Any, late: str, caplog: pytest.LogCaptureFixture
) -> None:
    mr.config.experimental.set_simulated_gpus(2, memory_limit=100)
    tf.Session(config=options(**first)).close()
    made = devices.logical_devices()
    for _ in range(2):
        tf.Session(config=options(**second)).close()
    (record,) = [each for each in caplog.records if LATE in each.message]
    assert record.levelno == logging.WARNING
    assert f"{LATE}{late}. " in record.message
    assert devices.logical_devices() is made


BAD: list[tuple[Any, type[Exception], str]] = [
    (
        {"visible_device_list": "0,x"},
        errors.InvalidArgumentError,
        "Could not parse entry in 'visible_device_list': 'x'. visible_device_list = 0,x",
    ),
    (
        {"visible_device_list": "0,2"},
        errors.InvalidArgumentError,
        "'visible_device_list' listed an invalid Device id '2' but visible device count is 2",
    ),
    (
        {"visible_device_list": "1,1"},
        errors.InvalidArgumentError,
        "visible_device_list contained a duplicate entry: 1,1",
    ),
    (
        {"visible_device_list": 1},
        TypeError,
        "The field `visible_device_list` of GPUOptions takes a str. Received: 1",
    ),
    ({"per_process_gpu_memory_fraction": "1"}, TypeError, "takes a float. Received: '1'"),
    ({"allow_growth": "yes"}, TypeError, "takes a bool. Received: 'yes'"),
    (
        {"per_process_gpu_memory_fraction": 1.5},
        errors.InvalidArgumentError,
        "`per_process_gpu_memory_fraction` must be a number from 0, for no limit, to 1. "
        "Received: per_process_gpu_memory_fraction=1.5. More than the card's memory (unified "
        "memory) is not supported.",
    ),
    (
        {"per_process_gpu_memory_fraction": -0.5},
        errors.InvalidArgumentError,
        "Received: per_process_gpu_memory_fraction=-0.5",
    ),
    ({"device_count": {"GPU": -1}}, errors.InvalidArgumentError, "must have 0 or more GPUs"),
    ({"device_count": {"CPU": 0}}, errors.InvalidArgumentError, "and a CPU, through which"),
    (
        {"device_count": ["GPU"]},
        TypeError,
        "`device_count` of ConfigProto takes a dict. Received: [",
    ),
    (
        {"device_count": {"GPU": 1.5}},
        TypeError,
        "`device_count` must have whole numbers. Received: devi",
    ),
    ({"gpu_options": None}, TypeError, "takes a GPUOptions. Received: None"),
    ({"gpu_options": {"allow": 1}}, ValueError, 'message GPUOptions has no "allow" field.'),
    ({"soft": True}, AttributeError, 'not allowed (no field "soft" in protocol message object).'),
    ({"graph_options": 1}, AttributeError, "object): it is not provided here. Leave it out."),
]


@pytest.mark.parametrize(("given", "kind", "text"), BAD)
def test_options_that_are_wrong(given: Any, kind: type[Exception], text: str) -> None:
    mr.config.experimental.set_simulated_gpus(2)
    with pytest.raises(kind, match=re.escape(text)):
        tf.Session(config=options(**given))
    assert not registry.initialised
    mr.config.experimental.set_simulated_gpus(1)


def test_fields_that_are_not_there() -> None:
    with pytest.raises(ValueError, match='Protocol message ConfigProto has no "soft" field'):
        tf.ConfigProto(soft=True)
    with pytest.raises(AttributeError, match='ConfigProto has no "graph_options" field: it is not'):
        _ = tf.ConfigProto().graph_options
    config = tf.ConfigProto(gpu_options={"allow_growth": True}, device_count={"GPU": 0})
    assert config.gpu_options.allow_growth is True
    assert copy.deepcopy(config).device_count == {"GPU": 0}


def test_a_part_of_the_memory_of_a_split_gpu() -> None:
    """Nothing of what it asks for is set up then."""
    mr.config.experimental.set_simulated_gpus(2, memory_limit=8)
    gpu = mr.config.list_physical_devices("GPU")[1]
    half = mr.config.LogicalDeviceConfiguration(memory_limit=4)
    mr.config.set_logical_device_configuration(gpu, [half, half])
    given = {"visible_device_list": "0,1", "per_process_gpu_memory_fraction": 0.5}
    with pytest.raises(errors.InvalidArgumentError, match="when virtual devices configured"):
        tf.Session(config=options(**given, device_count={"CPU": 2}))
    tf.Session().close()
    assert gpus_of(devices.logical_devices("GPU")) == [(0, 8), (1, 4), (1, 4)]
    assert len(devices.logical_devices("CPU")) == 1


def test_a_machine_without_gpus_ignores_options_of_gpus() -> None:
    given = {"visible_device_list": "0,1", "allow_growth": True, "device_count": {"GPU": 1}}
    for _ in range(2):
        with tf.Session(config=options(**given, per_process_gpu_memory_fraction=0.5)) as session:
            assert session.run(tf.constant(1.0)) == 1.0


@pytest.mark.parametrize("card", ["simulated", "emulated"])
def test_a_run_that_takes_more_than_its_part(card: str, request: pytest.FixtureRequest) -> None:
    """The error says what was asked for, of what limit and where; the session goes on."""
    if card == "simulated":
        mr.config.experimental.set_simulated_gpus(1, memory_limit=2)
    else:
        request.getfixturevalue("emulated_cuda")(memory=2 * MB)
    x = tf.placeholder(tf.float32, [None])
    total = tf.reduce_sum(tf.exp(x))
    with tf.Session(config=options(per_process_gpu_memory_fraction=0.5)) as session:
        with pytest.raises(errors.ResourceExhaustedError) as raised:
            session.run(total, {x: np.zeros(MB // 2, np.float32)})
        text = str(raised.value)
        assert re.search(r"device:GPU:0: .* asked for, .* in use, limit 1\.0 MB \(1048576 b", text)
        assert session.run(total, {x: np.zeros(1000, np.float32)}) == 1000.0


@pytest.mark.parametrize(
    ("given", "least", "most"),
    [
        ({}, 0.9, 0.9),
        ({"per_process_gpu_memory_fraction": 0.5}, 0.5, 0.5),
        ({"allow_growth": True}, 0.0, 0.01),
        ({"allow_growth": True, "per_process_gpu_memory_fraction": 0.5}, 0.0, 0.01),
    ],
)
def test_what_a_session_takes_of_a_card(
    given: dict[str, Any],
    least: float,
    most: float,
    emulated_cuda: Callable[..., Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    emulator = emulated_cuda(memory=MB, growth=False)
    variable = tf.Variable([1.0, 2.0])
    with tf.Session(config=options(**given)) as session:
        assert emulator.live_bytes() == 0
        session.run(variable.initializer)
        assert session.run(variable).tolist() == [1.0, 2.0]
        assert least * MB - 512 <= emulator.live_bytes() <= most * MB
    tf.Session(config=options(allow_growth=True)).close()
    assert (f"{LATE}allow_growth=True. " in caplog.text) is ("allow_growth" not in given)


def test_configuration_by_the_names_of_tensorflow_2() -> None:
    assert tf.config.list_physical_devices("CPU") == mr.config.list_physical_devices("CPU")
    assert tf.config.experimental.set_memory_growth is mr.config.experimental.set_memory_growth
    with pytest.raises(AttributeError, match=r"has no 'keras'\. Keras trains without sessions"):
        getattr(tf, "keras")  # noqa: B009
