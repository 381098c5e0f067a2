# Written by tests/support/stubs.py from the table in __init__.py; do not edit it.
from mirrored.compat.v1.listing import list_names as _list_names
from mirrored.compat.v1.contrib import layers as layers
