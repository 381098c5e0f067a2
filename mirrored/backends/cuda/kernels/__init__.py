"""The table of CUDA kernels by op.

What is computed element by element is not here: such ops are fused, several in one kernel.
"""

from mirrored.backends.cuda.kernels import (
    convolution_kernels,
    copying,
    gather_kernels,
    line_kernels,
    matrices,
    pooling_kernels,
    product_kernels,
    random_states,
    random_streams,
    reduction_kernels,
    softmax_kernels,
)
from mirrored.backends.cuda.launcher import DeviceKernel
from mirrored.backends.stream_backend import Combination

_MODULES = (
    convolution_kernels,
    copying,
    gather_kernels,
    line_kernels,
    matrices,
    pooling_kernels,
    product_kernels,
    random_states,
    random_streams,
    reduction_kernels,
    softmax_kernels,
)

KERNELS: dict[str, DeviceKernel] = {
    name: kernel for module in _MODULES for name, kernel in module.KERNELS.items()
}

# What of several ops one kernel computes in recorded programs, by their names.
COMBINATIONS: dict[tuple[str, ...], Combination] = {
    **product_kernels.COMBINATIONS,
    **softmax_kernels.COMBINATIONS,
}
