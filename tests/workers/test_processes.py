"""How long another process has computed, and processes that cannot be seen."""

import time

import pytest

from mirrored.workers.processes import processor_ticks, this_process

this = this_process()
pytestmark = pytest.mark.skipif(this is None, reason="This system has no /proc.")


def test_a_process_that_computes_is_seen_to() -> None:
    before = processor_ticks(this)
    assert before is not None
    until = time.process_time() + 0.03  # The system counts hundredths of a second.
    while time.process_time() < until:
        pass
    after = processor_ticks(this)
    assert after is not None
    assert after > before


@pytest.mark.parametrize("changes", [{"started": -1}, {"namespace": "pid:[1]"}, {"number": -1}])
def test_another_process_is_not_mistaken_for_it(changes: dict[str, int | str]) -> None:
    assert this is not None
    assert processor_ticks(this._replace(**changes)) is None  # type: ignore[arg-type]
    assert processor_ticks(None) is None
