"""Random functions, recorded for the logical devices of cards, compute the bits of eager calls.

They go from device to device, share subexpressions, join and cut values, draw numbers, and read,
write and exchange variables; some steps have a guard that fails. The emulator's seed is drawn too.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from parts import one_of, others_of
from random_ops import BINARY, UNARY, Instruction, instructions

import mirrored as mr
from mirrored import devices, ops
from mirrored.backends.communication.connection import Connection
from mirrored.ops.hooks import active_recorder, recorded_by
from mirrored.ops.rng_state import ShardPosition, shard_position
from mirrored.program import GraphRecorder
from mirrored.program.executor import make_program
from mirrored.program.replay import GuardFailed
from mirrored.program.streamed import StreamedProgram

SHAPES = ((2, 3), (2, 3), (6,), (3, 2), (70,), ())
# Logical devices of each card.
LAYOUTS = ((1,), (2,), (3,), (4,), (1, 1), (2, 1), (2, 2))
STEPS = 5

Values = list[ops.Tensor]
KINDS = (
    "lane unary",
    "lane binary",
    "lane draw",
    "away unary",
    "away binary",
    "unary",
    "binary",
    "sum",
    "all-reduce",
    "all-reduce",
    "draw",
    "read",
    "write",
    "write",
    "swap",
    "guard",
)


@dataclass
class Function:
    """Carries out instructions on devices; called once, or once a step.

    Attributes:
        instructions: What it does.
        names: The devices.
        lanes: How many replicas run, each on a device of its own.
        variables: What it reads and writes.
        connection: What sums over the cards, where there are several.
        draws: A stream of its own.
        gradients: Whether it differentiates itself.
        guarded: The guards' values of the last call.
    """

    instructions: Sequence[Instruction]
    names: Sequence[str]
    lanes: int
    variables: Sequence[mr.Variable]
    gradients: bool
    connection: Connection | None = None
    draws: ops.SeedGenerator = field(default_factory=lambda: ops.SeedGenerator(5))
    guarded: Values = field(default_factory=list)

    def __call__(self, *inputs: ops.Tensor) -> Values:
        self._step = object()
        self.guarded = []
        if not self.gradients:
            return self._results(*inputs)
        with mr.GradientTape() as tape:
            tape.watch(list(inputs))
            results = self._results(*inputs)
            target = ops.add_n([ops.reduce_sum(each) for each in results])
        wanted = [*inputs, *self.variables]
        return [*results, *tape.gradient(target, wanted, unconnected_gradients="zero")]

    def _results(self, *inputs: ops.Tensor) -> Values:
        values = list(inputs)
        for kind, which, i, j in self.instructions:
            where, _, what = kind.rpartition(" ")
            with self._at(where, i, j):
                self._carry_out(what, which, i, j, values)
        return [values[-1], *values[len(inputs) :: 3]]

    @contextmanager
    def _at(self, where: str, i: int, j: int) -> Iterator[None]:
        """Be a replica on its device, or on another one, or where all replicas have met."""
        lane = i % self.lanes
        number = j if where == "away" else lane if where else i + j
        device = mr.device(self.names[number % len(self.names)])
        position = ShardPosition(self._step, lane) if where else ShardPosition()
        with device, shard_position(position):
            yield

    def _carry_out(self, what: str, which: int, i: int, j: int, values: Values) -> None:
        x = values[-1 - i % len(values)]
        alike = [each for each in values if each.shape == x.shape and each.dtype == x.dtype]
        variable = self.variables[j % len(self.variables)]
        if what == "unary":
            values.append(UNARY[which % len(UNARY)](x))
        elif what == "binary":
            values.append(BINARY[which % len(BINARY)](x, alike[j % len(alike)]))
        elif what == "sum":
            values.append(self._sum(alike[-3:]))
        elif what == "all-reduce":
            values += self._all_reduce(x, alike[j % len(alike)], which)
        elif what == "draw":
            draw = self.draws.normal if which % 2 else self.draws.uniform
            values.append(draw(SHAPES[j % len(SHAPES)]))
        elif what == "read":
            values.append(variable.read_value())
        elif what == "write":
            writable = [each for each in values if each.shape == variable.shape]
            if writable:
                value = writable[i % len(writable)]
                write = (variable.assign, variable.assign_add, variable.assign_sub)[which % 3]
                write(value * 0.5 if which % 2 else value)
        elif what == "swap":
            first, second = self.variables[0].read_value(), self.variables[1].read_value()
            self.variables[0].assign(second)
            self.variables[1].assign(first)
        elif what == "guard":
            # A number that is not finite now and then, as it is in some of the inputs.
            with mr.device(self.names[0]):
                self._guard(ops.reduce_sum(values[which % len(SHAPES)]))

    def _sum(self, tensors: Values) -> ops.Tensor:
        """Add tensors where they are, as replicas of one card are added."""
        recorder = active_recorder()
        with mr.device(tensors[0].device):
            if recorder is None or self.gradients:
                return ops.add_n(tensors)
            backends = [recorder.value_of(each).device.backend for each in tensors]
            if any(each.memory != backends[0].memory for each in backends):
                return ops.add_n(tensors)
            return recorder.sum_over_devices(tensors, devices.get_device(tensors[0].device))

    def _all_reduce(self, x: ops.Tensor, y: ops.Tensor, which: int) -> Values:
        """Sum something over the cards, in the order of the ranks, and leave the sum on each."""
        if self.connection is None or self.gradients:
            return []
        parts = []
        for rank, name in enumerate(self.connection.names):
            with mr.device(name):
                part = x if which % 5 == rank else (y if which % 3 else x) * float(rank + 1)
                parts.append(ops.identity(part))
        recorder = active_recorder()
        if recorder is not None:
            return recorder.all_reduce(parts, self.connection, what="parts", timeout=100.0)
        with mr.device(self.connection.names[0]):
            total = ops.add_n(parts)
        return [total.copy_to(each._device) for each in parts]

    def _guard(self, value: ops.Tensor) -> None:
        recorder = active_recorder()
        if recorder is not None:
            recorder.require_finite((value,))
        self.guarded.append(value)


def make_variables(names: Sequence[str]) -> list[mr.Variable]:
    rng = np.random.default_rng(1)
    made = []
    for number, shape in enumerate((*SHAPES, (2, 3), (6,))):
        with mr.device(names[number % len(names)]):
            made.append(mr.Variable(rng.normal(size=shape).astype(np.float32)))
    return made


def make_runs(spoilt: int | None) -> list[list[np.ndarray]]:
    """Return the inputs of each step; those of one of them are not all finite."""
    rng = np.random.default_rng(0)
    runs = [[rng.normal(size=each).astype(np.float32) for each in SHAPES] for _ in range(STEPS)]
    if spoilt is not None:
        runs[spoilt % STEPS][spoilt % len(SHAPES)][...] = np.nan
    return runs


class Recorded:
    """The program of a function, run step by step or as `fit` does it."""

    def __init__(self, function: Function, like: Sequence[np.ndarray]) -> None:
        recorder, names = GraphRecorder(), function.names
        inputs = []
        for number, array in enumerate(like):
            lane = number % function.lanes
            device = devices.get_device(names[lane % len(names)])
            inputs.append(recorder.input(ops.TensorSpec(array.shape, array.dtype), device, lane))
        with recorded_by(recorder):
            outputs = function(*inputs)
        self.graph = recorder.finish(outputs)
        self.program = make_program(self.graph, function.lanes)
        assert isinstance(self.program, StreamedProgram)

    def run(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Run one step on what the devices were given before it."""
        for value, target, array in zip(
            self.graph.inputs, self.program.inputs, arrays, strict=True
        ):
            value.device.backend.copy_between(array, target)
        self.program.run(1)
        return [
            value.device.backend.to_host(array)
            for value, array in zip(self.graph.outputs, self.program.outputs, strict=True)
        ]

    def replay(
        self, runs: Sequence[Sequence[np.ndarray]]
    ) -> tuple[list[list[np.ndarray]], int | None]:
        """Run steps; return what each left, and which one failed."""
        told: list[list[np.ndarray]] = []

        def feeds(inputs: Sequence[Any]) -> dict[int, Callable[[int], None]]:
            def feed(step: int) -> None:
                for target, array in zip(inputs, runs[step], strict=True):
                    target[...] = array

            return {0: feed}

        def after(outputs: Sequence[Any], step: int) -> bool:
            assert step == len(told)
            told.append([each.copy() for each in outputs])
            return True

        try:
            self.program.run(len(runs), feeds, after)
        except GuardFailed as failed:
            return told, failed.step
        return told, None


