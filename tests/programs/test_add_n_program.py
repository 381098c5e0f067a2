"""A program that computes the same product on each of four GPUs and their sum on the CPU.

Its result and its placement log are compared line by line.
"""

from collections.abc import Callable
from typing import Any

import pytest

PROGRAM = """
import mirrored as tf

tf.debugging.set_log_device_placement(True)

gpus = tf.config.list_logical_devices('GPU')
c = []
for gpu in gpus:
    with tf.device(gpu.name):
        a = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        b = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        c.append(tf.matmul(a, b))
with tf.device('/CPU:0'):
    matmul_sum = tf.add_n(c)
print(matmul_sum)
print([each.device for each in c], matmul_sum.device)
"""


@pytest.mark.behaviour("four-gpus-by-hand")
def test_four_products_and_their_sum(
    run_program: Callable[..., Any],
    created: Callable[..., list[str]],
    executing: Callable[..., list[str]],
) -> None:
    done = run_program(PROGRAM, gpus=4)
    full = "/job:localhost/replica:0/task:0/device"
    assert done.out == [
        "mr.Tensor(",
        "[[ 88. 112.]",
        " [196. 256.]], shape=(2, 2), dtype=float32)",
        f"{[f'{full}:GPU:{i}' for i in range(4)]} {full}:CPU:0",
    ]
    assert done.log == created(0, 1, 2, 3) + executing(
        *[f"{op} GPU:{i}" for i in range(4) for op in ("_EagerConst", "_EagerConst", "MatMul")],
        "AddN CPU:0",
    )
