# Written by tests/support/stubs.py from the table in experimental.py; do not edit it.
from mirrored._absent import public_module as _public_module
from mirrored._types import TensorLike as TensorLike
