# Written by tests/support/stubs.py from the table in image.py; do not edit it.
from mirrored._absent import public_module as _public_module
from mirrored.keras_functions.image import affine_transform as affine_transform
from mirrored.keras_functions.image import crop_images as crop_images
from mirrored.keras_functions.convolution_and_pooling import extract_patches as extract_patches
from mirrored.keras_functions.convolution_and_pooling import extract_patches_3d as extract_patches_3d
from mirrored.keras_functions.image import hsv_to_rgb as hsv_to_rgb
from mirrored.keras_functions.image import pad_images as pad_images
from mirrored.keras_functions.image import resize as resize
from mirrored.keras_functions.image import rgb_to_grayscale as rgb_to_grayscale
from mirrored.keras_functions.image import rgb_to_hsv as rgb_to_hsv
