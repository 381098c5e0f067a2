"""The table of hashes: all runs of one policy have the same."""

import pytest

from benchmarks import same_bits


def test_runs_of_a_policy_have_the_same_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_X", "_Y"):  # A whole batch, and one that leaves replicas empty.
        monkeypatch.setattr(same_bits, name, getattr(same_bits, name)[:68])
    single, mixed = same_bits.rows([3], epochs=1)
    assert (single[:2], mixed[:2]) == (["float32", "3"], ["mixed_bfloat16", "3"])
    assert [len(set(row[2:])) for row in (single, mixed)] == [1, 1]
    assert single[2] != mixed[2]
