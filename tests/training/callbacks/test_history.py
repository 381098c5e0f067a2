"""What `History` keeps over several calls of `fit`, and what its plots show."""

import builtins
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mirrored as mr

DRAWING = ("mirrored._drawing", "mirrored.training.callbacks.history_figure")
X = np.arange(4.0, dtype=np.float32)[:, np.newaxis]


@pytest.mark.behaviour("history")
def test_a_history_of_the_users_own_goes_on(make_line: Any) -> None:
    history, model = mr.callbacks.History(), make_line()
    assert model.fit(X, X, epochs=2, verbose=0, callbacks=[history]) is history
    assert model.fit(X, X, verbose=0, callbacks=[history]) is model.history is history
    assert len(history.history["loss"]) == 3
    assert history.epoch == [0]


def test_the_history_of_a_fit_around_another_one(make_line: Any) -> None:
    class Fits(mr.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            inner.append(self.model.fit(X, X, epochs=3, verbose=0))
            assert self.model.history is inner[-1]

    inner: list[mr.callbacks.History] = []
    model = make_line()
    history = model.fit(X, X, epochs=2, verbose=0, callbacks=[Fits()])
    assert model.history is history
    assert [len(each.epoch) for each in (history, *inner)] == [2, 3, 3]


def curves(history: mr.callbacks.History) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """Return the points of each curve, by plot and label."""
    return {
        axes.get_ylabel(): {
            str(line.get_label()): [(x, y) for x, y in line.get_xydata().tolist()]
            for line in axes.get_lines()
        }
        for axes in history.plot().axes
    }


@pytest.fixture
def pyplot() -> Iterator[Any]:
    from matplotlib import pyplot as plt

    plt.close("all")  # Those of other tests.
    yield plt
    plt.close("all")


def test_pyplot_shows_a_plot(pyplot: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    history = mr.callbacks.History()
    history.on_epoch_end(0, {"loss": 0.5})
    figure = history.plot()
    assert pyplot.gcf() is figure
    # IPython displays the last value of a cell in the formats that it was set to, since the value
    # declines to do so itself. A notebook displays pyplot's figures after that, but not this one.
    for backend, shown in (("agg", [figure.number]), ("module://a.backend_inline", [])):
        monkeypatch.setattr(pyplot, "get_backend", lambda backend=backend: backend)
        with pytest.raises(NotImplementedError):
            figure._ipython_display_()
        assert pyplot.get_fignums() == shown


@pytest.mark.behaviour("history")
@pytest.mark.usefixtures("pyplot")
def test_plots_of_epochs_of_which_some_are_validated() -> None:
    history = mr.callbacks.History()
    for epoch in range(3, 7):
        logs = {"loss": epoch + 0.5, "rate": 0.5, "text": "a"}
        history.on_epoch_end(epoch, {**logs, "val_loss": 2.0 * epoch} if epoch % 2 else logs)
    assert curves(history) == {
        "loss": {
            "training": [(4, 3.5), (5, 4.5), (6, 5.5), (7, 6.5)],
            "validation": [(4, 6.0), (6, 10.0)],
        },
        "rate": {"training": [(4, 0.5), (5, 0.5), (6, 0.5), (7, 0.5)]},
    }


@pytest.mark.usefixtures("pyplot")
def test_plots_of_two_calls_and_of_values_that_were_put_there() -> None:
    history = mr.callbacks.History()
    for loss in (3.0, 2.0):  # Each call begins with epoch 0.
        history.on_train_begin()
        history.on_epoch_end(0, {"loss": loss})
    assert curves(history) == {"loss": {"training": [(1, 3.0), (2, 2.0)]}}
    history.history = {"val_loss": [1.0]}
    assert curves(history) == {"loss": {"validation": [(1, 1.0)]}}


def test_plots_of_nothing_and_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="There is nothing to plot: the history has no values yet"):
        mr.callbacks.History().plot()
    real = builtins.__import__

    def without(name: str, *args: Any, **options: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ModuleNotFoundError(f"No module named {name!r}")
        return real(name, *args, **options)

    for name in DRAWING:
        monkeypatch.delitem(sys.modules, name, raising=False)
    for name in [each for each in sys.modules if each.startswith("matplotlib")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without)
    history = mr.callbacks.History()
    history.on_epoch_end(0, {"loss": 0.5})
    with pytest.raises(ImportError, match=r"extra `plot`, or run pip install matplotlib"):
        history.plot()
