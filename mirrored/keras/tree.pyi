# Written by tests/support/stubs.py from the table in tree.py; do not edit it.
from mirrored._absent import public_module as _public_module
from mirrored.keras_functions.tree import MAP_TO_NONE as MAP_TO_NONE
from mirrored.keras_functions.tree import assert_same_paths as assert_same_paths
from mirrored.keras_functions.tree import assert_same_structure as assert_same_structure
from mirrored.keras_functions.tree import flatten as flatten
from mirrored.keras_functions.tree import flatten_with_path as flatten_with_path
from mirrored.keras_functions.tree import is_nested as is_nested
from mirrored.keras_functions.tree import lists_to_tuples as lists_to_tuples
from mirrored.keras_functions.tree import map_shape_structure as map_shape_structure
from mirrored.keras_functions.tree import map_structure as map_structure
from mirrored.keras_functions.tree import map_structure_up_to as map_structure_up_to
from mirrored.keras_functions.tree import pack_sequence_as as pack_sequence_as
from mirrored.keras_functions.tree import traverse as traverse
