"""A data set of Keras' from its files, as ``mr.keras.datasets.imdb``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.datasets.imdb",
    __name__,
    {"mirrored.data.keras_texts": "get_word_index=imdb_word_index load_data=load_imdb"},
)
