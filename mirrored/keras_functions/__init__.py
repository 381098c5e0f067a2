"""Keras' functions of tensors: those of `keras.ops`, and those of its older `keras.backend`.

They are compositions of ops under Keras' names, arguments and rules for dtypes.
"""
