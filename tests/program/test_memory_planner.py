"""Where values live: temporaries share memory, results overwrite what dies, writes are in place."""

from collections.abc import Callable
from typing import Any

import numpy as np
from case_table import cases

import mirrored as mr
from mirrored import devices, ops
from mirrored.program.concurrency import Threads
from mirrored.program.memory_planner import ALIGNMENT, plan_memory
from mirrored.program.schedule import FusedGroup, make_schedule

SIZE = 64
X = np.zeros((SIZE, SIZE), np.float32)
BYTES = X.nbytes


def planned(graph: Any) -> Any:
    return plan_memory(graph, make_schedule(graph, Threads()))


def arena(recorded: Any) -> int:
    """Return the bytes that a program takes for what is no constant."""
    arenas = planned(recorded.graph).arenas
    return sum(nbytes for (_, replica), nbytes in arenas.items() if replica != -2)


# The largest number of matrices that are needed at one time, the inputs included.
NEEDS: dict[str, tuple[int, Callable[[ops.Tensor], list[ops.Tensor]]]] = {
    "a chain that overwrites itself": (2, lambda x: [-ops.exp(ops.tanh(x))]),
    "products, which cannot": (3, lambda x: [x @ x @ x @ x @ x @ x]),
    "two results": (3, lambda x: [ops.tanh(x), ops.exp(x)]),
    "a value that is needed later": (2, lambda x: [(y := ops.tanh(x)) * ops.exp(y)]),
    "views of one": (2, lambda x: [ops.reshape(ops.tanh(x), (-1 % 4096 + 1,))[:SIZE]]),
    "joined rows, computed in place": (3, lambda x: [ops.concat([ops.tanh(x), -x], axis=0)]),
}


@cases(("matrices", "function"), NEEDS.values(), ids=NEEDS)
def test_how_much_memory_is_needed(
    matrices: int, function: Callable[[ops.Tensor], list[ops.Tensor]], record: Any, check_plan: Any
) -> None:
    recorded = record(function, [X])
    # Between two of them is a gap of a cache line.
    assert matrices * BYTES <= arena(recorded) < matrices * (BYTES + ALIGNMENT)
    check_plan(recorded.graph)


def test_blocks_begin_where_cache_lines_do(record: Any) -> None:
    x = np.zeros((5,), np.float32)
    recorded = record(lambda x: [ops.tanh(x), ops.exp(x), x[1:] * 2.0, ops.reduce_sum(x)], [x])
    arrays = [*recorded.program.inputs, *recorded.program.outputs]
    assert all(array.ctypes.data % ALIGNMENT == 0 for array in arrays)


def test_a_programs_memory_is_counted_and_given_back(record: Any) -> None:
    from mirrored.program import Program

    graph = record(lambda x: [ops.tanh(x) @ x], [X]).graph
    pool = devices.get_device("CPU:0").pool
    before = pool.current
    program = Program(graph)
    assert 3 * BYTES <= pool.current - before <= 3 * BYTES + 4 * ALIGNMENT
    pool.reset_peak()
    held = pool.current
    program.run(5)
    assert pool.peak == held  # A step allocates nothing.
    del program
    assert pool.current == before


def test_programs_of_one_memory_share_it(record: Any) -> None:
    from mirrored.program import Arenas, Program

    small, large = (
        record(lambda x: [ops.tanh(x) @ ops.transpose(x)], [np.zeros((n, n), np.float32)]).graph
        for n in (8, SIZE)
    )
    pool, memory = devices.get_device("CPU:0").pool, Arenas()
    before = pool.current
    first = Program(large, memory=memory)
    taken = pool.current - before
    second = Program(small, memory=memory)
    assert pool.current - before == taken
    first.inputs[0][...] = second.inputs[0][...] = 0
    del first, second, memory
    assert pool.current == before


