"""Layers that give images another size, and what all layers of images share."""

from typing import Any, ClassVar, Unpack

from mirrored import ops
from mirrored.layers.layer import Layer, LayerOptions
from mirrored.layers.shapes import Shape, Shapes, as_data_format, map_shapes, require_rank
from mirrored.ops import Tensor
from mirrored.ops.image_geometry import resize
from mirrored.ops.image_transforms import fitted, in_proportion, with_last_channels

Transformation = Any


class ImageLayer(Layer):
    """A layer of one image, or of a batch of images.

    It may be given a dict too, of "images", their "labels" and "segmentation_masks": a mask changes
    as its image does, by the nearest pixels, and labels stay.
    """

    _changes_size: ClassVar[bool] = False
    _changes_masks: ClassVar[bool] = True  # Which its changes of colours leave alone.
    height: int
    width: int

    def __init__(self, data_format: str | None, /, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.data_format = as_data_format(data_format)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make a layer like it, by name, as plain values."""
        return {**super().get_config(), "data_format": self.data_format}

    def check_input_shape(self, input_shape: Shapes) -> None:
        """Raise ValueError unless there are images."""
        if isinstance(input_shape, dict):
            others = {*input_shape} - {"images", "labels", "segmentation_masks"}
            if others or "images" not in input_shape:
                raise ValueError(
                    f'Layer "{self.name}" takes "images", and "labels" and "segmentation_masks" '
                    f"where there are some. Received: {sorted(input_shape)}"
                )
            input_shape = input_shape["images"]
        require_rank(self.name, input_shape, 0)
        if len(input_shape) not in (3, 4):
            raise ValueError(
                "Expected image tensor to have rank 3 (single image) or 4 (batch of images). "
                f"Received: data.shape={input_shape}"
            )

    def compute_output_shape(self, input_shape: Shapes) -> Any:
        """Return the shape of the results, of whose images size may be another one."""
        if not self._changes_size:
            return input_shape
        if isinstance(input_shape, dict):
            return {
                name: shape if name == "labels" else map_shapes(self._resized_shape, shape)
                for name, shape in input_shape.items()
            }
        return self._resized_shape(input_shape)

    def _resized_shape(self, shape: Shape) -> Shape:
        if self.data_format == "channels_first":
            return (*shape[:-2], self.height, self.width)
        return (*shape[:-3], self.height, self.width, shape[-1])

    def call(self, data: Any, training: bool = True) -> Any:
        """Return changed images.

        Args:
            data: An image or a batch of them; or a dict of them and of what belongs to them.
            training: Whether random layers change them.
        """
        named = data if isinstance(data, dict) else {"images": data}
        drawn = self._draw(named["images"]) if training else None
        changed = {**named, "images": self._whole(named["images"], drawn, masks=False)}
        if "segmentation_masks" in named and self._changes_masks:
            changed["segmentation_masks"] = self._whole(
                named["segmentation_masks"], drawn, masks=True
            )
        return changed if isinstance(data, dict) else changed["images"]

    def _whole(self, images: Tensor, drawn: Transformation, masks: bool) -> Tensor:
        single = images.ndim == 3
        batch = ops.expand_dims(images, 0) if single else images
        interpolation = "nearest" if masks else str(getattr(self, "interpolation", "bilinear"))
        changed = self._changed(batch, drawn, interpolation)
        return ops.squeeze(changed, [0]) if single else changed

    def _draw(self, images: Tensor) -> Transformation:
        """Return what is drawn in training; layers that draw nothing return None."""

    def _changed(self, images: Tensor, drawn: Transformation, interpolation: str) -> Tensor:
        """Return a batch of images that is changed by what was drawn, None where nothing was."""
        raise NotImplementedError


class Resizing(ImageLayer):
    """Resizes images.

    Integers stay integers, to which results are rounded.

    Args:
        height: The height of the results.
        width: Their width.
        interpolation: "bilinear", "nearest", "bicubic", "area", "lanczos3" or "lanczos5".
        crop_to_aspect_ratio: Whether edges are cut off before, for the proportions of the results.
        pad_to_aspect_ratio: Whether edges are added before, for them.
        fill_mode: "constant".
        fill_value: What is in added edges.
        antialias: Whether what is made smaller is made smooth before; "nearest" and "area" ignore
            it.
        data_format: "channels_last", the default: shape (batch, height, width, channels) or one
            image; or "channels_first": (batch, channels, height, width).
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: There is no such ``data_format``. Other arguments are looked at in a call.

    Example:
        >>> Resizing(1, 4)([[[0.0], [4.0]]]).numpy()[..., 0].tolist()
        [[0.0, 1.0, 3.0, 4.0]]
    """

    _changes_size = True
    _keeps_integers = True

    def __init__(
        self,
        height: int,
        width: int,
        interpolation: str = "bilinear",
        crop_to_aspect_ratio: bool = False,
        pad_to_aspect_ratio: bool = False,
        fill_mode: str = "constant",
        fill_value: float = 0.0,
        antialias: bool = False,
        data_format: str | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(data_format, **options)
        self.height, self.width = height, width
        self.interpolation = interpolation
        self.crop_to_aspect_ratio = crop_to_aspect_ratio
        self.pad_to_aspect_ratio = pad_to_aspect_ratio
        self.fill_mode, self.fill_value = fill_mode, fill_value
        self.antialias = bool(antialias)

    def _changed(self, images: Tensor, drawn: Transformation, interpolation: str) -> Tensor:
        return fitted(
            images,
            (self.height, self.width),
            interpolation,
            self.antialias,
            self.crop_to_aspect_ratio,
            self.pad_to_aspect_ratio,
            self.fill_mode,
            self.fill_value,
            self.data_format,
        )


class CenterCrop(ImageLayer):
    """Cuts the middle out of images.

    Images that are smaller are resized: the largest middle that has the proportions of the result
    becomes that, in float32.

    Args:
        height: The height of the results.
        width: Their width.
        data_format: As for ``Resizing``.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: There is no such ``data_format``.

    Example:
        >>> CenterCrop(1, 2)([[[1], [2], [3], [4]]]).numpy()[..., 0].tolist()
        [[2.0, 3.0]]
    """

    _changes_size = True

    def __init__(
        self,
        height: int,
        width: int,
        data_format: str | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(data_format, **options)
        self.height, self.width = height, width

    def _changed(self, images: Tensor, drawn: Transformation, interpolation: str) -> Tensor:
        def cut(x: Tensor) -> Tensor:
            above, left = x.shape[1] - self.height, x.shape[2] - self.width
            if above >= 0 and left >= 0:
                rows = slice(above // 2, above // 2 + self.height)
                return x[:, rows, left // 2 : left // 2 + self.width]
            return resize(in_proportion(x, self.height, self.width), (self.height, self.width))

        return with_last_channels(ops.cast(images, self.compute_dtype), self.data_format, cut)
