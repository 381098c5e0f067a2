"""Keras' operations of images, as ``mr.keras.ops.image``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.ops.image",
    __name__,
    {
        "mirrored.keras_functions.convolution_and_pooling": "extract_patches extract_patches_3d",
        "mirrored.keras_functions.image": """
            affine_transform crop_images hsv_to_rgb pad_images resize
            rgb_to_grayscale rgb_to_hsv
        """,
    },
)
