"""Keras' side of an exchange of files: run by the test, with the folder as its argument.

It reads what the test wrote, writes files of its own, and says what comes of both.
"""

import json
import os
import sys
from pathlib import Path


def main() -> None:
    """Load and save all models."""
    os.environ["KERAS_BACKEND"] = "numpy"
    # Keras does without these, which take longer to import than it does.
    sys.modules |= dict.fromkeys(("matplotlib", "pandas", "PIL", "sklearn"))  # type: ignore[arg-type]
    import keras
    import keras_models

    folder = Path(sys.argv[1])
    keras.utils.set_random_seed(1)
    models = keras_models.cases(keras)
    keras_models.save(models, folder / "theirs")
    found = {
        "theirs": keras_models.come_of(models),
        "ours": keras_models.come_of(keras_models.load(keras, folder / "ours")),
    }
    (folder / "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
