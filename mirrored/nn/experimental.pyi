# Written by tests/support/stubs.py from the table in experimental.py; do not edit it.
from mirrored._absent import public_module as _public_module
from mirrored.ops import general_dropout as general_dropout
from mirrored.ops import stateless_dropout as stateless_dropout
