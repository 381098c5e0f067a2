"""The report's tables and text, from made-up results."""

import json
import re
from pathlib import Path

import pytest
from case_table import cases

from benchmarks import plot, report_text
from benchmarks.environments import BY_NAME
from benchmarks.results import AllReduce, Outcome, Report, Series
from benchmarks.workloads import TIMED


@pytest.fixture
def report() -> Report:
    facts = {"version": "1.2.3", "blas": "openblas 0.3, kernel Zen, 2 threads"}
    return Report(
        machine={"processor": "Model 9", "cores": "2", "date": "2030-01-02"},
        replicas=2,
        rounds=3,
        imports={"mirrored": 0.08, "jax": 0.3},
        sizes={"mirrored": 50 * 2**20},
        skipped={"torch": "no environment"},
        speed={
            "digits": [
                Series("mirrored", 1, [40.0, 50.0, 60.0], 0.5, 0.01, 41 * 2**20, 1e-7, facts=facts),
                Series("mirrored", 2, [60.0], 0.5, 0.01, 41 * 2**20, 1e-7, facts=facts),
                Series("jax", 1, [75.0], 0.5, 0.2, 300 * 2**20, 0.5, facts=facts),
                Series("jax", 2, [240.0], problem="timed out after 120 s (round 2 of 3)"),
                Series("products", 1, [25.0], facts=facts),
            ]
        },
        scaling={"digits": [Series("mirrored", 1, [50.0]), Series("mirrored", 8, [200.0])]},
        outcomes=[
            Outcome("mirrored", 1, 0.5, 0.0, 0.0, 1e-7),
            Outcome("mirrored", 2, 0.5, 1e-9, 2e-8, 1e-7),
            Outcome("jax", 1, 0.5, 0.0, 0.0, 1e-7),
            Outcome("jax", 2, problem="IndivisibleError: 5 over 2"),
        ],
        all_reduces=[AllReduce("digits", 2, 10**6, 2e-4, 1e-4)],
    )


@pytest.fixture
def text(report: Report) -> str:
    return report_text.markdown(report, "benchmarks.svg")


def test_machine_and_skipped_are_named(text: str) -> None:
    for line in ("- processor: Model 9", "- date: 2030-01-02", "- skipped: torch (no environment)"):
        assert line in text
    assert "![Speed relative to the fastest other library](benchmarks.svg)" in text


@pytest.mark.parametrize(
    "row",
    [
        "| mirrored | 1.2.3 | 0.0800 | 50 | openblas 0.3, kernel Zen, 2 threads |",
        "| mirrored | 1 | 40.0 | 50.0 | 2.00 | - | 41 | 0.500 | 0.0100 | 1e-07 |",
        "| JAX | 1 | 75.0 | 75.0 | 3.00 | 1.50 | 300 | 0.500 | 0.200 | 5e-01 (not the same work) |",
        "| JAX | 2 | 240 | 240* | 9.60 | 4.00 | - | - | - | - |",
        "| one device: step / products alone | 2.00 (<= 1.8: missed) |",
        "| two replicas: TensorFlow / ours | - (>= 45) |",
        "| one device: fastest peer / ours | 1.50 (>= 1.2: met) |",
        "| JAX | 0.50000 | stops: IndivisibleError |",
        "| mirrored | 0 | 2e-08 |",
        "| digits | 2 | 0.954 | 5.00 | 10.0 | 2.00 |",
        "| digits, to one | 1.00 | 4.00 |",
    ],
)
def test_rows(text: str, row: str) -> None:
    assert row in text.splitlines()


def test_problems_are_told(text: str) -> None:
    assert "- JAX on 2: timed out after 120 s (round 2 of 3)" in text
    assert "- JAX on 2: IndivisibleError: 5 over 2" in text


def test_every_row_has_as_many_cells_as_its_header(text: str) -> None:
    blocks = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    assert len(blocks) == 8
    for block in blocks:
        assert len({line.count("|") for line in block}) == 1


def test_targets_are_for_two_replicas(report: Report) -> None:
    report.replicas = 4
    assert "They are for 2 replicas, not 4." in report_text.markdown(report, None)


