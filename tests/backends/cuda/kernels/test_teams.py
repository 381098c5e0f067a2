"""How blocks are divided: within a card's limits, and with a thread for every row."""

from case_table import cases
from hypothesis import given
from hypothesis import strategies as st

from mirrored.backends.cuda.kernels import teams

SIZES = st.one_of(st.integers(0, 100), st.integers(0, 1 << 40))


@given(SIZES, SIZES, st.booleans())
def test_a_block_is_what_a_card_and_the_text_take(
    length: int, side_by_side: int, along: bool
) -> None:
    split = teams.teams(length, along=along, side_by_side=side_by_side)
    assert split.height.bit_count() == split.rows.bit_count() == 1
    (threads, *others) = split.threads
    assert others == [1, 1]
    assert threads <= 512
    if along:  # Its threads shuffle, and that by whole warps.
        assert threads % 32 == 0


@given(st.integers(1, 1 << 40), st.integers(1, 300), SIZES)
def test_blocks_have_a_team_for_each_row(rows: int, parts: int, length: int) -> None:
    split = teams.teams(length, along=True)
    blocks, *others = split.blocks(rows, parts)
    assert others == [1, 1]
    assert blocks == 2**31 - 1 or blocks * split.rows >= rows * parts
    assert (blocks - parts) * split.rows < rows * parts


@cases(("length", "threads"), [(1, 1), (10, 16), (32, 32), (256, 32), (257, 64), (10**6, 512)])
def test_a_short_row_has_a_warp_at_most_and_a_long_one_a_block(length: int, threads: int) -> None:
    assert teams.teams(length, along=True).height == threads


@cases(
    ("length", "columns", "height", "rows"),
    [(256, 10, 32, 16), (4096, 512, 16, 32), (2, 4096, 1, 128), (10**6, 1, 512, 1)],
)
def test_columns_are_read_a_warp_wide(length: int, columns: int, height: int, rows: int) -> None:
    split = teams.teams(length, along=False, side_by_side=columns)
    assert (split.height, split.rows) == (height, rows)


@cases(
    ("split", "states"),
    [
        (teams.Teams(32, 4, True), 0),  # A warp's threads pass on what they have.
        (teams.Teams(64, 2, True), 4),
        (teams.Teams(512, 1, True), 16),
        (teams.Teams(16, 32, False), 512),
        (teams.Teams(1, 128, False), 0),
    ],
)
def test_shared_memory_is_as_much_as_the_text_uses(split: teams.Teams, states: int) -> None:
    assert split.shared(8) == 8 * states
