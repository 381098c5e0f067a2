"""Fused groups are cut into a shard for each thread, and shards into pieces, without a gap."""

import itertools

from case_table import cases

from mirrored.program.kernel_fusion import pieces


@cases("threads", [1, 2, 3, 8])
@cases("size", [2, 63, 64, 65, 1000, 131_072, 131_073, 262_145, 1_000_003])
def test_pieces_cover_a_vector_once(size: int, threads: int) -> None:
    shards = [pieces(size, threads, thread) for thread in range(threads)]
    flat = [piece for shard in shards for piece in shard]
    assert flat[0][0] == 0
    assert flat[-1][1] == size
    assert all(before[1] == after[0] for before, after in itertools.pairwise(flat))
    assert all(begin < end for begin, end in flat)
    # Shards begin where cache lines do, and are as long as each other but for the last ones.
    assert all(shard[0][0] % 64 == 0 for shard in shards if shard)
    assert max(end - begin for begin, end in flat) <= 1 << 17
