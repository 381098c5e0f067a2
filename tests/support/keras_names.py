"""All public names of Keras' modules, as keras_names.json has them.

Those are Keras 3.15's. Where it is installed, `python tests/support/keras_names.py` writes them
anew.
"""

import importlib
import json
import pkgutil
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_suffix(".json")


def main() -> None:
    """Write the names of each module, in order."""
    keras: Any = importlib.import_module("keras")
    modules = ["keras"]
    for found in pkgutil.walk_packages(keras.__path__, "keras."):
        inner = found.name.split(".")[1]
        if inner not in ("src", "_tf_keras") and found.ispkg:
            modules.append(found.name)
    names = {
        module: sorted(
            name
            for name in vars(importlib.import_module(module))
            if not name.startswith("_") and name != "src"
        )
        for module in modules
    }
    lines = (f"{json.dumps(module)}: {json.dumps(each)}" for module, each in names.items())
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
