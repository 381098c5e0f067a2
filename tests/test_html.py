"""What notebooks show of objects: escaped, small, without effects on devices."""

import pickle
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import _html
from mirrored.backends.host import HostBackend


@pytest.fixture
def strategy() -> mr.MirroredStrategy:
    mr.config.experimental.set_simulated_gpus(2, memory_limit=1)
    return mr.MirroredStrategy()


def cells(text: str) -> list[str]:
    """Return the texts of the cells of a table."""
    return [part.split("<")[0] for part in text.split('white-space: pre">')[1:]]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((), ["1"]),
        ((2,), ["1", "1"]),
        ((2, 1), ["1", "1"]),
        ((9,), [*["1"] * 8, "…"]),
        ((7, 9), [*([*["1"] * 8, "…"] * 6), *["…"] * 9]),
        ((2, 3, 1, 1), ["1"]),
        ((0, 3), []),
        ((3, 0), []),
    ],
)
def test_the_first_values_of_a_tensor(shape: tuple[int, ...], expected: list[str]) -> None:
    shown = mr.ones(shape)._repr_html_()
    assert cells(shown) == expected
    assert f"shape={shape}, dtype=float32, on CPU:0" in shown
    assert ("<div>[0, 0]</div>" in shown) == (len(shape) == 4)


def test_numbers() -> None:
    assert cells(mr.constant([1 / 3, -1e-30, np.nan])._repr_html_()) == ["0.33333", "-1e-30", "nan"]
    assert cells(mr.constant([True])._repr_html_()) == ["True"]
    assert cells(mr.constant([2**40])._repr_html_()) == [str(2**40)]


def test_only_the_values_that_are_shown_leave_the_device(
    strategy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    to_host = HostBackend.to_host
    monkeypatch.setattr(
        HostBackend, "to_host", lambda self, x: [sizes.append(x.size), to_host(self, x)][1]
    )
    with strategy.scope():
        variable = mr.Variable(mr.ones((100, 100)))
    before = mr.config.experimental.get_memory_info("GPU:0")
    for shown in (variable, variable.read_value()):
        assert shown._repr_html_()
    assert sizes == [48, 48]
    assert mr.config.experimental.get_memory_info("GPU:0")["current"] == before["current"]


def test_names_are_escaped(strategy: Any) -> None:
    with strategy.scope():
        variable = mr.Variable(1.0, name="a<script>b")
    assert "<script>" not in variable._repr_html_()
    assert "a&lt;script&gt;b" in variable._repr_html_()
    assert "a&lt;script&gt;b" in strategy._repr_html_()
    history = mr.callbacks.History()
    history.on_epoch_end(0, {"<b>": 1.0})
    assert "<b><" not in history._repr_html_().replace("<b>History</b>", "")


def test_a_mirrored_variable_has_its_value_once(strategy: Any) -> None:
    with strategy.scope():
        variable = mr.Variable([2.0, 3.0], name="v")
        sync = mr.Variable(
            1.0,
            synchronization=mr.VariableSynchronization.ON_READ,
            aggregation=mr.VariableAggregation.SUM,
        )
    assert cells(variable._repr_html_()) == ["2", "3"]
    assert "the same on GPU:0, GPU:1" in variable._repr_html_()
    assert len(cells(sync._repr_html_())) == 2
    context = mr.distribute.get_replica_context
    values = strategy.run(lambda: (variable + 1, f"a&{context().replica_id_in_sync_group}"))
    assert cells(values[0]._repr_html_()) == ["3", "4"] * 2
    assert "Replica 1</b> &#x27;a&amp;1&#x27;" in values[1]._repr_html_()


def test_a_strategy_shows_its_devices_and_what_is_there(strategy: Any) -> None:
    with strategy.scope():
        first = mr.Variable(mr.ones((256, 512)), name="large")
        others = [mr.Variable(mr.ones((1024,)), name=f"v{i}") for i in range(4)]
    shown = strategy._repr_html_()
    assert "MirroredStrategy</b> 2 replicas" in shown
    assert cells(shown)[5:10:4] == [
        "GPU:0",
        "large 0.5 MB\nv0 4.0 KB\nv1 4.0 KB\n2 other variables 8.0 KB",
    ]
    assert cells(shown)[6:9] == ["", "0.5 MB", "1.0 MB"]
    assert "width: 52%" in shown
    del first, others
    assert "large" not in strategy._repr_html_()
    mr.config.experimental.reset_devices()
    assert strategy._repr_html_() is None


def test_devices() -> None:
    mr.config.experimental.set_simulated_gpus(2)
    logical = mr.config.LogicalDevice("/device:GPU:0", "GPU")
    first, second = mr.config.list_physical_devices("GPU")
    half = mr.config.LogicalDeviceConfiguration(memory_limit=1)
    mr.config.set_logical_device_configuration(second, [half, half])
    assert logical._repr_html_() is first._repr_html_() is None
    mr.config.list_logical_devices()
    expected = ["device", "in use", "limit", "GPU:0", "0.0 MB", "none"]
    assert cells(logical._repr_html_()) == cells(first._repr_html_() or "") == expected
    assert cells(second._repr_html_() or "") == [
        *("device", "memory", "in use", "limit"),
        *("GPU:1", "", "0.0 MB", "1.0 MB"),
        *("GPU:2", "", "0.0 MB", "1.0 MB"),
    ]


def test_long_names_of_variables_and_small_ones_of_a_strategy(strategy: Any) -> None:
    assert "what is there" not in strategy._repr_html_()
    with strategy.scope():
        variables = [mr.Variable(1.0, name=f"{'long' * 20}{i}\n") for i in range(2)]
    assert "longlonglonglo…nglonglong0\\n 4 B\n" in strategy._repr_html_()
    del variables


def test_a_model_and_its_history() -> None:
    model = mr.Sequential([mr.layers.Dense(1, name="first")])
    assert "first" in model._repr_html_()
    model.compile("sgd", "mse")
    history = model.fit(mr.ones((2, 3)), mr.ones((2, 1)), epochs=10, verbose=0)
    assert "first (Dense)" in cells(model._repr_html_())
    shown = cells(history._repr_html_())
    assert shown[:3] == ["epoch", "loss", "3"]
    assert len(shown) == 2 + 8 * 2
    assert "10 epochs" in history._repr_html_()
    assert mr.callbacks.History()._repr_html_()


def test_a_dataset_runs_no_function() -> None:
    calls: list[Any] = []
    dataset = mr.data.Dataset.range(6).map(lambda x: [calls.append(x), x][1]).batch(4)
    before = len(calls)
    shown = dataset._repr_html_()
    assert len(calls) == before
    assert "Dataset</b> 2 elements" in shown
    assert cells(shown)[1::2][:3] == ["6 elements", "6 elements", "2 elements"]
    zipped = mr.data.Dataset.zip((mr.data.Dataset.range(2), mr.data.Dataset.range(3).repeat()))
    assert "without end" in cells(zipped._repr_html_())


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 2, 3), (1, 0, 2, 3), (0, 0, 0)])
def test_no_values_are_shown_of_an_empty_tensor(shape: tuple[int, ...]) -> None:
    html = mr.zeros(shape)._repr_html_()
    assert html is not None
    assert str(shape) in html


