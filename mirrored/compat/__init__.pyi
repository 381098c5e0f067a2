# Written by tests/support/stubs.py from the table in __init__.py; do not edit it.
import typing as _typing
from mirrored._late import late_module as _late_module
if _typing.TYPE_CHECKING:
    from mirrored.compat import v1 as v1
_LATE = {'mirrored.compat': 'v1'}
from mirrored.compat import v1 as v1
