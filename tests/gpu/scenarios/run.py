"""Runs one function of a module beside it, in a process of its own, and stores what it returns.

Devices are frozen once they are in use, so each configuration of them needs a process.
"""

import importlib
import json
import sys
import warnings
from pathlib import Path

# The checkout, which need not be installed, and what its tests share.
sys.path.insert(1, str(Path(__file__).resolve().parents[3]))
sys.path.insert(1, str(Path(__file__).resolve().parents[2] / "support"))
import numpy as np
import stand_ins

import mirrored as mr


def main() -> None:
    """Run the function that the command line names, with its arguments, and store its results."""
    module, function, arguments, path = sys.argv[1:]
    found = importlib.import_module(module)
    stand_ins.install()
    # What is compared with the host is float32 in full; it is on by default, as in TensorFlow.
    mr.config.experimental.enable_tensor_float_32_execution(False)
    # Only now: what other packages warn of while they are imported is their own. CuPy is imported
    # when a card is first used.
    warnings.simplefilter("error")
    warnings.filterwarnings("default", module="cupy")
    results = getattr(found, function)(**json.loads(arguments))
    np.savez(path, **{name: np.asarray(value) for name, value in results.items()})


if __name__ == "__main__":
    main()
