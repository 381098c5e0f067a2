"""TensorFlow 1's programs: `import mirrored.compat.v1 as tf`."""

import typing as _typing

from mirrored._late import late_module as _late_module

if _typing.TYPE_CHECKING:
    from mirrored.compat import v1 as v1

_LATE = {"mirrored.compat": "v1"}
_late_module(__name__, _LATE)
