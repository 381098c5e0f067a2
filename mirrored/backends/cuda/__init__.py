"""NVIDIA's GPUs, through CuPy: one backend object for each logical device on a card.

Cards are found without CuPy and without CUDA being started; both wait for the first array on one.
"""
