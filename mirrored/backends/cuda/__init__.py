"""NVIDIA GPUs through CuPy: one backend per logical device.

Cards are found without CuPy and without CUDA being started; both wait for the first array on one.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from mirrored.backends.backend import Backend, Hardware, Platform, visible
from mirrored.backends.cuda import nvml


class Cuda(Platform):
    """The platform of NVIDIA's cards."""

    def hardware(self) -> Sequence[Hardware]:
        """Return the cards that CUDA_VISIBLE_DEVICES shows."""
        cards = nvml.cards()
        return visible([_hardware(card) for card in cards], [card.uuid for card in cards])

    def set_deterministic(self) -> None:
        """Let NCCL add in the same order in every run, which costs speed on some machines."""
        from mirrored.backends.cuda import nccl  # Most machines never need it.

        nccl.set_deterministic()

    def report(self, used: Iterable[Hardware]) -> Iterable[str]:
        """Yield what there is of the driver, the packages and, where cards are used, libraries."""
        from mirrored.backends.cuda.report import describe_installation  # As above.

        return describe_installation(any(map(_is_card, used)))

    def fingerprint(self, used: Iterable[Hardware]) -> Mapping[str, str]:
        """Return the cards that are used, their driver, and the versions of the libraries."""
        names = tuple(gpu.name for gpu in used if _is_card(gpu))
        if not names:
            return {}
        from mirrored.backends.cuda.report import fingerprint  # As above.

        return fingerprint(names)


def _is_card(hardware: Hardware) -> bool:
    return "compute_capability" in hardware.details


def _hardware(card: nvml.Card) -> Hardware:
    return Hardware(
        "GPU",
        card.index,
        card.name,
        partial(_open, card),
        memory=card.memory,
        details={
            "device_name": card.name,
            "compute_capability": card.compute_capability,
            "pci_bus_id": card.pci_bus_id,
            "uuid": card.uuid,
        },
    )


def _open(card: nvml.Card, priority: int | None) -> Backend:
    from mirrored.backends.cuda.cuda_backend import CudaBackend  # Most machines never need it.

    return CudaBackend(card, priority)
