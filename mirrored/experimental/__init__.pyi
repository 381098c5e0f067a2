# Written by tests/support/stubs.py from the table in __init__.py; do not edit it.
from mirrored._absent import public_module as _public_module
from mirrored.data.optional import Optional as Optional
from mirrored.experimental import dlpack as dlpack
from mirrored.experimental import numpy as numpy