def test_parts_that_were_not_measured_are_left_out() -> None:
    text = report_text.markdown(Report({"cores": "2"}, 2, 3), None)
    assert [line for line in text.splitlines() if line.startswith("#")] == [
        "# Benchmark results",
        "## Machine",
    ]


def test_figures_beside_the_page_are_those_of_its_tables() -> None:
    folder = Path(__file__).resolve().parents[2] / "docs" / "reference"
    page = (folder / "benchmarks.md").read_text()
    steps = json.loads((folder / "benchmarks.json").read_text())["steps"]
    tables = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##)", page, re.DOTALL | re.MULTILINE))
    assert {step["workload"] for step in steps} == {*tables}
    for step in steps:
        title = BY_NAME[step["contender"]].title
        numbers = [report_text.figure(step[key]) for key in ("best_us", "median_us")]
        row = f"| {title} | {step['replicas']} | {numbers[0]} | {numbers[1]}"
        assert row in tables[step["workload"]]


def test_report_is_plain_data(report: Report) -> None:
    stored = json.loads(json.dumps(report.to_json()))
    assert stored["speed"]["digits"][0]["samples"] == [40.0, 50.0, 60.0]
    assert Report.from_json(stored) == report


@cases(
    ("value", "text"),
    [(None, "-"), (0, "0"), (1234.5, "1234"), (12.345, "12.3"), (1.0, "1.00"), (0.01, "0.0100")],
)
def test_figures(value: float | None, text: str) -> None:
    assert report_text.figure(value) == text


def test_speeds_are_relative_to_the_fastest_peer(report: Report) -> None:
    assert plot.speeds_of(report) == {1: {"digits": (1.5, "JAX")}, 2: {"digits": (4.0, "JAX")}}
    digits = report.speed["digits"]
    report.speed = {"norm": [*digits, Series("torch", 1, [25.0]), Series("torch", 2, [30.0])]}
    # On several replicas PyTorch normalizes over the examples of a process.
    assert plot.speeds_of(report) == {1: {"norm": (0.5, "PyTorch")}, 2: {"norm": (4.0, "JAX")}}


@cases(
    ("speed", "words"),
    [
        (0.92, "8 % slower than JAX"),
        (0.99, "as fast as JAX"),
        (1.01, "as fast as JAX"),
        (1.62, "1.6 times as fast as JAX"),
        (12.8, "13 times as fast as JAX"),
    ],
)
def test_words_of_a_bar(speed: float, words: str) -> None:
    assert plot.words_for(speed, "JAX") == words


def test_titles_of_networks() -> None:
    assert plot.title_of("adam") == "784-512-512-10, Adam"
    assert plot.title_of("norm") == "64-128-128-10, batch norm."
    assert plot.title_of("lenet") == "28x28x1, 2 convolutions"


def test_networks_with_convolutions_are_described() -> None:
    assert report_text.description(TIMED["cifar"]).startswith(
        "32x32x3-32-32-pool-64-64-pool-128-128-pool-10, convolutions of 3 x 3, with batch "
        "normalisation before the activations, batch 64, 8 steps an epoch; "
    )


def test_stored_figures_are_a_report_again(report: Report, tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    path.write_text(json.dumps(report.figures()))
    assert plot.speeds_of(plot.stored(path)) == plot.speeds_of(report)


@pytest.mark.slow
def test_plot(report: Report, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "benchmarks.svg"
    assert plot.draw(report, path) == path
    first = path.read_bytes()
    plot.draw(report, path)
    assert path.read_bytes() == first
    assert plot.draw(Report({}, 2, 3), path) is None


def test_notes_written_by_hand_are_kept() -> None:
    before = "# Benchmark results\n\nold\n\n## Notes on this run\n\nBy hand.\n\n## More\n"
    after = report_text.with_notes("# Benchmark results\n\nnew\n", before)
    assert after == "# Benchmark results\n\nnew\n\n## Notes on this run\n\nBy hand.\n\n## More\n"
    assert report_text.with_notes("new\n", "old\n") == "new\n"
