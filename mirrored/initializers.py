"""``mirrored.keras.initializers`` under a shorter name, to import from: the two are one module.

What stands here for type checkers gives its place to that module when it is imported.
"""

import sys

from mirrored.keras import initializers
from mirrored.keras.initializers import *  # noqa: F403 - all that it lists.

sys.modules[__name__] = initializers