def values_of(variables: Sequence[mr.Variable]) -> list[np.ndarray]:
    return [each.numpy() for each in variables]


def eagerly(function: Function, arrays: Sequence[np.ndarray]) -> tuple[list[np.ndarray], bool]:
    """Return what a step gives, and whether it may write; one that may not has not written."""
    may_fail = any(kind == "guard" for kind, *_ in function.instructions)
    before = values_of(function.variables) if may_fail else []
    inputs = []
    for number, array in enumerate(arrays):
        with mr.device(function.names[number % function.lanes % len(function.names)]):
            inputs.append(ops.constant(array))
    results = [each.numpy() for each in function(*inputs)]
    if all(np.isfinite(each.numpy()).all() for each in function.guarded):
        return results, True
    for variable, value in zip(function.variables, before, strict=True):
        variable.assign(value)
    return results, False


def check(
    eager: Function, recorded: Function, runs: Any, in_turn: bool, bits: Any, check_plan: Any
) -> None:
    program = Recorded(recorded, runs[0])
    check_plan(program.graph, streams=True)
    recorded.draws.restore((5, 0))
    if in_turn and not program.graph.guards:
        for arrays in runs:
            expected, _ = eagerly(eager, arrays)
            assert bits(program.run(arrays)) == bits(expected)
            assert bits(values_of(recorded.variables)) == bits(values_of(eager.variables))
    left = list(runs)
    while left:
        told, failed = program.replay(left)
        for arrays, outputs in zip(left, told, strict=False):
            expected, going_on = eagerly(eager, arrays)
            assert going_on
            assert bits(outputs) == bits(expected)
        if failed is not None:
            assert failed == len(told)
            assert not eagerly(eager, left[failed])[1]
        assert bits(values_of(recorded.variables)) == bits(values_of(eager.variables))
        left = [] if failed is None else left[failed + 1 :]
        # Steps behind the one that failed made their draws too.
        recorded.draws.restore(eager.draws.state)


