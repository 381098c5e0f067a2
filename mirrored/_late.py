"""Lists of public names: an import loads nothing, and a name is loaded at its first use.

A module of public names has one table, which says where each name is defined. Type checkers read
the stub next to it, which `python tests/support/stubs.py` writes from the table.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Self, TypeVar

_Value = TypeVar("_Value")

LISTS: "dict[str, LateNames]" = {}  # Those of the modules that are loaded, by the modules' names.


class LateNames:
    """The public names of a module that are not loaded yet.

    Args:
        module: The module's name.
        homes: The modules that define the names, each with its names, separated by spaces.
            "new=old" is the name "old" of that module, under the name "new". A name of the module
            itself is that of a module inside it. "*" stands for all public names of that module,
            which is loaded at once, except for those with a "-" before them.
    """

    def __init__(self, module: str, homes: Mapping[str, str]) -> None:
        self._module = module
        self._homes = {
            new: (home, old or new)
            for home, names in homes.items()
            for new, _, old in (name.partition("=") for name in _listed(home, names.split()))
        }
        LISTS[module] = self

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __contains__(self, name: object) -> bool:
        return name in self._homes

    def home(self, name: str) -> tuple[str, str]:
        """Return the module that defines one of the names, and the name there."""
        return self._homes[name]

    def load(self, name: str) -> Any:
        """Load one of the names, set it in the module, and return it.

        Threads that ask at the same time get the same: Python loads a module once.
        """
        home, old = self._homes[name]
        inside = home == self._module
        value = import_module(f"{home}.{old}") if inside else getattr(import_module(home), old)
        # What somebody put there meanwhile, such as a test's own, stays.
        return vars(sys.modules[self._module]).setdefault(name, value)


def _listed(home: str, names: list[str]) -> list[str]:
    """Return the names in a row of a table, with those that "*" stands for."""
    if "*" not in names:
        return names
    return [name for name in import_module(home).__all__ if f"-{name}" not in names]


def late_module(
    module: str, homes: Mapping[str, str], absent: Callable[[str], str] | None = None
) -> None:
    """Give a module names that are loaded at their first use.

    Args:
        module: The module's name.
        homes: As `LateNames` has it.
        absent: Returns the error text for a name that the module does not have; None: Python's
            text for all.
    """
    there = vars(sys.modules[module])
    late = LateNames(module, homes)

    def load(name: str) -> Any:
        if name in late:
            return late.load(name)
        text = f"module {module!r} has no attribute {name!r}"
        raise AttributeError(absent(name) if absent else text)

    # Type checkers do not follow this: they would take every name for one that exists.
    there.setdefault("__all__", sorted(late))
    there.update(__dir__=lambda: sorted({*there, *late}), __getattr__=load)


class FilledByFiles(dict[str, _Value]):
    """A table whose entries are registered by the files of a package.

    The files are all loaded where somebody goes over the table, or asks it for what is not there.

    Args:
        package: The package's name.
    """

    def __init__(self, package: str) -> None:
        super().__init__()
        self._package = package

    def __missing__(self, name: str) -> _Value:
        if name in self:
            return self[name]
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return super(FilledByFiles, self._filled()).__contains__(name)

    def __iter__(self) -> Iterator[str]:
        return super(FilledByFiles, self._filled()).__iter__()

    def __len__(self) -> int:
        return super(FilledByFiles, self._filled()).__len__()

    # (A type of their own, which nobody can name, is what these return.)

    def keys(self) -> Any:
        """Return all names."""
        return super(FilledByFiles, self._filled()).keys()

    def values(self) -> Any:
        """Return all that was entered."""
        return super(FilledByFiles, self._filled()).values()

    def items(self) -> Any:
        """Return all that was entered, with its name."""
        return super(FilledByFiles, self._filled()).items()

    def _filled(self) -> Self:
        from pkgutil import iter_modules  # Needed here only.

        for file in iter_modules(sys.modules[self._package].__path__):
            import_module(f"{self._package}.{file.name}")
        return self


class MovedModules:
    """Finds modules that are in others by now, since pickles name the modules of classes.

    Args:
        rows: The present modules, each with the earlier names in the same package, or the whole
            earlier names, separated by spaces.
    """

    def __init__(self, rows: Mapping[str, str]) -> None:
        self._homes = {
            old if old.startswith("mirrored.") else f"{home.rpartition('.')[0]}.{old}": home
            for home, names in rows.items()
            for old in names.split()
        }

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def home(self, name: str) -> str:
        """Return the present module of one that was moved."""
        return self._homes[name]

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return the spec of a module that was moved; None for all others."""
        loader: Any = self
        return ModuleSpec(name, loader, is_package=True) if name in self._homes else None

    def create_module(self, spec: ModuleSpec) -> None:
        """Let Python create the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Let the module have the names of its present one."""
        home = import_module(self.home(module.__name__))
        vars(module)["__getattr__"] = lambda name: getattr(home, name)


