"""Functions and layers of images, for any module with TensorFlow's names, and what they give there.

The numbers in image_values.json are TensorFlow 2.21's and Keras 3.15's. Where they are installed,
`python tests/support/image_values.py` writes them anew.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
FILE = Path(__file__).with_suffix(".json")
_RNG = np.random.default_rng(0)
_WHOLE = _RNG.integers(0, 256, (2, 3, 4, 1))
INPUTS: dict[str, Array] = {
    "x": (_WHOLE / 256).astype(np.float32),
    "d": _WHOLE / 256,
    "h": (_WHOLE / 256).astype(np.float16),
    "u": _WHOLE.astype(np.uint8),
    "i": (_WHOLE * 1000 - 99000).astype(np.int32),
    "s": (_WHOLE - 128).astype(np.int8),
    "one": (_WHOLE[0] / 256).astype(np.float32),
    "c": (_RNG.integers(0, 256, (2, 2, 2, 3)) / 256).astype(np.float32),
    "k": _RNG.integers(0, 256, (2, 2, 2, 3)).astype(np.uint8),
}
TRANSFORMS = {
    "shift": [1, 0, 1.5, 0, 1, -2.25, 0, 0],
    "half": [1, 0, -0.5, 0, 1, 0.5, 0, 0],
    "far": [1, 0, -23.4, 0, 1, 31.7, 0, 0],
    "turn": [0.8, -0.6, 1, 0.6, 0.8, -1.2, 0, 0],
    "projection": [1, 0.1, 0.2, 0.1, 1, 0.3, 0.05, 0.02],
}
_ANY = "x u one"  # What does not look at the numbers.
_CALLS = {
    "I.resize({}, (2, 3))": "x d h u i one",
    "I.resize({}, (5, 9), 'nearest')": "x d h u i one",
    "I.resize({}, (7, 1))": "x",
    "I.resize({}, (2, 3), 'nearest')": "x",
    "I.resize({}, (5, 9))": "x",
    **{
        f"I.resize({{}}, ({sizes}), '{method}', antialias={smooth})": "x"
        for method in ("bilinear", "bicubic", "area", "lanczos3", "gaussian", "mitchellcubic")
        for sizes, smooth in (("2, 3", True), ("5, 3", False))
    },
    "I.resize({}, (2, 7), 'lanczos5')": "x u",
    "I.resize({}, (9, 5), preserve_aspect_ratio=True)": "x",
    "I.resize_with_pad({}, 4, 9)": "x",
    "I.resize_with_crop_or_pad({}, 4, 3)": _ANY,
    "I.resize_with_crop_or_pad({}, 2, 7)": _ANY,
    "I.crop_to_bounding_box({}, 1, 2, 2, 1)": _ANY,
    "I.pad_to_bounding_box({}, 1, 2, 5, 6)": _ANY,
    "I.central_crop({}, 0.4)": _ANY,
    "I.flip_left_right({})": _ANY,
    "I.flip_up_down({})": _ANY,
    "I.transpose({})": _ANY,
    **{f"I.rot90({{}}, {k})": _ANY for k in (-1, 1, 2, 4)},
    "I.total_variation({})": "x one",
    "I.image_gradients({})[0]": "x",
    "I.image_gradients({})[1]": "x",
    "I.per_image_standardization({})": "x u one",
    "I.adjust_brightness({}, 0.3)": "x d h u i s",
    "I.adjust_contrast({}, 1.7)": "x d u s c",
    "I.adjust_gamma({}, 2.0, 1.5)": "x u",
    **{f"I.convert_image_dtype({{}}, '{to}', True)": "x u i s" for to in ("uint8", "int16")},
    **{f"I.convert_image_dtype({{}}, '{to}')": "x u i s" for to in ("float32", "int32", "uint16")},
    "I.rgb_to_grayscale({})": "c k",
    "I.grayscale_to_rgb({})": "x u",
    **{f"I.{name}({{}})": "c" for name in ("rgb_to_yiq", "yiq_to_rgb", "rgb_to_yuv", "yuv_to_rgb")},
    "I.rgb_to_hsv({})": "c",
    "I.hsv_to_rgb({})": "c",
    "I.adjust_hue({}, 0.3)": "c k",
    "I.adjust_hue({}, -0.7)": "c",
    "I.adjust_saturation({}, 0.5)": "c k",
    "I.adjust_saturation({}, 3.0)": "c",
    "I.stateless_random_hue({}, 0.3, (1, 2))": "c",
    "I.stateless_random_saturation({}, 0.3, 0.9, (1, 2))": "c",
    "K.rgb_to_hsv({})": "c",
    "K.hsv_to_rgb({}, 'channels_last')": "c",
    "I.stateless_random_flip_left_right({}, (1, 2))": "x one",
    "I.stateless_random_flip_up_down({}, (5, 3))": "x one",
    "I.stateless_random_brightness({}, 0.3, (1, 2))": "x u",
    "I.stateless_random_contrast({}, 0.3, 0.9, (1, 2))": "x u",
    "I.stateless_random_crop({}, (2, 2, 2, 1), (5, 3))": "x u",
    "I.extract_patches({}, [1, 2, 3, 1], [1, 1, 2, 1], [1, 1, 1, 1], 'VALID')": "x u",
    "I.extract_patches({}, [1, 2, 2, 1], [1, 2, 1, 1], [1, 1, 2, 1], 'SAME')": "x d c",
    "K.extract_patches({}, 2)": "x one c",
    "K.extract_patches({}, (2, 3), 1, padding='same')": "x",
    "K.extract_patches({}, 2, 1, 2)": "x",
    "K.extract_patches({}, (2, 1), data_format='channels_first')": "x",
    "K.extract_patches({}, (1, 2, 2))": "x",
    "K.extract_patches_3d({}, 2, 1)": "x",
    **{
        f"K.affine_transform({{}}, T['{name}'], '{way}', '{fill}', 3)": "x"
        for name in TRANSFORMS
        for fill in ("constant", "nearest", "wrap", "reflect")
        for way in ("nearest", "bilinear")
    },
    "K.affine_transform({}, T['turn'])": "d h u i one",
    "K.affine_transform({}, np.stack([T['turn'], T['shift']]), data_format='channels_first')": "x",
    "K.resize({}, (2, 3))": "x d u one",
    "K.resize({}, (2, 3), crop_to_aspect_ratio=True)": "x",
    "K.resize({}, (5, 3), pad_to_aspect_ratio=True, fill_value=2.0)": "x one",
    "K.resize({}, (4, 9), pad_to_aspect_ratio=True)": "x",
    "K.resize({}, (6, 2), data_format='channels_first')": "x one",
    "K.rgb_to_grayscale({})": "c k x",
    "K.pad_images({}, 1, None, None, 2, target_height=5, target_width=7)": "x one",
    "K.crop_images({}, 1, None, None, 2, target_height=2, target_width=1)": "x one",
}
_LAYERS = {
    "L.Resizing(2, 3)": "x u one",
    "L.Resizing(5, 3, 'nearest', data_format='channels_first')": "x u",
    "L.Resizing(2, 3, crop_to_aspect_ratio=True)": "x",
    "L.Resizing(5, 3, pad_to_aspect_ratio=True, fill_value=0.5)": "x",
    "L.Resizing(2, 3, dtype='float64')": "d",
    "L.CenterCrop(2, 3)": "x u one",
    "L.CenterCrop(5, 3)": "x u",
    "L.CenterCrop(2, 1, data_format='channels_first')": "x",
    "L.Resizing(2, 2, 'bicubic', antialias=True)": "x u",
    "L.RandomFlip()": "x u one",
    "L.RandomFlip('horizontal')": "x",
    "L.RandomFlip('vertical', data_format='channels_first')": "x",
    **{
        f"L.{kind}, {fill!r}, {way!r})": "x"
        for kind in (
            "RandomTranslation(0.4, (0.1, 0.7)",
            "RandomRotation((-0.2, 0.3)",
            "RandomZoom(0.5, (-0.3, 0.6)",
        )
        for fill in ("constant", "nearest", "wrap", "reflect")
        for way in ("nearest", "bilinear")
    },
    "L.RandomTranslation(0.3, 0.2, 'constant', fill_value=0.5)": "u one",
    "L.RandomTranslation(0.3, 0.2, data_format='channels_first')": "x",
    "L.RandomRotation(0.3)": "u one",
    "L.RandomRotation(0.3, data_format='channels_first')": "x",
    "L.RandomZoom((0.1, 0.5))": "u one",
    "L.RandomZoom((0.1, 0.5), data_format='channels_first')": "x",
    "L.RandomContrast(0.7)": "x c one",
    "L.RandomContrast((0.2, 0.7), (0.2, 0.6))": "x",
    "L.RandomContrast(0.7, data_format='channels_first')": "c",
    "L.RandomBrightness(0.7)": "x c one",
    "L.RandomBrightness((0.2, 0.7), (0.0, 1.0))": "x",
}
LAYER_CASES = [(text, name) for text, names in _LAYERS.items() for name in names.split()]
CASES = [(text, name) for text, names in _CALLS.items() for name in names.split()]


def results(tf: Any, text: str, name: str, x: Any = None) -> tuple[Array, Array | None]:
    """Return what a call gives, and the gradient of weighted results where there is one.

    Args:
        tf: A module with TensorFlow's names.
        text: The call.
        name: The name of the images.
        x: The images; None: those of the name.
    """
    images = tf.constant(INPUTS[name]) if x is None else x
    transforms = {key: np.asarray(row, np.float32) for key, row in TRANSFORMS.items()}
    names = {"I": tf.image, "K": tf.keras.ops.image, "T": transforms, "np": np, name: images}
    with tf.GradientTape() as tape:
        tape.watch(images)
        output = eval(text.format(name), names)
        weights = np.arange(1, output.numpy().size + 1).reshape(output.shape) % 7
        total = tf.reduce_sum(tf.cast(output, "float32") * weights.astype(np.float32))
    # TensorFlow's gradient of transforms is a transform of its own, and some have none there.
    others = ("affine", "contrast", "hsv_to_rgb", "hue", "saturation", "area")
    smooth = images.dtype == tf.float32 and not any(name in text for name in others)
    slope = tape.gradient(total, images) if smooth else None
    return output.numpy(), None if slope is None else slope.numpy()


class Draws:
    """Gives fixed numbers where a layer draws.

    Args:
        tf: A module with TensorFlow's names.
    """

    def __init__(self, tf: Any) -> None:
        self._tf = tf
        self._rows = iter(([0.3, 0.9], [0.85, 0.05]))

    def uniform(
        self, shape: Any, minval: float = 0.0, maxval: float = 1.0, *_: Any, **__: Any
    ) -> Any:
        """Return the next numbers, between these."""
        numbers = np.asarray(next(self._rows)[: shape[0]], np.float32).reshape(shape)
        return self._tf.constant(np.float32(minval) + np.float32(maxval - minval) * numbers)


def layer_results(tf: Any, text: str, name: str, training: bool = True) -> Array:
    """Return what a layer gives that draws fixed numbers.

    Args:
        tf: A module with TensorFlow's names.
        text: The layer.
        name: The name of the images.
        training: Whether it trains.
    """
    layer = eval(text, {"L": tf.keras.layers})
    if hasattr(layer, "generator"):
        layer.generator = Draws(tf)
    output: Array = layer(tf.constant(INPUTS[name]), training=training).numpy()
    return output


def _plain(array: Array | None) -> Any:
    if array is None:
        return None
    digits = 9 if array.dtype in (np.float16, np.float32) else 17
    values = [float(f"{value:.{digits}g}") for value in array.ravel().tolist()]
    return [str(array.dtype), list(array.shape), values]


def main() -> None:
    """Write the file."""
    import tensorflow as tf

    table = {}
    for text, name in CASES:
        output, slope = results(tf, text, name)
        table[text.format(name)] = [_plain(output), _plain(slope)]
    from keras.src.backend.tensorflow import random

    for text, name in LAYER_CASES:
        random.uniform = Draws(tf).uniform
        table[f"{text} {name}"] = [_plain(layer_results(tf, text, name)), None]
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in table.items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
