"""A program that times a matrix product on the device that its command line names.

All that it prints but the time is looked at.
"""

import re
from collections.abc import Callable
from typing import Any

import pytest

PROGRAM = """
import sys
from datetime import datetime

import mirrored as tf

device_name = '/GPU:0' if sys.argv[1] == 'gpu' else '/CPU:0'
shape = (int(sys.argv[2]), int(sys.argv[2]))

tf.debugging.set_log_device_placement(True)
with tf.device(device_name):
    random_matrix = tf.random.uniform(shape=shape, minval=0, maxval=1)
    dot_operation = tf.matmul(random_matrix, tf.transpose(random_matrix))
    sum_operation = tf.reduce_sum(dot_operation)

start_time = datetime.now()
result = sum_operation.numpy()
print('Sum:', result)
print('Shape:', shape, 'Device:', device_name)
print('Time taken:', datetime.now() - start_time)
"""


@pytest.mark.parametrize(
    ("kind", "gpus", "device"), [("gpu", 1, "GPU:0"), ("cpu", 1, "CPU:0"), ("gpu", 0, "CPU:0")]
)
def test_a_product_is_timed_on_the_device_asked_for(
    run_program: Callable[..., Any],
    created: Callable[..., list[str]],
    executing: Callable[..., list[str]],
    kind: str,
    gpus: int,
    device: str,
) -> None:
    done = run_program(PROGRAM, kind, 200, gpus=gpus)
    total, shape, time = done.out
    # The sum over k of the square of a column's sum: of 200 uniform numbers, 100 on average.
    assert float(total.removeprefix("Sum: ")) == pytest.approx(200 * 100.0**2, rel=0.05)
    assert shape == f"Shape: (200, 200) Device: /{kind.upper()}:0"
    assert re.fullmatch(r"Time taken: 0:00:\d\d(\.\d+)?", time)
    assert done.log == created(*range(gpus)) + executing(
        *[f"{op} {device}" for op in ("RandomUniform", "Transpose", "MatMul", "Sum")]
    )
