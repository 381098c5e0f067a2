"""Programs that place products by hand, and ask for devices that are not there or cannot do it.

The placement log of each is compared line by line.
"""

from collections.abc import Callable
from typing import Any

import pytest

FULL = "/job:localhost/replica:0/task:0/device:"

START = """
import mirrored as tf

tf.debugging.set_log_device_placement(True)
tf.config.set_soft_device_placement({soft})


def product():
    a = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    b = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    return tf.matmul(a, b)


"""
BY_DEFAULT = "print(product())\n"
INPUTS_ON_THE_CPU = """
with tf.device('/CPU:0'):
    a = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    b = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
c = tf.matmul(a, b)
print(c)
"""
ABSENT_GPU = """
try:
    with tf.device('/device:GPU:2'):
        print(product())
except RuntimeError as e:
    print(e)
"""
NO_KERNEL = """
c = tf.constant([[22.0, 28.0], [49.0, 64.0]])
try:
    with tf.device('/GPU:0'):
        d = tf.numpy_function(lambda x: x, [c], tf.float32)
        print(d.device)
    print(d)
except tf.errors.InvalidArgumentError as e:
    print(e)
"""
PRODUCT = ["mr.Tensor(", "[[22. 28.]", " [49. 64.]], shape=(2, 2), dtype=float32)"]


@pytest.mark.behaviour("placement-log")
@pytest.mark.parametrize(("gpus", "soft"), [(0, True), (2, True), (2, False)])
def test_a_product_goes_where_the_default_says(
    run_program: Callable[..., Any],
    created: Callable[..., list[str]],
    executing: Callable[..., list[str]],
    gpus: int,
    soft: bool,
) -> None:
    done = run_program(START.format(soft=soft) + BY_DEFAULT + INPUTS_ON_THE_CPU, gpus=gpus)
    assert done.out == PRODUCT * 2
    default = "GPU:0" if gpus else "CPU:0"
    assert done.log == created(*range(gpus)) + executing(
        *[f"_EagerConst {default}", f"_EagerConst {default}", f"MatMul {default}"],
        *["_EagerConst CPU:0", "_EagerConst CPU:0", f"MatMul {default}"],
    )


@pytest.mark.behaviour("absent-device")
@pytest.mark.parametrize(("gpus", "fallback"), [(2, "GPU:0"), (0, "CPU:0")])
def test_an_absent_gpu_with_soft_placement(
    run_program: Callable[..., Any],
    created: Callable[..., list[str]],
    executing: Callable[..., list[str]],
    gpus: int,
    fallback: str,
) -> None:
    done = run_program(START.format(soft=True) + ABSENT_GPU, gpus=gpus)
    assert done.out == PRODUCT
    assert done.log == created(*range(gpus)) + executing(
        f"_EagerConst {fallback}", f"_EagerConst {fallback}", f"MatMul {fallback}"
    )


@pytest.mark.behaviour("absent-device")
def test_an_absent_gpu_without_soft_placement(
    run_program: Callable[..., Any], created: Callable[..., list[str]]
) -> None:
    done = run_program(START.format(soft=False) + ABSENT_GPU, gpus=2)
    assert done.out == [
        f"{FULL}GPU:2 unknown device. All available devices [{FULL}CPU:0, {FULL}GPU:0, "
        f"{FULL}GPU:1]. Name one of these, or call set_soft_device_placement(True). "
        "[Op:_EagerConst]"
    ]
    assert done.log == created(0, 1)


@pytest.mark.behaviour("absent-kernel")
def test_an_op_without_a_gpu_kernel_with_soft_placement(
    run_program: Callable[..., Any],
    created: Callable[..., list[str]],
    executing: Callable[..., list[str]],
) -> None:
    done = run_program(START.format(soft=True) + NO_KERNEL, gpus=1)
    assert done.out == [f"{FULL}CPU:0", *PRODUCT]
    assert done.log == created(0) + executing("_EagerConst GPU:0", "PyFunc CPU:0")


@pytest.mark.behaviour("absent-kernel")
def test_an_op_without_a_gpu_kernel_without_soft_placement(
    run_program: Callable[..., Any],
    created: Callable[..., list[str]],
    executing: Callable[..., list[str]],
) -> None:
    done = run_program(START.format(soft=False) + NO_KERNEL, gpus=1)
    assert done.out == [
        f"Could not satisfy device specification '{FULL}GPU:0'. enable_soft_placement=0. "
        f"Supported device types [CPU]. All available devices [{FULL}CPU:0, {FULL}GPU:0]. Place "
        "the op on a supported type, or call set_soft_device_placement(True). [Op:PyFunc]"
    ]
    assert done.log == created(0) + executing("_EagerConst GPU:0")
