"""Random functions, recorded and run again and again, compute the bits of eager calls.

They share subexpressions, look at values in other shapes, join and cut them, overwrite what dies,
and read, write and exchange variables, on one to three replicas.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_ops import BINARY, UNARY, Instruction, instructions

import mirrored as mr
from mirrored import ops
from mirrored.ops.hooks import active_recorder
from mirrored.program import kernel_fusion

pytestmark = pytest.mark.usefixtures("one_blas_thread", "short_pieces")


@pytest.fixture
def short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut vectors of more than 40 elements into pieces, as otherwise those of 128k are."""
    monkeypatch.setattr(kernel_fusion, "_PIECE", 32)
    monkeypatch.setattr(kernel_fusion, "_UNCUT", 40)
    monkeypatch.setattr(kernel_fusion, "_SHARED_FROM", 2)


SHAPES = ((2, 3), (2, 3), (6,), (3, 2), (130,), ())
Values = list[ops.Tensor]


def like(values: Values, shape: tuple[int, ...] | None, index: int) -> ops.Tensor | None:
    """Return one of the values of a shape, or of any."""
    pool = [each for each in values if shape is None or each.shape == shape]
    return pool[index % len(pool)] if pool else None


def interpret(
    instructions: Sequence[Instruction],
    as_replica: Callable[[int], Any],
    lanes: int,
    variables: Sequence[mr.Variable],
    *,
    gradients: bool,
) -> Callable[..., Values]:
    """Return a function of tensors that carries out instructions, and may differentiate itself."""

    def differentiated(*inputs: ops.Tensor) -> Values:
        with mr.GradientTape() as tape:
            tape.watch(list(inputs))
            results = function(*inputs)
            target = ops.add_n([ops.reduce_sum(each) for each in results])
        found = tape.gradient(target, [*inputs, *variables], unconnected_gradients="zero")
        return [*results, *found]

    def function(*inputs: ops.Tensor) -> Values:
        values = list(inputs)
        for kind, which, i, j in instructions:
            with as_replica(i % lanes) if kind.startswith("lane") else mr.device(None):
                carry_out(kind.removeprefix("lane "), which, i, j, values)
        return [values[-1], *values[len(inputs) :: 3]]

    def carry_out(kind: str, which: int, i: int, j: int, values: Values) -> None:
        x = values[-1 - i % len(values)]
        variable = variables[j % len(variables)]
        if kind == "unary":
            values.append(UNARY[which % len(UNARY)](x))
        elif kind == "binary":
            y = like(values, x.shape, j)
            values.append(BINARY[which % len(BINARY)](x, x if y is None else y))
        elif kind == "read":
            values.append(variable.read_value())
        elif kind == "write":
            value = like(values, variable.shape, i)
            if value is not None:
                write = (variable.assign, variable.assign_add, variable.assign_sub)[which % 3]
                write(value * 0.5 if which % 2 else value)
        elif kind == "swap":
            first, second = variables[0].read_value(), variables[1].read_value()
            variables[0].assign(second)
            variables[1].assign(first)
        elif kind == "guard":
            recorder = active_recorder()
            if recorder is not None:
                recorder.require_finite((ops.reduce_sum(values[0]),))

    return differentiated if gradients else function


KINDS = ["lane unary", "lane binary", "unary", "binary", "read", "write", "swap", "guard"]


def make_variables() -> list[mr.Variable]:
    rng = np.random.default_rng(1)
    return [mr.Variable(rng.normal(size=shape).astype(np.float32)) for shape in SHAPES]


PROGRAMS = st.tuples(instructions(KINDS, 40), st.integers(1, 3), st.booleans(), st.booleans())
Check = Callable[[tuple[list[Instruction], int, bool, bool]], None]


def examples(count: int) -> settings:
    """Return the settings of a test of so many programs."""
    return settings(
        max_examples=count,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )


@pytest.fixture
def check(
    as_replica: Callable[[int], Any], record: Any, bits: Any, check_plan: Callable[[Any], None]
) -> Check:
    """Return what holds a recorded program to the eager one, in three runs."""
    rng = np.random.default_rng(0)
    runs = [[rng.normal(size=each).astype(np.float32) for each in SHAPES] for _ in range(3)]

    def check(program: tuple[list[Instruction], int, bool, bool]) -> None:
        instructions, lanes, on_threads, gradients = program
        eager, recorded = make_variables(), make_variables()
        function, same = (
            interpret(instructions, as_replica, lanes, each, gradients=gradients)
            for each in (eager, recorded)
        )
        replicas = [i % lanes for i in range(len(SHAPES))]
        made = record(same, runs[0], replicas=replicas, threads=lanes if on_threads else 1)
        check_plan(made.graph)
        try:
            for arrays in runs:
                expected = [each.numpy() for each in function(*map(ops.constant, arrays))]
                assert bits(made(*arrays)) == bits(expected)
                assert bits([v.numpy() for v in recorded]) == bits([v.numpy() for v in eager])
        finally:
            made.pool.close()

    return check


@examples(20)
@given(program=PROGRAMS)
def test_random_programs(program: Any, check: Check) -> None:
    check(program)


@pytest.mark.slow
@examples(80)
@given(program=PROGRAMS)
def test_many_random_programs(program: Any, check: Check) -> None:
    check(program)
