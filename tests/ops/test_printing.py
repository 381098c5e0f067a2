"""What `mr.print` writes: the text that TensorFlow 2.21 writes, and when."""

import sys
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mirrored as mr

C = mr.constant
CUBE = np.arange(64).reshape(4, 4, 4)


class Shown:
    def __repr__(self) -> str:
        return "<Shown>"


PRINTED: list[tuple[Callable[[], tuple[Any, ...]], dict[str, Any], str]] = [
    (lambda: (), {}, "\n"),
    (lambda: ("a", 1, 2.5, True, None), {}, "a 1 2.5 True None\n"),
    (lambda: (C(1), C(2.5), C(True)), {}, "1 2.5 1\n"),
    (lambda: ("x", C([1, 2])), {"sep": ",", "end": "!"}, "x,[1 2]!"),
    (lambda: (mr.range(6),), {}, "[0 1 2 3 4 5]\n"),
    (lambda: (mr.range(7),), {}, "[0 1 2 ... 4 5 6]\n"),
    (lambda: (mr.range(7),), {"summarize": -1}, "[0 1 2 3 4 5 6]\n"),
    (lambda: (mr.range(7), C(1)), {"summarize": 0}, "[ ...] ...\n"),
    (lambda: (C([[1, 2], [3, 4]]), C([5])), {}, "[[1 2]\n [3 4]] [5]\n"),
    (
        lambda: (C(CUBE),),
        {"summarize": 1},
        "[[[0 ... 3]\n  ...\n  [12 ... 15]]\n\n ...\n\n [[48 ... 51]\n  ...\n  [60 ... 63]]]\n",
    ),
    (lambda: (mr.zeros((0,)), mr.zeros((2, 0)), mr.zeros((0, 2))), {}, "[] [\n ...] []\n"),
    (
        lambda: (C([1.5, -0.0, np.nan, np.inf, -np.inf, 1e-10, 123456789.0, 1 / 3, 1e5, 1e6]),),
        {"summarize": -1},
        "[1.5 -0 nan inf -inf 1e-10 123456792 0.333333343 100000 1e+06]\n",
    ),
    (
        lambda: (C([1e10, 1 / 3, 1e15, 1e16, 2.0**53, 0.1], mr.float64),),
        {},
        "[10000000000 0.33333333333333331 1e+15 1e+16 9007199254740992 0.1]\n",
    ),
    (
        lambda: (mr.cast([1.5, 1 / 3], mr.bfloat16), C([1, 255], mr.uint8)),
        {},
        "[1.5 0.333984375] [1 255]\n",
    ),
    (lambda: ({"b": C(1), "a": [C(2), "s"]}, (C(1),)), {}, "{'a': [2, 's'], 'b': 1} (1,)\n"),
    # As Python itself writes them, which later versions do otherwise.
    (
        lambda: (OrderedDict([("b", C(1)), ("a", C(2))]),),
        {},
        f"{OrderedDict([('b', 1), ('a', 2)])}\n",
    ),
    (lambda: (mr.Variable([1.0, 2.0]), [mr.Variable(3.0)]), {}, "[1 2] [3]\n"),
    (lambda: (np.array([1.0, 2.0]), np.float32(1.5)), {}, "array([1., 2.]) np.float32(1.5)\n"),
    (
        lambda: (mr.zeros((2, 3)).shape, range(2), Shown()),
        {},
        "TensorShape([2, 3]) [0, 1] <Shown>\n",
    ),
    (lambda: ([C(1)] * 14,), {}, "[" + ",\n ".join("1" * 14) + "]\n"),
    (lambda: ([C(1)] * 13,), {}, "[" + ", ".join("1" * 13) + "]\n"),
]


@pytest.mark.parametrize(("values", "options", "text"), PRINTED)
def test_text(
    values: Callable[[], Any],
    options: Any,
    text: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    mr.print(*values(), **options)
    assert capsys.readouterr() == ("", text)
    path = tmp_path / "values.txt"
    for _ in range(2):
        mr.print(*values(), output_stream=f"file://{path}", **options)
    assert path.read_text() == text * 2


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"foo": 1}, ValueError, "Unrecognized keyword arguments"),
        ({"output_stream": "bogus"}, ValueError, "Unsupported output stream"),
        ({"end": 3}, TypeError, "for argument 'end'"),
        ({"summarize": "x"}, TypeError, "for argument 'summarize'"),
    ],
)
def test_options(
    options: Any, error: type[Exception], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(error, match=text):
        mr.print("a", **options)
    assert capsys.readouterr() == ("", "")


def test_a_recorded_function_prints_in_each_call_and_in_order(
    capsys: pytest.CaptureFixture[str],
) -> None:
    total = mr.Variable(0.0)

    @mr.function
    def step(x: mr.Tensor) -> mr.Tensor:
        mr.print("given", x, output_stream=sys.stdout)
        total.assign_add(mr.reduce_sum(x))
        y = x * 2.0 + 1.0
        mr.print("total", total, [y], output_stream=sys.stdout)
        mr.print("and", output_stream=sys.stdout)
        mr.print("and", output_stream=sys.stdout)
        return y

    for _ in range(2):
        step(C([1.0, 2.0]))
    text = "given [1 2]\ntotal {} [[3 5]]\nand\nand\n"
    assert capsys.readouterr().out == text.format(3) + text.format(6)


@pytest.mark.parametrize("executor", ["serial", "threads"])
def test_each_replica_prints(
    executor: Any, simulate: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    simulate(2)
    strategy = mr.MirroredStrategy(executor=executor)

    @mr.function
    def step(x: mr.Tensor) -> None:
        mr.print("begin")
        strategy.run(lambda x: mr.print("in", x), (x,))
        mr.print("end", x)

    for _ in range(2):
        step(C(1.0))
    mr.print(strategy.run(lambda: mr.distribute.get_replica_context().replica_id_in_sync_group))
    shown = "PerReplica:{\n  0: 0,\n  1: 1\n}\n"
    assert capsys.readouterr().err == "begin\nin 1\nin 1\nend 1\n" * 2 + shown