INSTRUCTIONS = instructions(KINDS, 30)
EXAMPLES = settings(
    max_examples=12,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

PARTS = pytest.mark.parametrize(
    "is_mine",
    [one_of(6), pytest.param(others_of(6), marks=pytest.mark.slow)],
    ids=["a sixth", "the others"],
)


@PARTS
@EXAMPLES
@given(
    instructions=INSTRUCTIONS,
    layout=st.sampled_from(LAYOUTS),
    with_cpu=st.booleans(),
    lanes=st.integers(1, 4),
    gradients=st.booleans(),
    spoilt=st.none() | st.integers(0, 29),
    in_turn=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_random_programs(
    instructions: list[Instruction],
    layout: tuple[int, ...],
    with_cpu: bool,
    lanes: int,
    gradients: bool,
    spoilt: int | None,
    in_turn: bool,
    seed: int,
    is_mine: Callable[[object], bool],
    cards: Any,
    bits: Any,
    check_plan: Any,
) -> None:
    if not is_mine((instructions, layout, lanes)):
        return
    names = [*cards.make(*layout, seed=seed), *(["CPU:0"] if with_cpu else [])]
    mr.config.experimental.enable_tensor_float_32_execution(False)
    eager, recorded = (
        Function(instructions, names, lanes, make_variables(names), gradients) for _ in range(2)
    )
    check(eager, recorded, make_runs(spoilt), in_turn, bits, check_plan)
    cards.emulator.finish()


@PARTS
@EXAMPLES
@given(
    instructions=INSTRUCTIONS,
    place=st.integers(0, 29),
    layout=st.sampled_from(((1, 1), (2, 1), (1, 1, 1))),
    lanes=st.integers(1, 4),
    spoilt=st.none() | st.integers(0, 29),
    in_turn=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_random_programs_with_sums_over_cards(
    instructions: list[Instruction],
    place: int,
    layout: tuple[int, ...],
    lanes: int,
    spoilt: int | None,
    in_turn: bool,
    seed: int,
    is_mine: Callable[[object], bool],
    cards: Any,
    bits: Any,
    check_plan: Any,
) -> None:
    """There is at least one, on streams of its own, beside what the replicas compute."""
    if not is_mine((instructions, layout, lanes)):
        return
    names = cards.make(*layout, seed=seed)
    mr.config.experimental.enable_tensor_float_32_execution(False)
    instructions = list(instructions)
    instructions.insert(place, ("all-reduce", seed, place, lanes))
    connection = cards.connected()
    eager, recorded = (
        Function(instructions, names, lanes, make_variables(names), False, connection)
        for _ in range(2)
    )
    check(eager, recorded, make_runs(spoilt), in_turn, bits, check_plan)
    connection.close()
    cards.emulator.finish()
