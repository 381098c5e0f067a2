"""INFO lines reach standard error, unless the application configured logging itself."""

import logging
import subprocess
import sys

import pytest

from mirrored._logging import logger


def test_name_and_level() -> None:
    assert logger.name == "mirrored"
    assert logger.level == logging.INFO
    assert len(logger.handlers) == 1


def test_lines_go_to_the_standard_error_of_the_moment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    logger.info("Executing op %s", "MatMul")
    logger.debug("not shown")
    captured = capsys.readouterr()
    assert captured.err == "Executing op MatMul\n"
    assert captured.out == ""


def test_an_application_that_configured_logging_gets_each_line_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[str] = []
    handler = logging.Handler()
    monkeypatch.setattr(handler, "emit", lambda record: seen.append(record.getMessage()))
    monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
    logger.info("once")
    assert seen == ["once"]
    assert capsys.readouterr().err == ""


SCRIPT = """
import logging
logging.getLogger("mirrored").setLevel(logging.WARNING)
from mirrored._logging import logger
logger.info("hidden")
logger.warning("shown")
"""


def test_a_level_set_before_the_import_stays() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("", "shown\n")
