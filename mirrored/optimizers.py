"""``mirrored.keras.optimizers`` under a shorter name, to import from: the two are one module.

Type checkers read this file; an import of it returns that module.
"""

import sys
from typing import TYPE_CHECKING

from mirrored.keras import optimizers

if TYPE_CHECKING:
    from mirrored.keras.optimizers import *  # noqa: F403 - all that it lists.

sys.modules[__name__] = optimizers
