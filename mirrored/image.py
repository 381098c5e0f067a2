"""The public names of functions of images, as ``mr.image``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.image",
    __name__,
    {
        "mirrored.ops.image_colors": """
            adjust_brightness adjust_contrast adjust_gamma convert_image_dtype
            grayscale_to_rgb per_image_standardization random_brightness random_contrast
            random_crop random_flip_left_right random_flip_up_down rgb_to_grayscale
            rgb_to_yiq rgb_to_yuv stateless_random_brightness stateless_random_contrast
            stateless_random_crop stateless_random_flip_left_right
            stateless_random_flip_up_down yiq_to_rgb yuv_to_rgb
        """,
        "mirrored.ops.image_geometry": """
            ResizeMethod central_crop crop_to_bounding_box flip_left_right flip_up_down
            image_gradients pad_to_bounding_box resize resize_with_crop_or_pad
            resize_with_pad rot90 total_variation transpose=transposed
        """,
        "mirrored.ops.image_hues": """
            adjust_hue adjust_saturation hsv_to_rgb random_hue random_saturation
            rgb_to_hsv stateless_random_hue stateless_random_saturation
        """,
        "mirrored.ops.image_patches": "extract_patches",
    },
)
