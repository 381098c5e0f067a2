"""INFO lines reach standard error, unless the application configured logging itself."""

import logging
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import mirrored as mr
from mirrored import config
from mirrored._logging import _make_logger, logger, warn_caller
from mirrored._nest import map_structure


def unconfigure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make it a program that configured nothing: pytest's own handlers are a configuration."""
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(logging.getLogger(), "level", logging.WARNING)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return what makes a logger as the import does, at a level that the environment asks for."""

    def make(asked: str | None = None, name: str = "mirrored_of_a_test") -> logging.Logger:
        unconfigure(monkeypatch)
        if asked is None:
            monkeypatch.delenv("MIRRORED_LOG_LEVEL", raising=False)
        else:
            monkeypatch.setenv("MIRRORED_LOG_LEVEL", asked)
        return _make_logger(name)

    yield make
    logging.Logger.manager.loggerDict.pop("mirrored_of_a_test", None)


def test_name_and_level() -> None:
    assert mr.get_logger() is logger
    assert logger.name == "mirrored"
    assert logger.level == logging.NOTSET
    assert len(logger.handlers) == 1


def test_lines_go_to_the_standard_error_of_the_moment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    unconfigure(monkeypatch)
    logger.info("Executing op %s", "MatMul")
    logger.debug("not shown")
    captured = capsys.readouterr()
    assert captured.err == "Executing op MatMul\n"
    assert captured.out == ""


@pytest.mark.behaviour("log-level")
@pytest.mark.parametrize("level", [logging.NOTSET, logging.INFO, logging.WARNING])
def test_an_application_that_configured_logging_gets_each_line_once_at_its_level(
    level: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[str] = []
    handler = logging.Handler()
    monkeypatch.setattr(handler, "emit", lambda record: seen.append(record.getMessage()))
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    logger.info("before")
    # As `basicConfig` does, after the library was imported and has logged.
    monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
    monkeypatch.setattr(logging.getLogger(), "level", level)
    logger.info("once")
    logger.warning("twice")
    assert seen == (["twice"] if level == logging.WARNING else ["once", "twice"])
    assert capsys.readouterr().err == "before\n"
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    assert logger.isEnabledFor(logging.INFO)  # Nothing was kept of it.


@pytest.mark.behaviour("log-level")
@pytest.mark.parametrize("level", [logging.DEBUG, logging.ERROR])
def test_a_level_that_an_application_gave_without_a_handler(
    level: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    unconfigure(monkeypatch)
    monkeypatch.setattr(logging.getLogger(), "level", level)
    assert logger.getEffectiveLevel() == level


@pytest.mark.behaviour("log-level")
@pytest.mark.parametrize(
    ("asked", "level"),
    [
        ("DEBUG", logging.DEBUG),
        ("warning", logging.WARNING),
        (" Error ", logging.ERROR),
        ("35", 35),
        ("", logging.NOTSET),
        (None, logging.NOTSET),
    ],
)
def test_the_environments_level(asked: str | None, level: int, made: Any) -> None:
    logger = made(asked)
    assert logger.level == level
    assert logger.getEffectiveLevel() == (level or logging.INFO)
    assert logger.isEnabledFor(logging.ERROR)


@pytest.mark.parametrize("asked", ["loud", "-1", "1.5", "3 INFO"])
def test_no_level_at_all(asked: str, made: Any) -> None:
    """The import goes on, and the first look at the devices raises the error."""
    assert made(asked).level == logging.NOTSET
    message = r"MIRRORED_LOG_LEVEL must be a level of .* INFO, .*Received: .*, or unset it\."
    with pytest.raises(ValueError, match=message):
        config.list_physical_devices()


def test_what_switches_logging_off(monkeypatch: pytest.MonkeyPatch, made: Any) -> None:
    logger = made()
    assert logger.isEnabledFor(logging.INFO)
    monkeypatch.setattr(logging.Logger.manager, "disable", logging.WARNING)
    assert not logger.isEnabledFor(logging.WARNING)
    assert logger.isEnabledFor(logging.ERROR)
    logger.disabled = True
    assert not logger.isEnabledFor(logging.ERROR)


def test_an_applications_own_class_of_loggers_stays(made: Any) -> None:
    class Own(logging.Logger):
        pass

    logging.setLoggerClass(Own)
    try:
        assert type(made()) is Own
    finally:
        logging.setLoggerClass(logging.Logger)


SCRIPT = """
import logging
logging.getLogger("mirrored").setLevel(logging.WARNING)
from mirrored._logging import logger
logger.info("hidden")
logger.warning("shown")
logger.setLevel(logging.NOTSET)
logger.info("shown too")
logging.basicConfig(level=logging.ERROR)
logger.warning("hidden")
"""


@pytest.mark.behaviour("log-level")
@pytest.mark.slow  # It imports the whole library anew.
def test_levels_that_an_application_sets() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("", "shown\nshown too\n")


@pytest.mark.parametrize("warn", [warn_caller, lambda text: map_structure(warn_caller, [[text]])])
def test_a_warning_names_the_line_that_called_the_library(warn: Any) -> None:
    with pytest.warns(UserWarning, match="Look here") as warned:
        warn("Look here")
    assert warned[0].filename == __file__
