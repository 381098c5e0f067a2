# Written by tests/support/stubs.py from the table in test.py; do not edit it.
from mirrored._absent import public_module as _public_module
from mirrored.devices.info import gpu_device_name as gpu_device_name
from mirrored.devices.info import is_built_with_cuda as is_built_with_cuda
from mirrored.devices.info import is_gpu_available as is_gpu_available
