"""One worker of two, where the other one has the same: what it makes, without MPI."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import mirrored as mr
from mirrored import _files
from mirrored.distribute import multi_worker_strategy
from mirrored.errors import OperatorNotAllowedInGraphError
from mirrored.workers.worker import Workers

MultiWorkerMirroredStrategy = mr.distribute.MultiWorkerMirroredStrategy


class Twin(Workers):
    """Stands for the first of two workers, of which the other does the same."""

    def __init__(self) -> None:
        super().__init__(0, ("a", "b"))

    def _sum(self, vector: NDArray[Any], out: NDArray[Any], what: str) -> None:
        np.add(vector, vector, out=out)

    def gather(self, value: Any, what: str) -> list[Any]:
        return [value, value]

    def gather_arrays(self, array: NDArray[Any], what: str) -> list[NDArray[Any]]:
        return [array, array]


@pytest.fixture
def twin(monkeypatch: pytest.MonkeyPatch) -> Twin:
    made = Twin()
    monkeypatch.setattr(_files, "_company", None)
    monkeypatch.setattr(multi_worker_strategy, "connect", lambda deadline: made)
    return made


def trained(strategy: mr.distribute.Strategy, **options: Any) -> list[NDArray[Any]]:
    """Return the weights of a model whose batches have the same rows twice."""
    x = np.tile(np.random.default_rng(0).normal(size=(4, 3)), (2, 1)).astype(np.float32)
    mr.random.set_seed(1)
    with strategy.scope():
        model = mr.Sequential([mr.layers.Input((3,)), mr.layers.Dense(2, activation="tanh")])
        model.compile(mr.optim.SGD(0.1), "mse", **options)
    model.fit(x, x[:, :2], batch_size=8, epochs=3, shuffle=False, verbose=0)
    return [each.numpy() for each in model.trainable_variables]


def test_a_card_sums_on_the_host(
    twin: Twin, emulated_cuda: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    emulated_cuda()
    options = mr.distribute.experimental.CommunicationOptions(implementation="RING")
    with caplog.at_level("DEBUG", "mirrored"):
        strategy = MultiWorkerMirroredStrategy(communication_options=options)
    assert (
        "by MPI, on the host: on worker 0 (a) CommunicationOptions(implementation=" in caplog.text
    )
    assert "GPU" in strategy.extended.worker_devices[0]
    with pytest.raises(
        OperatorNotAllowedInGraphError, match="Several workers sum on the host here"
    ):
        trained(strategy)
    many = trained(strategy, run_eagerly=True)
    for one, other in zip(many, trained(mr.MirroredStrategy(), run_eagerly=True), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_indexed_slices_are_reduced_over_workers(twin: Twin) -> None:
    collectives = MultiWorkerMirroredStrategy()._cross_device_ops
    rows = mr.IndexedSlices(mr.constant([[1.0], [2.0]]), mr.constant([3, 0]), (5, 1))
    total, mean = (collectives.reduce(how, [rows], "CPU:0") for how in ("sum", "mean"))
    assert total.indices.numpy().tolist() == [0, 3]
    assert total.values.numpy().tolist() == [[4.0], [2.0]]
    assert mean.values.numpy().tolist() == [[2.0], [1.0]]


def test_the_line_in_the_log(
    twin: Twin, simulated_gpus: Any, caplog: pytest.LogCaptureFixture
) -> None:
    simulated_gpus(1)
    trained(MultiWorkerMirroredStrategy())
    using, reduced = (each.getMessage() for each in caplog.records if each.levelname == "INFO")
    device = "/job:localhost/replica:0/task:0/device:GPU:0"
    assert using == (
        f"Using MultiWorkerMirroredStrategy with devices ('{device}',), and 2 replicas: "
        "0 on worker 0 (a), 1 on worker 1 (b)."
    )
    assert reduced.startswith("Reduce to ")


def test_a_mean_counts_what_all_workers_have(twin: Twin, simulated_gpus: Any) -> None:
    simulated_gpus(2)
    strategy = MultiWorkerMirroredStrategy()
    assert (strategy.num_replicas_in_sync, strategy.sharing) == (4, (4, 0, 2))
    parts = mr.distribute.PerReplica([mr.constant([1.0, 2.0]), mr.constant([6.0])])
    assert float(strategy.reduce("mean", parts, axis=0)) == 3.0
    assert float(strategy.reduce("sum", parts, axis=0)) == 18.0
    assert float(strategy.reduce("mean", mr.constant(5.0))) == 5.0


def test_variables_that_replicas_write(twin: Twin, simulated_gpus: Any) -> None:
    simulated_gpus(1)
    strategy = MultiWorkerMirroredStrategy()
    made = {}
    with strategy.scope():
        for how in ("SUM", "MEAN", "ONLY_FIRST_REPLICA", "NONE"):
            aggregation = mr.VariableAggregation[how]
            made[how] = mr.Variable([0.0, 0.0], aggregation=aggregation)
    for how, wanted in (("SUM", 6.0), ("MEAN", 3.0), ("ONLY_FIRST_REPLICA", 6.0)):
        # The other one does the same here, though zeros are what it would give to the last sum.
        strategy.run(lambda v=made[how]: v.assign([3.0, 3.0]))
        assert made[how].numpy().tolist() == [wanted, wanted]
    with pytest.raises(ValueError, match=r"Received: assign of 6\.0, 6\.0 in the first"):
        strategy.run(lambda: made["NONE"].assign([3.0, 3.0]))
    strategy.run(lambda: made["NONE"].assign(made["NONE"] * 2.0))
    assert made["NONE"].numpy().tolist() == [0.0, 0.0]
    rows = mr.IndexedSlices(mr.constant([1.0]), mr.constant([0]), (2,))
    with pytest.raises(NotImplementedError, match="With several workers"):
        strategy.run(lambda: made["SUM"].scatter_add(rows))


def test_a_gather_is_not_recorded(twin: Twin) -> None:
    strategy = MultiWorkerMirroredStrategy()

    @mr.function
    def gathered(x: Any) -> Any:
        return strategy.gather(x, axis=0)

    assert strategy.gather(mr.constant([True, False]), axis=0).dtype == mr.bool
    with pytest.raises(OperatorNotAllowedInGraphError, match=r"Gather outside of mr\.function"):
        gathered(mr.constant([1.0]))


def test_the_older_name_takes_the_older_arguments(twin: Twin) -> None:
    older = mr.distribute.experimental.MultiWorkerMirroredStrategy("nccl")
    assert older.num_replicas_in_sync == 2
    assert older.arguments() == {"communication": "nccl", "cluster_resolver": None}
    with pytest.raises(ValueError, match="`implementation`"):
        mr.distribute.experimental.MultiWorkerMirroredStrategy("smoke")


@pytest.mark.parametrize("variable", ["PMI_RANK", "OMPI_COMM_WORLD_RANK"])
def test_others_that_a_launcher_started_are_told_of(
    variable: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    mr.MirroredStrategy(["CPU:0"])
    assert "trains a separate model" not in caplog.text
    monkeypatch.setenv(variable, "0")
    monkeypatch.setenv(variable.replace("RANK", "SIZE"), "3")
    mr.MirroredStrategy(["CPU:0"])
    assert "trains a separate model in each of the 3 processes" in caplog.text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on_worker_failure": "ignore"}, "must be one of .*on_worker_failure='ignore'"),
        ({"min_workers": 0}, "min_workers"),
        ({"min_workers": 2}, r"at most the number of workers.*min_workers=2 and 1 worker\(s\)"),
    ],
)
def test_what_deaths_cannot_mean(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mr.distribute.MultiWorkerMirroredStrategy(**options)


def test_one_worker_that_would_survive_others_is_as_any() -> None:
    strategy = mr.distribute.MultiWorkerMirroredStrategy(on_worker_failure="continue")
    assert strategy.num_replicas_in_sync == 1
    assert strategy.arguments()["on_worker_failure"] == "continue"


def test_what_does_not_survive_deaths(monkeypatch: pytest.MonkeyPatch) -> None:
    strategy: Any = mr.distribute.MultiWorkerMirroredStrategy()
    monkeypatch.setattr(strategy.workers, "on_failure", "replace")
    monkeypatch.setattr(multi_worker_strategy, "agreed", lambda *_: object())
    strategy.replaces_workers = True
    with pytest.raises(ValueError, match=r"by NCCL are not.*'replace'.*\"continue\".*\"RING\""):
        strategy._over_all([])
    with pytest.raises(ValueError, match="all workers have the same dataset"):
        strategy.distribute_datasets_from_function(lambda context: None)