MOVED = MovedModules(
    {
        "mirrored._naming": "_name_scope",
        "mirrored.compat.v1.messages": "run_options",
        "mirrored.compat.v1.partial_shapes": "shapes",
        "mirrored.control_flow.branches": "conditions loops",
        "mirrored.control_flow.recording_state": "control_dependencies",
        "mirrored.data.array_datasets": "timeseries splitting",
        "mirrored.data.caching": "cached_files",
        "mirrored.data.dataset_options": "options",
        "mirrored.data.element_transforms": "resampling states",
        "mirrored.data.elements": "failures spec",
        "mirrored.data.keras_files": "fetching",
        "mirrored.data.padded_sequences": "sequences",
        "mirrored.data.records": "record_files",
        "mirrored.data.row_transforms": "unbatching",
        "mirrored.devices.configuration": "config",
        "mirrored.devices.device_registry": "registry",
        "mirrored.distribute.cross_device_ops.collectives": "interface",
        "mirrored.distribute.per_replica": "values",
        "mirrored.experimental.numpy": """
            mirrored.numpy_functions.averages mirrored.numpy_functions.binary
            mirrored.numpy_functions.creation mirrored.numpy_functions.manipulation
            mirrored.numpy_functions.matrices mirrored.numpy_functions.products
            mirrored.numpy_functions.promotion mirrored.numpy_functions.reductions
            mirrored.numpy_functions.selection mirrored.numpy_functions.shapes
            mirrored.numpy_functions.unary
        """,
        "mirrored.graph.operations": "calls",
        "mirrored.graph.part": "order",
        "mirrored.graph.symbolic_tensor": "tensor",
        "mirrored.keras.backend": """
            mirrored.keras_functions.backend_numbers mirrored.keras_functions.backend_shapes
            mirrored.keras_functions.backend_values
        """,
        "mirrored.keras.ops": """
            mirrored.keras_functions.arithmetic mirrored.keras_functions.attention
            mirrored.keras_functions.binary mirrored.keras_functions.control
            mirrored.keras_functions.counting mirrored.keras_functions.creation
            mirrored.keras_functions.elementwise mirrored.keras_functions.float_elementwise
            mirrored.keras_functions.indexing mirrored.keras_functions.manipulation
            mirrored.keras_functions.matrices mirrored.keras_functions.normalizing
            mirrored.keras_functions.products mirrored.keras_functions.reductions
            mirrored.keras_functions.shapes mirrored.keras_functions.sorting
            mirrored.keras_functions.spacing mirrored.keras_functions.statistics
            mirrored.keras_functions.windows
        """,
        "mirrored.keras_functions.backend": "settings",
        "mirrored.keras_functions.einops": "rearranging",
        "mirrored.keras_functions.random": "random_numbers",
        "mirrored.keras_functions.tree": "trees",
        "mirrored.layers.activation": "advanced_activations",
        "mirrored.layers.activation_functions": "nonlinearities sparse_nonlinearities",
        "mirrored.layers.activations": "activation_registry",
        "mirrored.layers.category_encoding": "discretization",
        "mirrored.layers.core": "activity_regularization masking pipeline plain",
        "mirrored.layers.embedding": "reversible_embedding",
        "mirrored.layers.initializers": "initializer_registry",
        "mirrored.layers.input_layer": "input",
        "mirrored.layers.layer_normalization": "group_normalization",
        "mirrored.layers.multi_head_attention": "grouped_query_attention",
        "mirrored.layers.regularization": "dropout noise",
        "mirrored.layers.reshaping": "flatten",
        "mirrored.layers.starting_values": "orthogonal variance_scaling",
        "mirrored.layers.wrapper": "time_distributed",
        "mirrored.numpy_functions.array_conversion": "rules",
        "mirrored.numpy_functions.legacy_random": "random_numbers",
        "mirrored.ops.cross_entropy": "sparse_cross_entropy",
        "mirrored.ops.elementwise": "no_nan",
        "mirrored.ops.gathering": "embedding",
        "mirrored.ops.manipulation": "joining sequences",
        "mirrored.ops.scattering": "scattering_nd",
        "mirrored.ops.searching": "distinct",
        "mirrored.ops.special_functions": "error_functions gamma_functions quantiles",
        "mirrored.ops.stateless_random": "draw",
        "mirrored.ops.statistics": "normalization",
        "mirrored.ops.tensor_views": "masks variable_value",
        "mirrored.optim.adagrad": "adadelta adafactor ftrl rmsprop",
        "mirrored.optim.adam": "adamax adamw lamb lion nadam schedule_free_adamw",
        "mirrored.optim.updates": "update_steps",
        "mirrored.optim.wrapping": "loss_scale_optimizer multi_optimizer",
        "mirrored.program.function": "decorator running_eagerly",
        "mirrored.serialization.class_names": "custom_objects",
        "mirrored.serialization.configs": "reading writing",
        "mirrored.training.callbacks.monitor_callback": "early_stopping reduce_lr_on_plateau",
        "mirrored.training.compilation": "compiled_metrics",
        "mirrored.training.event_summaries": "summaries summaries.values summaries.writer",
        "mirrored.training.files.checkpoint": """
            mirrored.training.checkpoints mirrored.training.checkpoints.checkpoint
            mirrored.training.checkpoints.folder mirrored.training.checkpoints.manager
        """,
        "mirrored.training.files.model_files": "model_json",
        "mirrored.training.losses.batch_losses": "overlap pairs",
        "mirrored.training.losses.elementwise_losses": "elementwise",
        "mirrored.training.losses.regression": "margins probabilistic",
        "mirrored.training.metrics.accuracy": "hits top_k",
        "mirrored.training.metrics.confusion": "f_scores operating_points",
        "mirrored.training.metrics.means": "entropies",
        "mirrored.training.replica_comparison": "comparison comparison.replica_comparison",
        "mirrored.training.runs": "on_batches",
        "mirrored.variables.generator": "seed_generator stream_variable",
        "mirrored.variables.variable": "traits",
    }
)
sys.meta_path.append(MOVED)
