"""The page of a GPU's results: everything that was found is in it, and why the rest is not."""

from benchmarks.gpu import report, results

FIGURES = [
    results.Figure("mirrored", "wide", "tf32", [90.0, 100.0, 120.0], 40, loss_error=1e-7),
    results.Figure("torch-graph", "wide", "tf32", [130.0], 30, loss_error=0.5),
    results.Figure("jax", "wide", "tf32", [95.0], 30, loss_error=2e-7),
    results.Figure("products", "wide", "tf32", [80.0], 50),
    results.Figure("torch", "wide", "tf32", problem="ended with status -11: gone"),
]
TESTS = [
    {"test": "test_a.py::test_x[1]", "outcome": "passed", "seconds": 1.0, "text": ""},
    {"test": "test_a.py::test_x[2]", "outcome": "failed", "seconds": 0.5, "text": "E  wrong"},
    {"test": "test_a.py::test_y", "outcome": "crashed", "seconds": 0.0, "text": ""},
    {"test": "test_a.py::test_z", "outcome": "skipped", "seconds": 0.0, "text": "no part"},
]


def page(**found: object) -> str:
    everything: dict[str, object] = {
        "machine": {"card": "a card", "date": "a day"},
        "missing": {"JAX": "not compared with"},
        "devices": "GPU:0 is a card\n",
        "files": [results.TestFile("test_a.py", 2.0, TESTS, "ended by SIGSEGV", "the last line")],
        "figures": FIGURES,
        "clocks": {"wide, tf32": "SM 1980 MHz"},
        "facts": {"jax": {"version": "1.2"}},
        "complete": True,
    }
    return report.markdown(results.Results(**{**everything, **found}), 0.2)  # type: ignore[arg-type]


def test_machine() -> None:
    text = page()
    for part in ("card: a card", "JAX is not installed: not compared with", "GPU:0 is a card"):
        assert part in text


def test_tests() -> None:
    text = page()
    assert "1 crashed, 1 failed, 1 passed, 1 skipped, in 2 s." in text
    assert "| `test_a.py::test_x` | 1 | - | 1 | 1.5 |" in text
    assert "**failed**: `test_a.py::test_x[2]`\n\n```text\nE  wrong\n```" in text
    assert "**crashed**: `test_a.py::test_y`" in text
    assert "skipped, 1 of `test_a.py::test_z`: no part" in text
    assert "**test_a.py** ended by SIGSEGV:\n\n```text\nthe last line\n```" in text


def test_speed() -> None:
    text = page()
    assert "| mirrored | 90.0 | 100 | 1.25 | - | 3 | 40 | 1e-07 |" in text
    assert "| JAX, jit | 95.0 | 95.0 | 1.19 | 0.95 | 1 | 30 | 2e-07 |" in text
    assert "| PyTorch, CUDA graph | 130 | 130 | 1.62 | 1.30 | 1 | 30 | **5e-01** |" in text
    assert "- PyTorch, eager: ended with status -11: gone" in text
    assert "SM 1980 MHz" in text
    assert "jax: version 1.2" in text


def test_targets() -> None:
    text = page()
    products = next(line for line in text.splitlines() if "products alone, tf32 |" in line)
    assert products == (
        "| step / products alone, tf32 | - | - | 1.25 (<= 2.1: met) | not measured |"
    )
    # The peer whose losses differ takes no part, so the other one is the fastest.
    assert "0.95 (>= 1: missed)" in text


def test_what_was_not_run_is_said() -> None:
    text = page(complete=False, simulated=True, files=[], figures=[])
    assert "did not come to its end" in text
    assert "no figure here means anything" in text
    assert "## Tests\n\nNot run." in text
    assert "## Targets" not in text
    assert "did not come to its end" not in page()
