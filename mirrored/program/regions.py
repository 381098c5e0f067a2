"""How regions are cut: into a shard for each thread, and shards into pieces that a cache holds.

What only exists while a piece is computed needs memory of one piece, a register, not of the whole.
"""

from mirrored.program.graph import Value
from mirrored.program.schedule import Region

# Elements that a region computes at a time: a few vectors of 64k floats fit a core's own cache.
# Shorter vectors are not cut: the calls would cost more than the cache saves.
_PIECE = 1 << 16
_UNCUT = 1 << 17
_LINE = 64  # Elements: shards begin where a cache line does, of whatever dtype.


def pieces(size: int, threads: int, thread: int) -> list[tuple[int, int]]:
    """Return where the pieces of one thread's shard of a vector begin and end.

    Args:
        size: The length of the vector.
        threads: How many threads share it.
        thread: The number of the thread.

    Example:
        >>> pieces(100, 2, 1)
        [(64, 100)]
    """
    share = -(-size // threads)
    share = -(-share // _LINE) * _LINE
    start, stop = min(thread * share, size), min((thread + 1) * share, size)
    step = _PIECE if stop - start > _UNCUT else max(stop - start, 1)
    return [(begin, min(begin + step, stop)) for begin in range(start, stop, step)]


def register_numbers(region: Region, local: set[Value]) -> dict[Value, int]:
    """Give the values that only a region's pieces have as few registers as they need.

    Args:
        region: The region.
        local: The values.
    """
    last: dict[Value, int] = {}
    for i, node in enumerate(region.nodes):
        for value in node.inputs:
            last[value.base] = i
    numbers: dict[Value, int] = {}
    free: list[int] = []
    for i, node in enumerate(region.nodes):
        inputs = [value.base for value in node.inputs]
        ending = {value for value in inputs if value in numbers and last[value] == i}
        # Before the result has its place: it may take over only what the op may overwrite.
        early = {
            value
            for value in ending
            if inputs.index(value) in node.op.may_alias
            and inputs.count(value) == 1
            and value.spec == node.output.spec
        }
        free += [numbers[value] for value in early]
        if node.output in local:
            numbers[node.output] = free.pop() if free else len(set(numbers.values()) | set(free))
        free += [numbers[value] for value in ending - early]
    return numbers
