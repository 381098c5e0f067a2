"""NVIDIA GPUs through CuPy: one backend per logical device.

Cards are found without CuPy and without CUDA being started; both wait for the first array on one.
"""
