"""NumPy's functions of tensors, under TensorFlow's rules for dtypes, as `mr.experimental.numpy`.

Compositions of operations; the public names are in `mirrored/experimental/numpy/`.
"""
