"""What models are made of, and how they are trained, as configurations; and models in files.

How the graph of a functional model is written and read is in `graph_configurations`.
"""

import inspect
import json
import warnings
from collections.abc import Callable, Collection, Mapping
from typing import Any, Self

from mirrored._arguments import explained
from mirrored._files import PathName
from mirrored.layers import InputLayer
from mirrored.serialization.constructor_arguments import deserialized, serialized
from mirrored.training.compilation import COMPILED
from mirrored.training.on_batches import SteppedOnBatches

_GRAPH_KEYS = ("name", "layers", "input_layers", "output_layers")


@explained
class ConfiguredModel(SteppedOnBatches):
    """A model that can be made again, of its configuration or of a file.

    `Model` says what the arguments are.
    """

    compile: Callable[..., None]

    @property
    def _named_as(self) -> Mapping[str, Any] | None:
        """What configurations call the class of a functional model, as Keras does; else None."""
        if self._part is None or not _is_functional(type(self)):
            return None
        name = "Functional"
        return {
            "module": "keras.src.models.functional",
            "class_name": name,
            "registered_name": name,
        }

    def get_config(self) -> dict[str, Any]:
        """Return what makes a model like it: its layers and their calls, or its arguments.

        A subclass with a constructor of its own is made of its arguments, as `Layer.get_config`
        says.

        Raises:
            NotImplementedError: A layer, or the subclass, does not say what it is made of; or an
                operation between layers is none of `keras.ops`.

        Example:
            >>> import mirrored as mr
            >>> x = mr.layers.Input((4,), name="x")
            >>> model = mr.Model(x, mr.layers.Dense(2, name="y")(x))
            >>> model.get_config()["output_layers"]
            ['y', 0, 0]
        """
        if self._part is None or not _takes_inputs(type(self)):
            return super().get_config()
        from mirrored.training.graph_configurations import configuration_of  # Few need it.

        return configuration_of(self)

    @classmethod
    def from_config(
        cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None
    ) -> Self:
        """Return a model that is made of a configuration.

        Args:
            config: What `get_config` returned.
            custom_objects: Classes and functions that it may name, by these names.

        Raises:
            TypeError: The class does not take these arguments.
            ValueError: The calls of a functional model lead in circles, or to nothing.
        """
        if not (all(key in config for key in _GRAPH_KEYS) and _takes_inputs(cls)):
            return super().from_config(config)
        from mirrored.training.graph_configurations import arguments_of_graph  # Few need it.

        return cls(**arguments_of_graph(config, custom_objects))

    def get_build_config(self) -> dict[str, Any] | None:
        """Return the shapes that the model was built for; None where it is not built."""
        return super().get_build_config() if self._part is None else {"input_shape": None}

    def build_from_config(self, config: Mapping[str, Any]) -> None:
        """Build the model for shapes that `get_build_config` returned.

        Args:
            config: The shapes.
        """
        try:
            super().build_from_config(config)
        except Exception as error:
            warnings.warn(
                f"Model '{self.name}' had a build config, but the model cannot be built "
                "automatically in `build_from_config(config)`. You should implement `def "
                "build_from_config(self, config)`, and you might also want to implement the method "
                "that generates the config at saving time, `def get_build_config(self)`. It "
                f"failed with: {error}",
                stacklevel=2,
            )

    def get_compile_config(self) -> dict[str, Any]:
        """Return what the model is compiled with, by name; an empty dict where it is not.

        Example:
            >>> import mirrored as mr
            >>> model = mr.Sequential([mr.layers.Dense(2)])
            >>> model.compile("sgd", "mse")
            >>> model.get_compile_config()["loss"]
            'mse'
        """
        from mirrored.serialization.configs import in_memory  # Few programs need it.

        compilation = self._compilation
        if compilation is None:
            return {}
        steps, jit = compilation.steps_per_execution, compilation.jit_compile
        if not in_memory():  # What "auto" stands for in Keras, the second without GPUs.
            steps, jit = (1 if steps == "auto" else steps), (False if jit == "auto" else jit)
        config: dict[str, Any] = serialized(
            {
                "optimizer": compilation.optimizer,
                **dict(zip(COMPILED, compilation.given, strict=True)),
                "run_eagerly": compilation.run_eagerly,
                "steps_per_execution": steps,
                "jit_compile": jit,
            }
        )
        return config

    def compile_from_config(self, config: Mapping[str, Any]) -> None:
        """Compile the model, and make the optimizer's slots where the model is built.

        Args:
            config: What `get_compile_config` returned.
        """
        from mirrored.serialization.class_names import name_of_class  # Few programs need it.

        owner = next(base for base in type(self).__mro__ if "compile" in vars(base))
        if name_of_class(owner) != ("keras", "Model"):
            warnings.warn(
                "`compile()` was not called as part of model loading because the model's "
                "`compile()` method is custom. All subclassed Models that have `compile()` "
                "overridden should also override `get_compile_config()` and "
                "`compile_from_config(config)`. Alternatively, you can call `compile()` manually "
                "after loading.",
                stacklevel=2,
            )
            return
        self.compile(**deserialized(dict(config), None))
        if self.optimizer is not None and self.built:
            self.optimizer.build(self.trainable_variables)

    def to_json(self, **kwargs: Any) -> str:
        """Return the model's configuration as JSON, which `models.model_from_json` reads.

        Args:
            **kwargs: Those of `json.dumps`.

        Raises:
            NotImplementedError: As for `get_config`.

        Example:
            >>> import mirrored as mr
            >>> model = mr.Sequential([mr.layers.Dense(2)], name="small")
            >>> mr.keras.models.model_from_json(model.to_json()).name
            'small'
        """
        return json.dumps(serialized(self), **kwargs)

    # ------------------------------------------------------------------ files

    def save(
        self,
        filepath: PathName,
        overwrite: bool = True,
        zipped: bool | None = None,
        **kwargs: Any,
    ) -> None:
        """Write the model to a file that `keras.models.load_model` and Keras itself read.

        Args:
            filepath: The file, whose name ends in ".keras"; see `keras.models.save_model`.
            overwrite: Whether an existing file is replaced.
            zipped: Whether it is one file, as for None, or a folder.
            **kwargs: Those of `keras.models.save_model`.

        Raises:
            TypeError: As for `keras.models.save_model`, and so the others.
            ValueError: The name ends in another way, or an argument is unknown.
            NotImplementedError: A subclass does not say what it is made of.
            FileExistsError: The file exists, and `overwrite` is False.
            ImportError: h5py is not installed.
            OSError: The file cannot be written.
        """
        from mirrored.training.files import (
            model_files,  # Slow to import, and needed for files only.
        )

        model_files.save_model(self, filepath, overwrite, zipped, **kwargs)

    def save_weights(
        self, filepath: PathName, overwrite: bool = True, max_shard_size: float | None = None
    ) -> None:
        """Write all weights to one file, wholly or not at all.

        One that ends in ".weights.h5" is Keras', with the state of the optimizer too, if the model
        is compiled: Keras' own models of the same layers read it. Any other is a safetensors file.

        Args:
            filepath: The file, whose name does not end as another format's, such as `.h5` alone.
            overwrite: Whether an existing file is replaced.
            max_shard_size: None: there is one file.

        Raises:
            TypeError: `filepath` is no path.
            ValueError: The model has no weights yet, or the name is that of another format.
            FileExistsError: The file exists, and `overwrite` is False.
            ImportError: It is Keras', and h5py is not installed.
            OSError: The file cannot be written, or what is there is no file, such as a device.

        Example:
            >>> import os, tempfile
            >>> import mirrored as mr
            >>> model = mr.Sequential([mr.layers.Input(shape=(4,)), mr.layers.Dense(2)])
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     model.save_weights(os.path.join(folder, "digits.safetensors"))
            ...     model.load_weights(os.path.join(folder, "digits.safetensors"))
        """
        from mirrored.training.files import (
            weights_files,  # Slow to import, and needed for files only.
        )

        weights_files.save_weights(self, filepath, overwrite, max_shard_size)

    def load_weights(
        self,
        filepath: PathName,
        skip_mismatch: bool = False,
        *,
        objects_to_skip: Collection[Any] | None = None,
        by_name: bool | None = None,
    ) -> None:
        """Set all weights from a file that `save_weights`, `save` or Keras wrote, on every replica.

        Args:
            filepath: The file, from a model of the same layers on any number of replicas.
            skip_mismatch: Whether layers that do not fit a file in Keras' formats stay as they
                are, with a warning.
            objects_to_skip: Layers that such a file does not change.
            by_name: None: layers are found by their places.

        Raises:
            TypeError: `filepath` is no path.
            ValueError: The model has no weights yet, the name is that of another format, or
                `by_name` is given.
            FileNotFoundError: There is no such file.
            ImportError: The file is Keras', and h5py is not installed.
            WeightsFileError: It is truncated, corrupt, of another model or format. No weight
                was changed.
        """
        from mirrored.training.files import weights_files  # As above.

        weights_files.load_weights(
            self, filepath, skip_mismatch, objects_to_skip=objects_to_skip, by_name=by_name
        )


def _is_functional(cls: type) -> bool:
    """Whether a class is the one whose graphs Keras writes as its own kind of model."""
    return vars(cls).get("_functional_name") is not None


def _takes_inputs(cls: type) -> bool:
    """Whether a class's constructor takes the inputs and outputs of a graph."""
    parameters = list(inspect.signature(cls).parameters.values())
    kinds = {parameter.kind for parameter in parameters}
    if {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} <= kinds:
        return True
    by_place = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return [parameter.name for parameter in parameters if parameter.kind is by_place] == [
        "inputs",
        "outputs",
        "name",
    ]


def listed(model: Any) -> list[Any]:
    """Return the layers of a `Sequential` model, with its input where there is one.

    Args:
        model: The model.
    """
    begin = [tensor.node.callee for tensor in model._begins]
    return [*(layer for layer in begin if isinstance(layer, InputLayer)), *model.layers]
