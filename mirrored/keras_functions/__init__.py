"""Keras' functions on tensors: `keras.ops` and the older `keras.backend`.

They are compositions of ops under Keras' names, arguments and rules for dtypes.
"""
