"""The part of TensorFlow 1's `tf.contrib` that is provided: initializers of `tf.contrib.layers`."""

from mirrored.compat.v1.listing import list_names as _list_names

_list_names(
    __name__,
    {"mirrored.compat.v1.contrib": "layers"},
    advice="TensorFlow 2 has no `tf.contrib`, and only `tf.contrib.layers.xavier_initializer` of "
    "it exists here. Use `tf.layers`, `tf.nn` and `tf.train`.",
)
