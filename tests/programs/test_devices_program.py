"""A program that looks at the devices and configures them, and one that does so too late.

Each late call is caught and printed, as scripts do.
"""

from collections.abc import Callable
from typing import Any

import pytest

RESTRICTED = """
import mirrored as tf

gpus = tf.config.list_physical_devices('GPU')
print('Num GPUs Available:', len(gpus))
print(tf.config.list_physical_devices())

tf.config.set_visible_devices(gpus[1:], 'GPU')
print(tf.config.get_visible_devices())
logical_gpus = tf.config.list_logical_devices('GPU')
print(len(gpus), 'Physical GPUs,', len(logical_gpus), 'Logical GPUs')
print(logical_gpus)

try:
    tf.config.set_visible_devices(gpus[0], 'GPU')
except RuntimeError as e:
    print('visible:', e)
try:
    tf.config.set_logical_device_configuration(gpus[2], [tf.config.LogicalDeviceConfiguration(64)])
except RuntimeError as e:
    print('logical:', e)
try:
    tf.config.experimental.set_memory_growth(gpus[2], True)
except RuntimeError as e:
    print('growth:', e)
print(tf.constant([1.0]).device)
"""

LATE = "cannot be modified after being initialized. Do this at the start of the program, before "
FIRST = (
    "the first tensor, strategy or list_logical_devices(), or after "
    "mr.config.experimental.reset_devices()."
)


def test_devices_are_listed_and_restricted(
    run_program: Callable[..., Any], created: Callable[..., list[str]]
) -> None:
    done = run_program(RESTRICTED, gpus=3)
    cpu, *gpus = [
        f"PhysicalDevice(name='/physical_device:{name}', device_type='{name[:3]}')"
        for name in ("CPU:0", "GPU:0", "GPU:1", "GPU:2")
    ]
    assert done.out == [
        "Num GPUs Available: 3",
        f"[{cpu}, {', '.join(gpus)}]",
        f"[{cpu}, {', '.join(gpus[1:])}]",
        "3 Physical GPUs, 2 Logical GPUs",
        "[LogicalDevice(name='/device:GPU:0', device_type='GPU'), "
        "LogicalDevice(name='/device:GPU:1', device_type='GPU')]",
        f"visible: Visible devices {LATE}{FIRST}",
        f"logical: Virtual devices {LATE}{FIRST}",
        f"growth: Physical devices {LATE}{FIRST}",
        "/job:localhost/replica:0/task:0/device:GPU:0",
    ]
    assert done.log == created(1, 2)


# Under the names that older scripts have, and under the newer ones.
VIRTUAL = """
import mirrored as tf

gpus = tf.config.list_physical_devices('GPU')
if gpus:
    # Two virtual GPUs with 1 GB memory each
    try:
        tf.config.{configure}(
            gpus[0],
            [tf.config.{configuration}(memory_limit=1024),
             tf.config.{configuration}(memory_limit=1024)])
        logical_gpus = tf.config.list_logical_devices('GPU')
        print(len(gpus), 'Physical GPU,', len(logical_gpus), 'Logical GPUs')
    except RuntimeError as e:
        print(e)

    try:
        tf.config.{configure}(
            gpus[0], [tf.config.{configuration}(memory_limit=2048)])
    except RuntimeError as e:
        print(e)
    try:
        tf.config.experimental.set_memory_growth(gpus[0], True)
    except ValueError as e:
        print(e)

    strategy = tf.distribute.MirroredStrategy(logical_gpus)
    with strategy.scope():
        v = tf.Variable(tf.ones((256, 1024)))
    print([copy.device for copy in strategy.experimental_local_results(v)])
    print([tf.config.experimental.get_memory_info(f'GPU:{{i}}')['current'] for i in (0, 1)])
    try:
        with tf.device('/GPU:1'):
            tf.zeros((16 * 1024, 16 * 1024))
    except tf.errors.ResourceExhaustedError as e:
        print('/device:GPU:1' in str(e))
"""


@pytest.mark.parametrize(
    ("configure", "configuration"),
    [
        (
            "experimental.set_virtual_device_configuration",
            "experimental.VirtualDeviceConfiguration",
        ),
        ("set_logical_device_configuration", "LogicalDeviceConfiguration"),
    ],
)
def test_one_gpu_becomes_two_of_1024_mb(
    run_program: Callable[..., Any],
    created: Callable[..., list[str]],
    configure: str,
    configuration: str,
) -> None:
    text = VIRTUAL.format(configure=configure, configuration=configuration)
    done = run_program(text, gpus=1)
    full = "/job:localhost/replica:0/task:0/device:GPU"
    assert done.out == [
        "1 Physical GPU, 2 Logical GPUs",
        f"Virtual devices {LATE}{FIRST}",
        "Cannot set memory growth on device when virtual devices configured",
        f"['{full}:0', '{full}:1']",
        "[1048576, 1048576]",
        "True",
    ]
    assert done.log[:3] == created((0, 1024), (0, 1024))
    assert done.log[-1] == f"Using MirroredStrategy with devices ('{full}:0', '{full}:1')"


GROWTH = """
import mirrored as tf

gpus = tf.config.list_physical_devices('GPU')
print([tf.config.experimental.get_memory_growth(gpu) for gpu in gpus])
try:
    # Memory growth needs to be the same across GPUs
    tf.config.experimental.set_memory_growth(gpus[0], True)
    logical_gpus = tf.config.list_logical_devices('GPU')
except ValueError as e:
    print(e)
for gpu in gpus:
    tf.config.experimental.set_memory_growth(gpu, True)
logical_gpus = tf.config.list_logical_devices('GPU')
print(len(gpus), 'Physical GPUs,', len(logical_gpus), 'Logical GPUs')
try:
    # Memory growth must be set before GPUs have been initialized
    tf.config.experimental.set_memory_growth(gpus[0], False)
except RuntimeError as e:
    print(e)
tf.config.experimental.set_memory_growth(gpus[0], True)  # It is set already.
print([tf.config.experimental.get_memory_growth(gpu) for gpu in gpus])
"""


def test_growth_is_set_for_all_gpus_and_in_time(
    run_program: Callable[..., Any], created: Callable[..., list[str]]
) -> None:
    done = run_program(GROWTH, gpus=2)
    assert done.out == [
        "[None, None]",
        "Memory growth cannot differ between GPU devices: /physical_device:GPU:0 True, "
        "/physical_device:GPU:1 None. Call set_memory_growth with the same value for each "
        "visible GPU.",
        "2 Physical GPUs, 2 Logical GPUs",
        f"Physical devices {LATE}{FIRST}",
        "[True, True]",
    ]
    assert done.log == created(0, 1)


NO_GPU = """
import mirrored as tf

print('Num GPUs Available:', len(tf.config.list_physical_devices('GPU')))
print(tf.config.list_logical_devices())
print(tf.distribute.MirroredStrategy(tf.config.list_logical_devices('GPU')).num_replicas_in_sync)
"""


def test_the_same_program_without_a_gpu(
    run_program: Callable[..., Any], created: Callable[..., list[str]]
) -> None:
    done = run_program(NO_GPU)
    assert done.out == [
        "Num GPUs Available: 0",
        "[LogicalDevice(name='/device:CPU:0', device_type='CPU')]",
        "1",
    ]
    assert done.log[0] == created()[0]
    cpu = "/job:localhost/replica:0/task:0/device:CPU:0"
    assert done.log[-1] == f"Using MirroredStrategy with devices ('{cpu}',)"
