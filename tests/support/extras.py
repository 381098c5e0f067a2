"""Modules that need packages which only the extra `dev` installs.

Tests that go through all modules leave these to slow tests beside them.
"""

IMPORT_MORE = {
    "mirrored.training.callbacks.history_figure",
    "mirrored.training.sklearn_wrappers",
}
EXAMPLES_NEED_MORE = {*IMPORT_MORE, "mirrored.training.callbacks.history"}
WRAPPERS = "mirrored.keras.wrappers"  # It is imported without them, but its names are not.
