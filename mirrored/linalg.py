"""The public names of linear algebra, as ``mr.linalg``.

An alias module without logic of its own.
"""

from mirrored._absent import absent_names as _absent_names
from mirrored.ops import global_norm as global_norm
from mirrored.ops import matmul as matmul

globals()["__getattr__"] = _absent_names("tf.linalg")
