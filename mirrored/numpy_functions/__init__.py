"""`mr.experimental.numpy`: NumPy's functions on tensors, with TensorFlow's dtype rules.

Compositions of operations; the public names are in `mirrored/experimental/numpy/`.
"""