def test_a_constant_outlasts_other_programs(record: Any) -> None:
    from mirrored.program import Arenas, Program

    memory, rng = Arenas(), np.random.default_rng(0)
    table = rng.normal(size=(SIZE, SIZE)).astype(np.float32)
    graphs = [
        record(lambda x, k=k: [x + ops.constant(table) * k], [X]).graph for k in (1.0, 2.0, 3.0)
    ]
    programs = [Program(graph, memory=memory) for graph in graphs]
    for _ in range(2):
        for k, program in enumerate(programs, start=1):
            program.inputs[0][...] = 1
            program.run(1)
            np.testing.assert_array_equal(program.outputs[0], 1 + table * np.float32(k))


# ------------------------------------------------------------------------------ variables

# Whether the new value can be computed right where the variable lives.
WRITES: dict[str, tuple[bool, Callable[[ops.Tensor, mr.Variable], Any]]] = {
    "a sum": (True, lambda x, v: v.assign_add(x)),
    "a chain": (True, lambda x, v: v.assign(ops.tanh(v * 0.5) + x)),
    "a product of it": (False, lambda x, v: v.assign(v @ x)),
    "what is read later": (False, lambda x, v: [v.read_value(), v.assign(x * 2.0)][0]),
    "its rows turned": (False, lambda x, v: v.assign(ops.transpose(v))),
    "something else": (True, lambda x, v: v.assign(x @ x)),
}


@cases(("in_place", "write"), WRITES.values(), ids=WRITES)
def test_writes(in_place: bool, write: Any, record: Any, check_plan: Any) -> None:
    rng = np.random.default_rng(0)
    start, x = (rng.normal(size=(4, 4)).astype(np.float32) for _ in range(2))
    eager, recorded_one = mr.Variable(start), mr.Variable(start)

    def function(v: mr.Variable, x: ops.Tensor) -> list[ops.Tensor]:
        before = write(x, v)
        return [x * 2.0 if before is v else before * 1.0]

    recorded = record(lambda x: function(recorded_one, x), [x])
    check_plan(recorded.graph)
    assert (not planned(recorded.graph).commits) == in_place
    for _ in range(3):
        (expected,) = function(eager, ops.constant(x))
        np.testing.assert_array_equal(recorded(x)[0], expected.numpy())
        np.testing.assert_array_equal(recorded_one.numpy(), eager.numpy())


def test_one_element_is_not_written_over(record: Any, check_plan: Any) -> None:
    """NumPy takes longer there."""
    counter = mr.Variable([1.0])
    recorded = record(lambda x: [counter.assign_add(x) * 1.0], [np.ones(1, np.float32)])
    check_plan(recorded.graph)
    assert planned(recorded.graph).commits
    recorded(np.ones(1, np.float32))
    assert counter.numpy() == [2.0]


def test_what_another_replica_reads_is_not_overwritten_beside_it(
    record: Any, as_replica: Callable[[int], Any], check_plan: Any
) -> None:
    """Both read it in one phase, in which they run side by side."""

    def function(x: ops.Tensor, y: ops.Tensor) -> list[ops.Tensor]:
        with as_replica(0):
            first = ops.tanh(x)
        with as_replica(2):
            second = ops.tanh(y)
            total = first + second  # The last to read it by the order on one thread.
        with as_replica(1):
            other = ops.exp(second)
            return [ops.tanh(total), first, other]

    recorded = record(function, [X, X], replicas=[0, 2])
    check_plan(recorded.graph)


def test_results_of_a_group_overwrite_what_it_reads_last(record: Any, check_plan: Any) -> None:
    """Also where others of the group come behind: it takes turns, piece by piece."""

    def function(x: ops.Tensor) -> list[ops.Tensor]:
        first = ops.tanh(ops.reduce_sum(x, axis=0))
        return [first, ops.exp(first) * 2.0]

    graph = record(function, [X]).graph
    (group,) = [each for each in make_schedule(graph, Threads()).phases() if each.nodes[1:]]
    assert isinstance(group, FusedGroup)
    plan = check_plan(graph)
    (total,) = [node.output for node in graph.nodes if node.op.name == "Sum"]
    assert plan.blocks[total] is plan.blocks[graph.outputs[0]]
