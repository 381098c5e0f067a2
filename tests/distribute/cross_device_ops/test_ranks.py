"""Ranks: one a card, in the order of the first replicas, and every replica in one of them."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mirrored.backends.communication.connection import MULTI_RANK
from mirrored.distribute.cross_device_ops.ranks import every_replica_is_a_rank, ranks


@pytest.fixture(autouse=True)
def no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(MULTI_RANK, raising=False)


@pytest.mark.parametrize(
    ("cards", "expected"),
    [
        ("A", [(0,)]),
        ("AAA", [(0, 1, 2)]),
        ("AB", [(0,), (1,)]),
        ("AABB", [(0, 1), (2, 3)]),
        ("BABA", [(0, 2), (1, 3)]),
        ("ABCCA", [(0, 4), (1,), (2, 3)]),
    ],
)
def test_one_a_card(cards: str, expected: list[tuple[int, ...]]) -> None:
    found = ranks(cards)
    assert [rank.replicas for rank in found] == expected
    assert [rank.leader for rank in found] == [replicas[0] for replicas in expected]


@given(st.lists(st.sampled_from("ABCDE"), min_size=1, max_size=12))
def test_every_replica_is_in_one(cards: list[str]) -> None:
    found = ranks(cards)
    assert sorted(i for rank in found for i in rank.replicas) == list(range(len(cards)))
    assert all(len({cards[i] for i in rank.replicas}) == 1 for rank in found)
    assert len(found) == len(set(cards))
    assert [rank.leader for rank in found] == sorted(rank.leader for rank in found)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cards=st.lists(st.sampled_from("AB"), min_size=1, max_size=6))
def test_every_replica_where_the_environment_asks_for_it(
    monkeypatch: pytest.MonkeyPatch, cards: list[str]
) -> None:
    monkeypatch.setenv(MULTI_RANK, "1")
    assert [rank.replicas for rank in ranks(cards)] == [(i,) for i in range(len(cards))]


@pytest.mark.parametrize(("value", "expected"), [("", False), ("0", False), ("1", True)])
def test_the_setting(monkeypatch: pytest.MonkeyPatch, value: str, expected: bool) -> None:
    monkeypatch.setenv(MULTI_RANK, value)
    assert every_replica_is_a_rank() is expected
