"""TensorFlow 1's programs: `import mirrored.compat.v1 as tf`."""

from mirrored._late import late_module as _late_module

_late_module(__name__, {"mirrored.compat": "v1"})
