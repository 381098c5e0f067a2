"""Variables that are made inside replicas: one for all of them. The numbers are TensorFlow's."""

from typing import Any

import pytest
from listing import listed

import mirrored as mr
from mirrored.distribute import MirroredStrategy, get_replica_context

SUM = mr.VariableAggregation.SUM


def replica() -> Any:
    return get_replica_context().replica_id_in_sync_group


def test_one_for_all(strategy: MirroredStrategy) -> None:
    made: list[Any] = []

    def program() -> Any:
        get_replica_context().all_reduce("sum", mr.constant(1.0))  # Replicas may meet before.
        made.append(mr.Variable(lambda: mr.constant(3.0 + replica()), name="v"))
        made.append(mr.Variable(2.0, name="v"))
        with mr.GradientTape() as tape:
            y = made[-2] * made[-2] * float(replica() + 1)
        return tape.gradient(y, made[-2])

    found = strategy.run(program)
    first, second = made[:2]
    assert [each is first for each in made] == [True, False] * 3
    assert [copy.name for copy in first.copies] == ["v:0", "v/replica_1:0", "v/replica_2:0"]
    assert first is not second
    assert listed(list(found.values)) == [6.0, 12.0, 18.0]
    strategy.run(program)
    assert made[6] is not first  # Another run makes others, as Python does.


@pytest.mark.parametrize("recorded", [False, True])
def test_it_is_kept_from_run_to_run(strategy: MirroredStrategy, recorded: bool) -> None:
    made: list[Any] = []

    def program(x: Any) -> Any:
        if not made:
            made.append(mr.Variable(3.0, aggregation=SUM))
        made[0].assign_add(x * (replica() + 1.0))
        return made[0] * 1.0

    def run(x: Any) -> Any:
        return strategy.run(program, (x,))

    step = mr.function(run) if recorded else run
    found = [listed(list(step(mr.constant(x)).values)) for x in (1.0, 2.0)]
    assert found == [[9.0] * 3, [21.0] * 3]
    assert len(made) == 1


def test_brought_together_on_reads(strategy: MirroredStrategy) -> None:
    made: list[Any] = []

    def program() -> None:
        on_read = mr.VariableSynchronization.ON_READ
        made.append(mr.Variable(0.0, synchronization=on_read, aggregation=SUM))
        made[-1].assign_add(replica() + 1.0)

    strategy.run(program)
    assert float(made[0]) == 6.0


def test_names_in_another_order(strategy: MirroredStrategy) -> None:
    def program() -> Any:
        names = ["a", "b"] if replica() else ["b", "a"]
        made = {name: mr.Variable(float(name == "a"), name=name) for name in names}
        return made["a"] * 1.0

    assert listed(list(strategy.run(program).values)) == [1.0, 1.0, 1.0]


def test_the_first_replica_makes_it(strategy: MirroredStrategy) -> None:
    found = strategy.run(lambda: 5.0 if replica() else float(mr.Variable(1.0)))
    assert found.values == (1.0, 5.0, 5.0)
    with pytest.raises(RuntimeError, match="which replica 1 makes and the first replica does not"):
        strategy.run(lambda: mr.Variable(1.0) if replica() else None)
    with pytest.raises(RuntimeError, match="mismatching name on device 2"):
        strategy.run(lambda: [mr.Variable(1.0) for _ in range(1 + replica() // 2)])
