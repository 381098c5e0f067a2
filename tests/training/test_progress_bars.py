"""Bars in a real pseudo-terminal, where lines are written meanwhile, and in a notebook."""

import io
import itertools
import logging
import re
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import numpy as np
import pytest
from screen import Screen, pseudo_terminal

import mirrored as mr
from mirrored._logging import logger
from mirrored.training import progress
from mirrored.training.callbacks.progbar_logger import ProgbarLogger
from mirrored.training.progress import Bar, write_line

pty = pytest.importorskip("pty", reason="Pseudo-terminals are Unix's.")

X, Y = np.ones((12, 3), np.float32), np.ones((12, 1), np.float32)
COLUMNS = 400  # Wide enough for a line that is logged.
# The lines that are to stand on the screen in the end, each of them whole.
WHOLE = re.compile(
    r"Using MirroredStrategy .*\)|Reduce to /job:[^|]*\)\.|said in the middle"
    r"|Epoch ./2 - \d+\.\ds - [\d,]+ examples/s \([\d,]+ a replica\) - loss: \d+\.\d{4}"
)
BAR = re.compile(r"Epoch \d/\d: \d+/\S+ \|.{12}\| ")


@contextmanager
def on_a_terminal(monkeypatch: pytest.MonkeyPatch, *, columns: int = COLUMNS) -> Iterator[Any]:
    """Make a pseudo-terminal standard output and error; give what was written, at the end."""
    for name in ("COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    with pseudo_terminal(columns) as (stream, written), monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        patch.setattr(sys, "stderr", stream)
        yield written


def screen(text: str, columns: int = COLUMNS) -> list[str]:
    made = Screen(columns)
    made.feed(text)
    return made.shown()


class Speaks(mr.callbacks.Callback):
    """Writes a line in the middle of each epoch."""

    def __init__(self, speak: Callable[[str], Any]) -> None:
        super().__init__()
        self._speak = speak

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if batch == 1:
            self._speak("said in the middle")


def ours(monkeypatch: pytest.MonkeyPatch, stream: TextIO) -> Callable[[str], Any]:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    return logger.info


def the_applications(monkeypatch: pytest.MonkeyPatch, stream: TextIO) -> Callable[[str], Any]:
    monkeypatch.setattr(logging.getLogger(), "handlers", [logging.StreamHandler(stream)])
    monkeypatch.setattr(logging.getLogger(), "level", logging.INFO)
    return logging.getLogger("the.application").warning


def printed(monkeypatch: pytest.MonkeyPatch, stream: TextIO) -> Callable[[str], Any]:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    return write_line


@pytest.mark.behaviour("progress-bar")
@pytest.mark.parametrize("speaker", [ours, the_applications, printed])
def test_lines_do_not_tear_the_bar(
    speaker: Any, simulate: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A default run on four GPUs, of which "Reduce to ..." is told while the bar is there."""
    with on_a_terminal(monkeypatch) as written:
        speak = speaker(monkeypatch, sys.stdout)
        configured = logging.getLogger().handlers
        simulate(4)
        with mr.MirroredStrategy().scope():
            model = mr.Sequential([mr.layers.Input((3,)), mr.layers.Dense(1)])
            model.compile("sgd", "mse")
        model.fit(X, Y, batch_size=4, epochs=2, callbacks=[Speaks(speak)])
        assert all(each.stream is sys.stdout for each in configured)  # As they were.
    text = written[0]
    lines = screen(text)
    assert all(WHOLE.fullmatch(line) for line in lines), lines
    told = [line for line in lines if line.startswith("Reduce to /job:localhost/")]
    assert len(told) == 1
    rest = [line.partition(" - ")[0] for line in lines if line.startswith(("said", "Epoch"))]
    assert rest == ["said in the middle", "Epoch 1/2", "said in the middle", "Epoch 2/2"]
    # After each line that came meanwhile the bar was there again.
    for line in (told[-1], "said in the middle"):
        drawn = text.rpartition(line)[2].partition("Epoch 2/2 - ")[0]
        assert BAR.search(drawn), drawn


@pytest.mark.behaviour("progress-bar")
def test_a_bar_within_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a callback of `fit` evaluates, or a program has a bar of its own around `fit`."""
    with on_a_terminal(monkeypatch) as written:
        outer = ProgbarLogger()
        outer.set_params({"epochs": 1, "steps": 3})
        outer.on_train_begin()
        outer.on_epoch_begin(0)
        inner = ProgbarLogger()
        inner.on_test_begin()
        inner.on_test_end({"loss": 0.5})
        outer.on_train_batch_end(1, {"loss": 0.25})
        outer._let_go()
    lines = screen(written[0])
    assert re.fullmatch(r"Evaluate - \d\.\ds - loss: 0\.5000", lines[0])
    assert re.fullmatch(r"Epoch 1/1: 2/3 \|.{12}\| .*, loss: 0\.2500", lines[1])
    assert len(lines) == 2


@pytest.mark.behaviour("progress-bar")
def test_a_bar_of_the_applications_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """As around a loop of one's own, in which the library logs."""
    from tqdm import tqdm

    with on_a_terminal(monkeypatch) as written:
        monkeypatch.setattr(logging.getLogger(), "handlers", [])
        monkeypatch.setattr(tqdm, "monitor_interval", 0)  # Its thread would stay.
        for step in tqdm(range(2), file=sys.stderr):
            logger.info("said in step %d", step)
    *said, last = screen(written[0])
    assert said == ["said in step 0", "said in step 1"]
    assert last.startswith("100%|")


@pytest.mark.behaviour("progress-bar")
@pytest.mark.parametrize("columns", [COLUMNS, 0])
def test_rate_and_time_left(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also on a terminal that does not say how large it is."""
    seconds = iter(range(100))
    monkeypatch.setattr("tqdm.std.time", lambda: float(next(seconds)))
    with on_a_terminal(monkeypatch, columns=columns) as written:
        bar = Bar("Epoch 1/1", 4)
        bar.advance(1, "loss: 1.0000")
        bar.advance(2, "loss: 0.5000")
        bar.close(leave=True)
    (line,) = screen(written[0])
    assert re.fullmatch(
        r"Epoch 1/1: 2/4 \|######      \| 00:\d\d<00:\d\d, .*(s/step|step/s), loss: 0.5000",
        line.replace("█", "#"),
    )


@pytest.mark.behaviour("progress-bar")
def test_a_bar_of_unknown_length_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter(each / 10 for each in range(1000))
    monkeypatch.setattr("tqdm.std.time", lambda: next(seconds))
    with on_a_terminal(monkeypatch) as written:
        bar = Bar("Evaluate", None)
        for step in range(1, 40):
            bar.advance(step, "")
        bar.close()
    states = re.findall(r"Evaluate: (\d+)/\? \|(.{12})\| 00:0\d, .*?step", written[0])
    assert states[0][1].strip() == ""  # Nothing has been done yet.
    places = [bar.index("###") for _, bar in states[1:]]
    assert {0, 9} < set(places) <= set(range(10))  # To one end and back again.
    assert all(0 < abs(here - there) <= 3 for here, there in itertools.pairwise(places))
    assert screen(written[0]) == []


class NotebookOutput(io.StringIO):
    """Looks like the standard output of a notebook's kernel, which is no terminal."""


NotebookOutput.__module__ = "ipykernel.iostream"


class NotebookWidget:
    """A widget of ipywidgets, which says what becomes of it."""

    def __init__(self, *children: Any) -> None:
        self.children = children
        self.layout: Any = self
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


@pytest.mark.behaviour("progress-bar")
@pytest.mark.parametrize("leave", [False, True])
def test_in_a_notebook_the_bar_is_a_widget(leave: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    shown: list[Any] = []
    from tqdm import tqdm as plain

    class Widget(plain):  # type: ignore[type-arg]
        def __init__(self, *, display: bool, **options: Any) -> None:
            assert not display
            made.append(options)
            self.container = NotebookWidget(*(NotebookWidget() for _ in range(3)))
            super().__init__(**options)

        def display(self, *args: Any, **options: Any) -> None:
            pass

    def display(widget: Any, *, display_id: bool) -> Any:
        assert display_id
        shown.append(widget)
        return types.SimpleNamespace(
            update=lambda data, *, raw: shown.append(data) if raw else None
        )

    for name in ("IPython", "IPython.display", "tqdm.notebook"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setattr(sys.modules["IPython.display"], "display", display, raising=False)
    monkeypatch.setattr(sys.modules["tqdm.notebook"], "tqdm", Widget, raising=False)
    monkeypatch.setattr(progress, "find_spec", lambda name: name == "ipywidgets" or None)
    monkeypatch.setattr(sys, "stdout", NotebookOutput())
    for steps in (4, None):
        bar = Bar("Epoch 1/1", steps)
        bar.advance(2, "loss: 0.5000")
        bar.close(leave=leave)
        widget, left = shown[-2:]
        assert all(part.is_closed for part in (widget, *widget.children))
        assert "2/" in left["text/plain"] if leave else left == {}
    assert [options["total"] for options in made] == [4, None]
    assert made[0]["bar_format"].endswith("{bar} {elapsed}<{remaining}, {rate_fmt}{postfix}")
    # Of its widget tqdm asks for the place of the bar in these words.
    assert all(options["bar_format"].count("{bar}") == 1 for options in made)


@pytest.mark.behaviour("progress-bar")
def test_in_a_notebook_without_widgets_the_bar_is_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "find_spec", lambda name: None)
    output = NotebookOutput()
    with warnings.catch_warnings(), monkeypatch.context() as patch:
        warnings.simplefilter("error")
        patch.setattr(sys, "stdout", output)
        assert progress.can_draw()
        bar = Bar("Epoch 1/1", 4)
        bar.advance(4, "")
        bar.close()
    assert "\rEpoch 1/1: 0/4 |            | 00:00<?, ?step/s" in output.getvalue()


def test_terminals_load_nothing_of_notebooks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "tqdm.notebook", raising=False)
    with on_a_terminal(monkeypatch):
        Bar("Epoch 1/1", 3).close()
    assert "tqdm.notebook" not in sys.modules
