"""The causes that are named first are those that fit what was seen, and what NCCL said."""

import pytest

from mirrored.backends.selftest.sums import Symptom, likely_causes, settings_in_force

SWITCHES = ("NCCL_P2P_DISABLE=1", "NCCL_NVLS_ENABLE=0", "NCCL_SHM_DISABLE=1", "mirrored devices")
P2P, NVLS, SHM, VERSIONS = SWITCHES


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in dict(settings_in_force()):
        monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("symptom", "said", "first"),
    [
        (Symptom.WRONG, "", P2P),
        (Symptom.TIMEOUT, "", P2P),
        (Symptom.CRASH, "", SHM),
        (Symptom.ERROR, "", VERSIONS),
        (Symptom.TIMEOUT, "transport/nvls.cc:165 NCCL WARN Cuda failure 'invalid argument'", NVLS),
        (
            Symptom.ERROR,
            "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152",
            NVLS,
        ),
        (Symptom.ERROR, "NCCL WARN Error while creating shared memory segment /dev/shm/nccl", SHM),
        (Symptom.TIMEOUT, "It was ended by SIGBUS.", SHM),
        (Symptom.WRONG, "CUDA driver version is insufficient for CUDA runtime version", VERSIONS),
    ],
)
def test_what_comes_first(symptom: Symptom, said: str, first: str) -> None:
    causes = likely_causes(symptom, said)
    assert first in causes[0]
    named = [switch for cause in causes for switch in SWITCHES if switch in cause]
    assert sorted(named) == sorted(SWITCHES), "each is named once"


@pytest.mark.parametrize(
    ("name", "value", "ruled_out"),
    [
        ("NCCL_P2P_DISABLE", "1", P2P),
        ("NCCL_NVLS_ENABLE", "0", NVLS),
        ("NCCL_SHM_DISABLE", "1", SHM),
        ("NCCL_P2P_DISABLE", "0", None),
    ],
)
def test_what_is_switched_off_is_no_cause(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, ruled_out: str | None
) -> None:
    monkeypatch.setenv(name, value)
    causes = " ".join(likely_causes(Symptom.TIMEOUT, ""))
    assert [switch for switch in SWITCHES if switch not in causes] == [ruled_out] * bool(ruled_out)


def test_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NCCL_P2P_DISABLE", "MIRRORED_NCCL_MULTI_RANK", "CUDA_VISIBLE_DEVICES", "NCC"):
        monkeypatch.setenv(name, "1")
    assert list(settings_in_force()) == [
        ("CUDA_VISIBLE_DEVICES", "1"),
        ("MIRRORED_NCCL_MULTI_RANK", "1"),
        ("NCCL_P2P_DISABLE", "1"),
    ]
