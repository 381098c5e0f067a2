"""The library as a contender, on networks with convolutions: it does the reference's work."""

import pytest
from case_table import cases
from small_images import SMALL_IMAGES

from benchmarks.contenders.mirrored_ import Mirrored
from benchmarks.reference import Reference
from benchmarks.workloads import Workload, make_data


@pytest.mark.parametrize("replicas", [1, 2])
@cases("workload", SMALL_IMAGES)
def test_losses_are_those_of_the_reference(workload: Workload, replicas: int) -> None:
    x, y = make_data(workload)
    contender = Mirrored(workload, replicas)
    losses = contender.fit(contender.load(x, y), 2, shuffle=False)
    assert losses == pytest.approx(Reference(workload).fit(x, y, 2), rel=1e-5)
