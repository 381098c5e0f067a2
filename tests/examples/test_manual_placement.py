"""Held here: by hand, each product is on its own GPU and the sum on the CPU."""

import pytest

FULL_NAME = "/job:localhost/replica:0/task:0/device"


def test_four_products_and_their_sum(run_example) -> None:
    done = run_example("manual_placement.py")
    assert done.stdout == (
        "No GPU here: simulating four in host memory.\n"
        + "".join(f"product on {FULL_NAME}:GPU:{index}\n" for index in range(4))
        + f"sum on {FULL_NAME}:CPU:0\n"
        + "mr.Tensor(\n[[ 88. 112.]\n [196. 256.]], shape=(2, 2), dtype=float32)\n"
    )


@pytest.mark.parametrize(("gpus", "first_row"), [(1, "[[22. 28.]"), (2, "[[ 44.  56.]")])
def test_gpus_that_are_there_are_used(run_example, gpus: int, first_row: str) -> None:
    done = run_example("manual_placement.py", MIRRORED_SIMULATED_GPUS=str(gpus))
    assert "simulating" not in done.stdout
    assert done.stdout.count("product on ") == gpus
    assert first_row in done.stdout
