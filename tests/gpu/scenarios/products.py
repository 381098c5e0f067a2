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


def long_sums(dtype: str) -> dict[str, Any]:
    """Multiply ones and minus ones whose sums are exact in float32; return both sides.

    The sums over so long an axis are computed in parts. Those are longer than the dtype can hold,
    so that they show whether they were rounded to it before they were added.
    """
    rng = np.random.default_rng(20)
    a, b = rng.choice([-1, 1], size=(8, 1 << 16)), rng.choice([-1, 1], size=(1 << 16, 8))
    with mr.device("GPU:0"):
        product = mr.matmul(*(mr.cast(mr.constant(x.astype("float32")), dtype) for x in (a, b)))
        found = mr.cast(product, "float32").numpy()
    with mr.device("CPU:0"):
        exact = mr.constant((a @ b).astype("float32"))
        return {"found": found, "expected": mr.cast(mr.cast(exact, dtype), "float32").numpy()}