def test_values_of_replicas_that_have_no_table_are_shown_as_text(strategy: Any) -> None:
    seen: list[Any] = []

    @mr.function
    def step() -> None:
        seen.append(strategy.run(lambda: mr.constant(1.0) * 2)._repr_html_())

    step()
    assert seen == [None]


def test_variables_that_are_loaded_are_on_their_device(simulated_gpus: Any) -> None:
    simulated_gpus(1)
    variable = mr.Variable([1.0], name="first")
    loaded = pickle.loads(pickle.dumps(variable))
    html = mr.MirroredStrategy()._repr_html_()
    assert html is not None
    assert html.count("first") == 2
    del variable, loaded
    assert "first" not in (mr.MirroredStrategy()._repr_html_() or "first")


def test_a_tensor_without_a_value() -> None:
    shown: list[Any] = []
    mr.function(lambda x: [shown.append(x._repr_html_()), x][1])(mr.ones(3))
    assert shown == [None]


def test_text_is_as_ever(strategy: Any) -> None:
    assert repr(mr.ones(1)).startswith("<mr.Tensor: shape=(1,)")
    assert repr(strategy) == "MirroredStrategy(devices=['GPU:0', 'GPU:1'])"


def test_markup_is_not_escaped_again() -> None:
    assert cells(_html.table([["<", _html.bar(1, 2)]], ["&"])) == ["&amp;", "&lt;", ""]


def test_counts_of_one_are_singular() -> None:
    history = mr.callbacks.History()
    history.on_epoch_end(0, {"loss": 1.0})
    assert "1 epoch;" in history._repr_html_()
    dataset = mr.data.Dataset.range(1)
    assert "</b> 1 element<" in dataset._repr_html_()
    assert repr(dataset) == "<mr.data.Dataset: Counted, 1 element>"
    one = mr.distribute.OneDeviceStrategy("CPU")
    assert "</b> 1 replica<" in (one._repr_html_() or "")
