"""Matrix products under the settings of precision, on the card.

Each setting's result is held to the product in float64 on the host.
"""

from typing import Any

import numpy as np

import mirrored as mr

SIZE = 512


def tensor_float_32() -> dict[str, Any]:
    """Multiply with TF32 off and on; return both products and the one in float64."""
    rng = np.random.default_rng(20)
    a, b = (rng.normal(size=(SIZE, SIZE)).astype(np.float32) for _ in range(2))
    found: dict[str, Any] = {"exact": a.astype(np.float64) @ b.astype(np.float64)}
    for name, enabled in (("off", False), ("on", True), ("off again", False)):
        mr.config.experimental.enable_tensor_float_32_execution(enabled)
        with mr.device("GPU:0"):
            found[name] = mr.matmul(mr.constant(a), mr.constant(b)).numpy()
    found["magnitude"] = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
    return found
