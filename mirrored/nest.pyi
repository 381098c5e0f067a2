# Written by tests/support/stubs.py from the table in nest.py; do not edit it.
from mirrored._absent import public_module as _public_module
from mirrored.ops.structures import assert_same_structure as assert_same_structure
from mirrored.ops.structures import flatten as flatten
from mirrored.ops.structures import is_nested as is_nested
from mirrored.ops.structures import map_structure as map_structure
from mirrored.ops.structures import pack_sequence_as as pack_sequence_as
