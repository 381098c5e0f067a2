"""Modules that need packages which only the extra `dev` installs.

Tests that go through all modules leave these to slow tests beside them.
"""

IMPORT_MORE = {"mirrored.training.sklearn_wrappers"}
WRAPPERS = "mirrored.keras.wrappers"  # It is imported without them, but its names are not.
