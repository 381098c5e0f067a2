"""`keras.ops` that NumPy has too, by what they do.

Python's `sum` and `abs`, say, are hidden in these files by Keras' functions of the same names.
"""
