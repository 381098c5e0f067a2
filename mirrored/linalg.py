"""The public names of linear algebra, as ``mr.linalg``.

An alias module without logic of its own.
"""

from mirrored.ops import global_norm as global_norm
from mirrored.ops import matmul as matmul
