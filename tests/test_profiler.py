"""Traces say what ran, where and for how long, and change nothing of it.

No test depends on how long anything takes: only on order, counts and bytes.
"""

import itertools
import json
import os
import pathlib
import re
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases
from forked_programs import run_program

import mirrored as mr
from mirrored import devices, profiler
from mirrored.devices.work_timing import observers
from mirrored.ops.hooks import recorded_by
from mirrored.ops.spec import TensorSpec
from mirrored.profiling import step_trace
from mirrored.program import GraphRecorder, Program
from mirrored.variables import DeviceVariable

ROOT = pathlib.Path(__file__).resolve().parents[1]
Simulate = Callable[..., list[Any]]
RULE_OF_ROUNDING = 1e-3  # Microseconds: a nanosecond, which is what clocks count.


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "trace.json"


def read(path: pathlib.Path) -> dict[str, Any]:
    trace: dict[str, Any] = json.loads(path.read_text())
    return trace


def slices(path: pathlib.Path) -> list[dict[str, Any]]:
    return [event for event in read(path)["traceEvents"] if event["ph"] == "X"]


def rows(path: pathlib.Path) -> dict[str, list[dict[str, Any]]]:
    """Return each row's slices in order, by the row's name."""
    events = read(path)["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names.values()}
    for event in sorted(slices(path), key=lambda event: event["ts"]):
        found[names[event["tid"]]].append(event)
    return found


def names(row: list[dict[str, Any]]) -> set[str]:
    return {event["name"] for event in row}


def check_format(path: pathlib.Path) -> None:
    """Hold a file to the trace event format, and its rows to slices that do not overlap."""
    trace = read(path)
    assert set(trace) == {"displayTimeUnit", "otherData", "traceEvents"}
    named = [e["tid"] for e in trace["traceEvents"] if e["name"] == "thread_name"]
    assert len(named) == len(set(named)) == len(rows(path))
    for event in trace["traceEvents"]:
        assert {"name", "ph", "pid", "tid", "args"} <= set(event)
        assert event["pid"] == os.getpid()
        if event["ph"] == "M":
            continue
        assert event["ph"] == "X"
        assert event["tid"] in named
        assert event["ts"] >= 0
        assert event["dur"] >= 0
        assert event["cat"] in {"compute", "collective", "transfer", "data", "wait"}
        assert {"op", "device", "bytes in", "bytes out"} <= set(event["args"])
    for row in rows(path).values():
        for before, after in itertools.pairwise(row):
            assert before["ts"] + before["dur"] <= after["ts"] + RULE_OF_ROUNDING
        wall = row[-1]["ts"] + row[-1]["dur"] - row[0]["ts"]
        assert sum(event["dur"] for event in row) <= wall + RULE_OF_ROUNDING * len(row)


def trained(
    execution: str = "serial", replicas: int = 2, trace: pathlib.Path | None = None
) -> list[Any]:
    """Train a small model on seeded data, under a trace where there is one; return the weights."""
    mr.random.set_seed(3)
    executor = "serial" if execution == "eager" else execution
    found = [f"GPU:{i}" for i in range(replicas)]
    strategy = mr.MirroredStrategy(found, executor=executor)
    with strategy.scope():
        model = mr.Sequential(
            [
                mr.layers.Input((5,)),
                mr.layers.Dense(16, "relu"),
                mr.layers.Dropout(0.25),
                mr.layers.Dense(3),
            ]
        )
        model.compile(optimizer="adam", loss="mse", run_eagerly=execution == "eager")
    x, y = np.random.default_rng(4).normal(size=(2, 22, 5)).astype("float32")
    options: dict[str, Any] = {"batch_size": 8, "epochs": 2, "verbose": 0}
    if trace is None:
        model.fit(x, y[:, :3], **options)
    else:
        with profiler.trace(trace):
            model.fit(x, y[:, :3], **options)
    strategy.close()
    return list(model.get_weights())


def table() -> dict[str, list[float]]:
    """Return the numbers of each line of the summary's table, by its first word or words."""
    lines: list[str] = []
    profiler.summary(print_fn=lines.append)
    body = [line for line in lines[4:] if not line.startswith("---")]
    found = [re.split(r"\s{2,}", line.strip()) for line in body if "missing" not in line]
    return {name: [float(cell.replace(",", "")) for cell in cells] for name, *cells in found}


# ---------------------------------------------------------------------------- training

_traced: dict[str, tuple[pathlib.Path, dict[str, list[float]]]] = {}


@pytest.fixture(params=["serial", "threads", "eager"])
def execution(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def traced(
    simulate: Simulate, tmp_path_factory: pytest.TempPathFactory, execution: str
) -> tuple[pathlib.Path, dict[str, list[float]]]:
    """Return the trace of training on two replicas, done once, and the table that summed it up."""
    if execution not in _traced:
        simulate(2)
        path = tmp_path_factory.mktemp("traced") / "trace.json"
        trained(execution, trace=path)
        _traced[execution] = path, table()
    return _traced[execution]


def test_training_on_two_replicas(traced: tuple[pathlib.Path, Any], execution: str) -> None:
    path, _ = traced
    check_format(path)
    found = rows(path)
    for replica in range(2):
        row = found[f"replica {replica} (GPU:{replica})"]
        assert {"MatMul", "Relu", "RandomUniform"} <= names(row)
        kernels = [event for event in row if event["name"] == "MatMul"]
        assert {event["args"]["device"] for event in kernels} == {f"GPU:{replica}"}
        assert {event["cat"] for event in kernels} == {"compute"}
    reduced = [event for event in slices(path) if event["name"] == "AllReduce"]
    assert {(event["cat"], event["args"]["op"]) for event in reduced} == {("collective", "AddN")}
    between = [event for event in slices(path) if event["name"].startswith("Memcpy")]
    assert {event["cat"] for event in between} == {"transfer"}
    assert any(event["args"]["device"] == "GPU:1" for event in between)
    if execution != "eager":
        copies = [e["args"] for e in between if e["name"] == "Memcpy DtoD"]
        assert ("GPU:0", "GPU:1") in {(args["from"], args["device"]) for args in copies}
        for replica in range(2):
            fed = [e for e in found[f"replica {replica} (GPU:{replica})"] if e["name"] == "Infeed"]
            assert len(fed) == 6  # Three steps an epoch.
            assert fed[0]["args"]["bytes out"] == 4 * (5 + 3) * 4


def test_waits_are_those_of_threads(traced: tuple[pathlib.Path, Any], execution: str) -> None:
    path, _ = traced
    waits = [event for event in slices(path) if event["cat"] == "wait"]
    if execution != "threads":
        assert waits == []
        return
    assert names(waits) == {"wait"}
    by_row = [
        sum(event["cat"] == "wait" for event in row)
        for name, row in rows(path).items()
        if name.startswith("replica")
    ]
    assert len(by_row) == 2
    assert by_row[0] == by_row[1] >= 6  # At least one in every step, and all meet in each.


@pytest.mark.parametrize("replicas", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_weights_are_those_of_training_without_a_trace(
    simulate: Simulate, path: pathlib.Path, execution: str, replicas: int
) -> None:
    simulate(3)
    plain = trained(execution, replicas)
    traced = trained(execution, replicas, path)
    assert [w.tobytes() for w in traced] == [w.tobytes() for w in plain]
    check_format(path)


def test_one_replica_does_everything_in_its_row(simulate: Simulate, path: pathlib.Path) -> None:
    simulate(1)
    trained(replicas=1, trace=path)
    found = rows(path)
    assert "all replicas" not in found
    assert {"MatMul", "Sqrt", "CheckNumerics", "Infeed"} <= names(found["replica 0 (GPU:0)"])
    assert "AllReduce" not in names(slices(path))


def test_evaluate_and_predict_are_traced(simulate: Simulate, path: pathlib.Path) -> None:
    simulate(2)
    strategy = mr.MirroredStrategy()
    with strategy.scope():
        model = mr.Sequential([mr.layers.Input((5,)), mr.layers.Dense(1)])
        model.compile("sgd", "mse")
    x = np.random.default_rng(0).normal(size=(6, 5)).astype("float32")
    with profiler.trace(path):
        model.predict(x, verbose=0)
    check_format(path)
    assert "MatMul" in names(rows(path)["replica 1 (GPU:1)"])
    with profiler.trace(path):
        model.evaluate(x, x[:, :1], verbose=0)
    check_format(path)
    assert {"MatMul", "Sum"} <= names(rows(path)["replica 1 (GPU:1)"])


# ---------------------------------------------------------------------------- programs


def exp_program(size: int = 4) -> Program:
    recorder = GraphRecorder()
    device = devices.get_device("CPU:0")
    x = recorder.input(TensorSpec((size,), np.dtype("float32")), device, 0)
    with recorded_by(recorder):
        y = mr.exp(x) + x
    return Program(recorder.finish([y]))


def step(program: Program) -> Any:
    program.run(1, lambda inputs: {0: lambda i: inputs[0].fill(1.0)})
    return program.outputs[0].copy()


def test_a_program_runs_the_same_function_before_and_after(path: pathlib.Path) -> None:
    program = exp_program()
    before, plain = program._replay, step(program)
    function = before.step  # type: ignore[union-attr]
    with profiler.trace(path):
        traced = step(program)
    assert names(slices(path)) == {"Infeed", "Exp", "AddV2"}
    written = path.read_bytes()
    assert step(program).tobytes() == plain.tobytes() == traced.tobytes()
    assert program._replay is before
    assert program._replay.step is function  # type: ignore[union-attr]
    assert program._timed is None
    assert observers == []
    assert path.read_bytes() == written


def test_the_bytes_of_pieces_are_those_of_the_whole(path: pathlib.Path) -> None:
    size = 200_000  # Vectors as long as this are computed piece by piece.
    program = exp_program(size)
    with profiler.trace(path):
        step(program)
    kernels = [event for event in slices(path) if event["cat"] == "compute"]
    assert len(kernels) > 2
    for name, inputs in (("Exp", 1), ("AddV2", 2)):
        args = [event["args"] for event in kernels if event["name"] == name]
        assert sum(each["bytes in"] for each in args) == inputs * 4 * size
        assert sum(each["bytes out"] for each in args) == 4 * size


def test_writes_at_the_end_of_a_program(path: pathlib.Path) -> None:
    first, second = mr.Variable([1.0, 2.0]), mr.Variable([3.0, 4.0])
    recorder = GraphRecorder()
    with recorded_by(recorder):
        old = first.read_value()
        first.assign(second)
        second.assign(old)
    program = Program(recorder.finish([]))
    with profiler.trace(path):
        program.run(1)
    assert first.numpy().tolist() == [3.0, 4.0]
    assert second.numpy().tolist() == [1.0, 2.0]
    writes = [e["args"] for e in slices(path) if e["name"] == "AssignVariableOp"]
    assert {(each["device"], each["bytes out"]) for each in writes} == {("CPU:0", 8)}


# ---------------------------------------------------------------------------- eager code


def test_eager_ops_are_in_the_rows_of_their_devices(simulate: Simulate, path: pathlib.Path) -> None:
    simulate(2)
    with profiler.trace(path):
        with mr.device("GPU:0"):
            x = mr.ones((8, 4))
            y = mr.matmul(x, x, transpose_b=True)
        with mr.device("GPU:1"):
            total = mr.reduce_sum(y)
        mr.reshape(y, (64,))  # A view: no kernel runs.
        assert total.numpy() == 256.0
        mr.constant([1.0, 2.0])
    check_format(path)
    found = rows(path)
    assert set(found) == {"GPU:0", "GPU:1"}
    (product,) = (e for e in found["GPU:0"] if e["name"] == "MatMul")
    assert product["args"] == {
        "op": "MatMul",
        "device": "GPU:0",
        "bytes in": 2 * 8 * 4 * 4,
        "bytes out": 8 * 8 * 4,
    }
    copied, summed, fetched = found["GPU:1"]
    assert [copied["name"], summed["name"], fetched["name"]] == [
        "Memcpy DtoD",
        "Sum",
        "Memcpy DtoH",
    ]
    assert (copied["args"]["from"], copied["args"]["device"]) == ("GPU:0", "GPU:1")
    assert copied["args"]["bytes out"] == 8 * 8 * 4
    assert (fetched["args"]["from"], fetched["args"]["bytes in"]) == ("GPU:1", 4)
    assert "Memcpy HtoD" in names(found["GPU:0"])
    assert "Reshape" not in names(slices(path))


def test_replicas_of_a_custom_loop_have_rows(simulate: Simulate, path: pathlib.Path) -> None:
    simulate(2)
    strategy = mr.MirroredStrategy()

    def replica() -> mr.Tensor:
        y = mr.square(mr.ones((3,)))
        context = mr.distribute.get_replica_context()
        assert context is not None
        total: mr.Tensor = context.all_reduce("sum", y)
        return total

    with profiler.trace(path):
        strategy.run(replica)
    check_format(path)
    for i in range(2):
        assert "Square" in names(rows(path)[f"replica {i} (GPU:{i})"])
    (reduced,) = (e for e in slices(path) if e["name"] == "AllReduce")
    assert (reduced["args"]["device"], reduced["args"]["bytes in"]) == ("CPU:0", 24)


def test_reads_and_writes_of_a_variable_whose_memory_stays(path: pathlib.Path) -> None:
    variable = mr.Variable([1.0, 2.0])
    assert isinstance(variable, DeviceVariable)
    variable.pinned()
    with profiler.trace(path):
        variable.read_value()
        variable.assign([3.0, 4.0])
    assert {"ReadVariableOp", "AssignVariableOp"} <= names(slices(path))


def test_what_is_made_ahead_has_a_row(path: pathlib.Path) -> None:
    model = mr.Sequential([mr.layers.Input(shape=(2,)), mr.layers.Dense(1)])
    model.compile("sgd", "mse")
    data = mr.data.Dataset.range(6).map(lambda i: (mr.ones((3, 2)), mr.ones((3, 1)))).prefetch(2)
    with profiler.trace(path):
        model.fit(data, verbose=0)
    check_format(path)
    assert {event["args"]["op"] for event in rows(path)["dataset"]} == {"Prefetch"}
    assert len(rows(path)["dataset"]) in (7, 8)  # With the ends of a pass, or of two.
    assert {"Compute", "Data"} <= table().keys()


def test_side_by_side_calls_of_users_threads_get_rows_without_overlaps(
    path: pathlib.Path,
) -> None:
    both = threading.Barrier(2)

    def meet(x: Any) -> Any:
        both.wait(60)
        return x

    def call() -> None:
        mr.numpy_function(meet, [mr.ones((2,))], mr.float32)

    with profiler.trace(path):
        threads = [threading.Thread(target=call) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    check_format(path)
    assert [{"PyFunc"} <= names(row) for row in rows(path).values()] == [True, True]
    assert set(rows(path)) == {"CPU:0", "CPU:0 #2"}


# ---------------------------------------------------------------------------- the table


def test_summary_says_what_the_file_says(
    traced: tuple[pathlib.Path, dict[str, list[float]]],
) -> None:
    found, events = traced[1], slices(traced[0])
    parts = {"compute": "Compute", "collective": "Transfers", "transfer": "Transfers"}
    by_line: dict[str, list[dict[str, Any]]] = {"Total": events}
    for event in events:
        by_line.setdefault(event["name"], []).append(event)
        by_line.setdefault(parts.get(event["cat"], "Waits"), []).append(event)
    assert set(found) == set(by_line)
    whole = sum(event["dur"] for event in events)
    for name, members in by_line.items():
        calls, time, share, moved = found[name]
        assert calls == len(members)
        spent = sum(event["dur"] for event in members)
        assert time == pytest.approx(spent / 1e3, abs=0.006)
        assert share == pytest.approx(100 * spent / whole, abs=0.006)
        nbytes = sum(
            event["args"]["bytes in"]
            + (event["args"]["bytes out"] if event["cat"] == "compute" else 0)
            for event in members
        )
        assert moved == pytest.approx(nbytes / 2**20, abs=0.006)
    order = list(found)
    assert order.index("Compute") < order.index("MatMul") < order.index("Transfers")
    assert order.index("Transfers") < order.index("AllReduce") < order.index("Total")


def test_summary_prints(capsys: pytest.CaptureFixture[str], path: pathlib.Path) -> None:
    with profiler.trace(path):
        pass
    profiler.summary()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"Trace: {path}, ")
    assert lines[-1].split() == ["Total", "0", "0.00", "0.00", "0.00"]
    assert slices(path) == []


def test_summary_without_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_trace, "_last", [])
    with pytest.raises(RuntimeError, match=r"no trace to summarise. Received: .*Run the code"):
        profiler.summary()


def test_too_many_slices(monkeypatch: pytest.MonkeyPatch, path: pathlib.Path) -> None:
    monkeypatch.setattr(step_trace, "_MOST_EVENTS", 3)
    with profiler.trace(path):
        for _ in range(5):
            mr.ones((2,))
    assert len(slices(path)) == 3
    assert read(path)["otherData"] == {"slices": 3, "slices dropped": 2}
    lines: list[str] = []
    profiler.summary(print_fn=lines.append)
    assert lines[-1] == "2 later slices are missing: a trace holds 3 of them."


# ---------------------------------------------------------------------------- what goes wrong


def test_a_body_that_raises_is_traced_all_the_same(path: pathlib.Path) -> None:
    def body() -> None:
        mr.ones((2,))
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"), profiler.trace(path):
        body()
    assert names(slices(path)) == {"Fill"}
    assert observers == []
    assert os.listdir(path.parent) == [path.name]
    with profiler.trace(path):  # The next one works, and replaces the file.
        mr.exp([1.0])
    assert "Exp" in names(slices(path))


def test_traces_are_not_nested(path: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with profiler.trace(path):
        with (
            pytest.raises(
                RuntimeError, match=r"Another trace is running.*inner.*trace.json.*Remove one"
            ),
            profiler.trace(tmp_path / "inner.json"),
        ):
            raise NotImplementedError("The block must not run.")
        mr.ones((2,))  # The outer one goes on.
    assert names(slices(path)) == {"Fill"}
    assert os.listdir(tmp_path) == [path.name]


@cases("given", [3, None, b"trace.json"])
def test_no_path(given: Any) -> None:
    with (
        pytest.raises(TypeError, match=r"Received: .*Pass a string"),
        profiler.trace(given),
    ):
        raise NotImplementedError("The block must not run.")


def test_places_that_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, path: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    cases: list[tuple[pathlib.Path, type[OSError], str]] = [
        (tmp_path, IsADirectoryError, "add a file name"),
        (tmp_path / "missing" / "trace.json", FileNotFoundError, "create it first"),
    ]
    for place, error, message in cases:
        with pytest.raises(error, match=message), profiler.trace(place):
            raise NotImplementedError("The block must not run.")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root could always write.
    with pytest.raises(PermissionError, match="folder for the trace"), profiler.trace(path):
        raise NotImplementedError("The block must not run.")
    path.write_text("kept")
    with pytest.raises(PermissionError, match="trace is read-only"), profiler.trace(path):
        raise NotImplementedError("The block must not run.")
    assert path.read_text() == "kept"
    assert observers == []


def test_a_file_that_cannot_be_written_at_the_end(
    monkeypatch: pytest.MonkeyPatch, path: pathlib.Path
) -> None:
    def refuse(*args: Any) -> None:
        raise OSError("the disk is full")

    path.write_text("kept")
    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="disk is full"), profiler.trace(path):
        mr.ones((2,))
    with pytest.raises(KeyError) as raised, profiler.trace(path):
        raise KeyError("mine")
    assert "the disk is full" in raised.value.__notes__[0]
    assert path.read_text() == "kept"
    assert os.listdir(path.parent) == [path.name]
    assert observers == []


# ---------------------------------------------------------------------------- documentation


def test_the_example_of_the_page_runs(tmp_path: pathlib.Path) -> None:
    page = (ROOT / "docs" / "howto" / "profiling.md").read_text()
    (code,) = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    program = tmp_path / "program.py"
    program.write_text(code)
    done = run_program(program, folder=tmp_path, environment=os.environ, strict=True)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^  wait +\d", done.stdout, re.MULTILINE)
    assert json.loads((tmp_path / "trace.json").read_text())["otherData"]["slices"] > 0
