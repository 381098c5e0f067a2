"""Whether there are GPUs to compute on: the functions behind ``mr.test``.

None of them initialises the devices, so that they can still be configured afterwards.
"""

from __future__ import annotations

from mirrored._arguments import explained
from mirrored._numbers import as_integer
from mirrored.backends import Hardware
from mirrored.devices.checks import checked_bool
from mirrored.devices.config import get_visible_devices
from mirrored.devices.configuration import configuration
from mirrored.errors import InvalidArgumentError

_ANY = (0, 0)


@explained
def is_gpu_available(
    cuda_only: bool = False, min_cuda_compute_capability: tuple[int, int] | None = None
) -> bool:
    """Return whether there is a visible GPU. Simulated GPUs count, unless CUDA is asked for.

    Args:
        cuda_only: Whether only CUDA GPUs count, which simulated ones are not.
        min_cuda_compute_capability: The least compute capability of a GPU that counts, as in
            ``(7, 0)``; simulated GPUs have none. None for any.

    Raises:
        ValueError: `cuda_only` is not a bool, or the capability is not a pair of integers.

    Example:
        >>> import mirrored as mr
        >>> mr.config.experimental.set_simulated_gpus(1)
        >>> mr.test.is_gpu_available(), mr.test.is_gpu_available(cuda_only=True)
        (True, False)
    """
    cuda_only = checked_bool(cuda_only, "cuda_only")
    least = _checked_capability(min_cuda_compute_capability)
    gpus = [configuration.hardware()[gpu] for gpu in get_visible_devices("GPU")]
    return any(_capability(gpu) >= least and not (cuda_only and gpu.simulated) for gpu in gpus)


def gpu_device_name() -> str:
    """Return the name of the first GPU, an empty string where none is visible.

    Example:
        >>> import mirrored as mr
        >>> mr.test.gpu_device_name()
        ''
        >>> mr.config.experimental.set_simulated_gpus(2)
        >>> mr.test.gpu_device_name()
        '/device:GPU:0'
    """
    return "/device:GPU:0" if get_visible_devices("GPU") else ""


def is_built_with_cuda() -> bool:
    """Return whether the library can use CUDA: True, be there a GPU, and CuPy for it, or not.

    Example:
        >>> import mirrored as mr
        >>> mr.test.is_built_with_cuda()
        True
    """
    return True


def _capability(gpu: Hardware) -> tuple[object, ...]:
    found = gpu.details.get("compute_capability")
    return found if isinstance(found, tuple) else _ANY


def _checked_capability(value: object) -> tuple[object, ...]:
    if value is None:
        return _ANY
    parts = value if isinstance(value, tuple | list) else ()
    pair = tuple(as_integer(part) for part in parts)
    if len(pair) != 2 or None in pair:
        raise InvalidArgumentError(
            "`min_cuda_compute_capability` is a pair of integers, as in (7, 0), or None. "
            f"Received: {value!r}"
        )
    return pair
