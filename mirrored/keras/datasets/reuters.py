"""A data set of Keras' from its files, as ``mr.keras.datasets.reuters``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.datasets.reuters",
    __name__,
    {
        "mirrored.data.keras_texts": """
            get_label_names=reuters_label_names get_word_index=reuters_word_index
            load_data=load_reuters
        """
    },
)
