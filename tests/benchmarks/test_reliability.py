"""The page of the long tests: what it names is there, and failures are counted."""

from pathlib import Path

from benchmarks.reliability import PROMISES, Outcome, outcomes, page_of

TESTS = Path(__file__).parent.parent
REPORT = """<testsuites><testsuite>
<testcase classname="tests.training.test_soak" name="test_models" time="2.5"/>
<testcase classname="tests.training.test_soak" name="test_b" time="1.0"><failure/></testcase>
<testcase classname="tests.bad_input.test_fuzzed_files" name="a" time="1.0"><skipped/></testcase>
<testcase classname="tests.training.test_other" name="test_models" time="2.5"/>
</testsuite></testsuites>
"""


def test_the_tests_are_there_and_long() -> None:
    for promise in PROMISES:
        file, name = promise.tests
        text = (TESTS / file).read_text()
        assert f"def {name}" in text
        assert "mark.long" in text


def test_outcomes_and_page(tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text(REPORT)
    results = outcomes(tmp_path / "report.xml")
    by_file = {promise.tests[0]: outcome for promise, outcome in results.items()}
    assert by_file["training/test_soak.py"] == Outcome(1, 1, 0, 3.5)
    assert by_file["bad_input/test_fuzzed_files.py"] == Outcome(0, 0, 1, 1.0)
    page = page_of(results, {"cores": "2", "load before": "0.0"}, 60.0)
    assert "| 1 | 1 | 0 | 4 |" in page
    assert "--fuzz-seconds 60`: 2." in page
