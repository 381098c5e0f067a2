"""What is put into the environment for NCCL, which reads it once."""

import os
import pwd
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from mirrored.backends.communication.connection import MULTI_RANK
from mirrored.backends.cuda import nccl, nccl_settings

SAME_BITS = {
    "NCCL_ALGO": "Ring",
    "NCCL_PROTO": "Simple",
    "NCCL_NVLS_ENABLE": "0",
    "NCCL_MIN_CTAS": "16",
    "NCCL_MAX_CTAS": "16",
}
SEVERAL = {"NCCL_MULTI_RANK_GPU_ENABLE": "1", "NCCL_MAX_CTAS": "2", "NCCL_NVLS_ENABLE": "0"}


@pytest.fixture(autouse=True)
def nothing_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """NCCL has read no settings, and what is set here does not stay."""
    monkeypatch.setattr(nccl_settings, "_read", None)
    monkeypatch.setattr(nccl_settings, "_SYSTEM_FILE", tmp_path / "etc")
    home = SimpleNamespace(pw_dir=str(tmp_path))  # NCCL does not ask for HOME.
    monkeypatch.setattr(pwd, "getpwuid", lambda user: home)
    monkeypatch.delenv("NCCL_CONF_FILE", raising=False)
    for name in (*nccl_settings.SETTINGS, MULTI_RANK):
        monkeypatch.setenv(name, "")  # So that it is put back as it was.
        monkeypatch.delenv(name)


def found() -> Mapping[str, str]:
    return {name: os.environ[name] for name in nccl_settings.SETTINGS if name in os.environ}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {}),
        ({"NCCL_ALGO": "Tree"}, {}),
        ({"NCCL_NVLS_ENABLE": "1", "NCCL_PROTO": "LL"}, {}),
        ({"NCCL_MAX_CTAS": "4"}, {"NCCL_MIN_CTAS": "4"}),
        ({"NCCL_MIN_CTAS": "24"}, {"NCCL_MAX_CTAS": "24"}),
        ({"NCCL_MIN_CTAS": "2", "NCCL_MAX_CTAS": "8"}, {}),
        ({MULTI_RANK: "1"}, {"NCCL_MIN_CTAS": "2", "NCCL_MAX_CTAS": "2"}),
        ({MULTI_RANK: "0"}, {}),
    ],
)
def test_same_bits(
    given: Mapping[str, str], expected: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What users have set stays, and what goes with it follows."""
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    nccl.set_deterministic()
    kept = {name: value for name, value in given.items() if name != MULTI_RANK}
    assert found() == {**SAME_BITS, **expected, **kept}
    nccl_settings.note_that_they_are_read()
    nccl.set_deterministic()  # They are in force.


def test_same_bits_with_several_on_a_card(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MULTI_RANK, "1")
    nccl_settings.allow_several()
    assert found() == SEVERAL
    nccl.set_deterministic()
    assert found() == {**SAME_BITS, **SEVERAL, "NCCL_MIN_CTAS": "2"}


def test_same_bits_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is set between the reading and the question was not read either."""
    monkeypatch.setenv("NCCL_PROTO", "Simple")
    nccl_settings.note_that_they_are_read()
    before = found()
    monkeypatch.setenv("NCCL_ALGO", "Ring")
    nccl_settings.note_that_they_are_read()
    with pytest.raises(
        RuntimeError,
        match="Received: NCCL_ALGO=Ring, NCCL_NVLS_ENABLE=0, NCCL_MIN_CTAS=16, NCCL_MAX_CTAS=16 ",
    ):
        nccl.set_deterministic()
    assert found() == {**before, "NCCL_ALGO": "Ring"}


def test_several_on_a_card(monkeypatch: pytest.MonkeyPatch) -> None:
    assert f"{MULTI_RANK}=1 allows it" in str(nccl_settings.why_not_several())
    monkeypatch.setenv(MULTI_RANK, "1")
    assert nccl_settings.why_not_several() is None
    nccl_settings.note_that_they_are_read()
    assert "did not read NCCL_MULTI_RANK_GPU_ENABLE=1, " in str(nccl_settings.why_not_several())


def test_several_on_a_card_by_the_user_s_own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**SEVERAL, "NCCL_MAX_CTAS": "1", MULTI_RANK: "1"}.items():
        monkeypatch.setenv(name, value)
    nccl_settings.note_that_they_are_read()
    assert nccl_settings.why_not_several() is None
    assert found() == {**SEVERAL, "NCCL_MAX_CTAS": "1"}


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's comes before the system's, and the first of several lines counts."""
    assert nccl_settings.in_files() == {}
    (tmp_path / "etc").write_text("NCCL_ALGO=Tree\nNCCL_PROTO=LL\n#NCCL_DEBUG=INFO\nno line\n")
    (tmp_path / ".nccl.conf").write_text("NCCL_ALGO=Ring\nNCCL_ALGO=NVLS\nNCCL_SHM_DISABLE=1")
    own = {"NCCL_ALGO": "Ring", "NCCL_SHM_DISABLE": "1", "NCCL_PROTO": "LL"}
    assert nccl_settings.in_files() == own
    (tmp_path / "named").write_text("NCCL_DEBUG=WARN\n")
    monkeypatch.setenv("NCCL_CONF_FILE", str(tmp_path / "named"))
    system = {"NCCL_ALGO": "Tree", "NCCL_PROTO": "LL"}
    assert nccl_settings.in_files() == {"NCCL_DEBUG": "WARN", **system}


def test_what_files_set_stays(tmp_path: Path) -> None:
    (tmp_path / ".nccl.conf").write_text("NCCL_ALGO=Tree\nNCCL_MAX_CTAS=4\n")
    nccl.set_deterministic()
    kept = {"NCCL_ALGO", "NCCL_MAX_CTAS"}
    same = {name: value for name, value in SAME_BITS.items() if name not in kept}
    assert found() == {**same, "NCCL_MIN_CTAS": "4"}
    nccl_settings.note_that_they_are_read()
    nccl.set_deterministic()  # They are in force.


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "etc").write_text("NCCL_ALGO=Tree\n")

    def unknown(user: int) -> None:
        raise KeyError(user)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert nccl_settings.in_files() == {"NCCL_ALGO": "Tree"}


@pytest.mark.parametrize("value", ["0", " 0", "00", "0x0", "-0", "0\r", "08", "false", "no", " "])
def test_what_nccl_reads_as_0(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_COMM_BLOCKING", value)
    why = nccl_settings.why_not_blocking()
    assert why is not None
    assert f"with NCCL_COMM_BLOCKING={value.strip()} its calls" in why


@pytest.mark.parametrize("value", ["", "1", " 1", "01", "0x1", "10", "-1"])
def test_what_nccl_does_not(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_COMM_BLOCKING", value)
    assert nccl_settings.why_not_blocking() is None
