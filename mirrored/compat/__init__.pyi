# Written by tests/support/stubs.py from the table in __init__.py; do not edit it.
from mirrored._late import late_module as _late_module
from mirrored.compat import v1 as v1
