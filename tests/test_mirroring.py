"""Every module has its test by name, or a line in the table below says where it is tested."""

from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

from benchmarks import structure

ROOT = Path(__file__).parents[1]

# By test files, or folders of them: the modules without a test of their name, from `mirrored/` on.
# A star is for folders where a test fails when a member is missing from its table.
TESTED_IN = {
    "test_worker_deaths.py": "distribute/elastic_steps distribute/worker_iterator "
    "distribute/loop_joining training/fit_joining workers/replacements",
    "autodiff/test_tape.py": "autodiff/backpropagation autodiff/recording",
    "backends/cuda/kernels": "backends/cuda/kernels/gather_kernels "
    "backends/cuda/kernels/random_states backends/cuda/kernels/window_layout",
    "backends/cuda/test_expressions.py": "backends/host_fusion",
    "backends/cuda/test_every_op.py": "backends/cuda/solver",
    "backends/cuda/test_faults.py": "backends/cuda/report",
    "backends/test_host.py": "backends/backend",
    "backends/test_registering.py": "backends/stream_backend",
    "compat": "compat/v1/*",
    "control_flow/test_branches.py": "control_flow/both_branches",
    "data/test_dataset.py": "data/*",
    "distribute/cross_device_ops/test_against_reference.py": "distribute/cross_device_ops/*",
    "distribute/test_fixed_replicas.py": "program/lanes",
    "distribute/test_multi_worker_strategy.py": "distribute/older_multi_worker_strategy",
    "distribute/test_strategy_base.py": "distribute/mirrored_strategy",
    "export/test_every_op.py": "export/array_nodes export/elementwise_nodes export/node_writer "
    "export/onnx_file",
    "export/test_recordings.py": "export/sizes",
    "graph/test_inference.py": "graph/drawing graph/entry",
    "graph/test_operations.py": "graph/symbolic_tensor",
    "keras_functions": "keras_functions/*",
    "layers": "layers/*",
    "numpy_functions/test_package.py": "numpy_functions/*",
    "ops/test_every_op.py": "ops/*",
    "optim/test_rules.py": "optim/*",
    "profiling/test_memory.py": "profiling/figures distribute/variable_memory",
    "program/test_memory_planner.py": "program/liveness",
    "program/test_executor.py": "program/concurrency",
    "program/test_program.py": "program/lowering program/rewriting",
    "serialization/test_configurations.py": "serialization/configs "
    "serialization/constructor_arguments",
    "serialization/test_own_classes.py": "serialization/class_names",
    "test_argument_names.py": "_arguments",
    "test_interrupt_guard.py": "_interrupt",
    "test_late_names.py": "_late",
    "test_main.py": "__main__ version _commands/*",
    "test_profiler.py": "devices/work_timing program/timed_program profiling/step_trace",
    "test_public_api.py": "keras/* callbacks config/experimental data/experimental experimental/* "
    "distribute/experimental dtypes image initializers io linalg losses math metrics "
    "nn/experimental optimizers random/experimental summary/experimental test train "
    "types/experimental",
    "test_worker_parity.py": "distribute/global_batch",
    "training/callbacks/test_runs.py": "training/callbacks/*",
    "training/files/test_keras_weights.py": "training/files/hdf5_file _extras",
    "training/files/test_model_files.py": "training/files/zip_members",
    "training/files/test_saving.py": "training/files/weights_files",
    "training/losses/test_losses_against_keras.py": "training/losses/*",
    "training/callbacks/test_verify_steps.py": "program/repetition training/step_verification",
    "training/metrics/test_package.py": "training/metrics/*",
    "training/shard_analysis/test_rules.py": "training/shard_analysis/shard_values",
    "training/test_backup_and_restore.py": "_host_streams training/fit_state",
    "training/test_event_summaries.py": "training/event_file",
    "training/test_loop.py": "training/inputs training/running_means",
    "training/test_loop_datasets.py": "training/eager_steps",
    "training/test_recorded_steps.py": "training/model_state training/step_driver",
    "training/test_replica_comparison.py": "training/step_facts training/step_values",
    "training/test_utilities.py": "training/operation_classes variables/tracking",
    "workers/test_failures.py": "workers/meeting",
    "workers/test_launch.py": "workers/layout",
    "workers/test_values.py": "workers/mpi_workers",
    "workers/test_waiting.py": "workers/notices",
}
PATTERNS = {pattern for patterns in TESTED_IN.values() for pattern in patterns.split()}


def without_own_test() -> list[str]:
    """Return the modules, from the package on, that no test file is named after."""
    modules = []
    for path in structure.sources(("mirrored", "layers", "optim")):
        module = path.relative_to(ROOT)
        if module.parts[0] == "mirrored":
            module = module.relative_to("mirrored")
        mirror = ROOT / "tests" / module.parent / f"test_{module.stem.lstrip('_')}.py"
        if module.name != "__init__.py" and not mirror.exists():
            modules.append(str(module.with_suffix("")))
    return modules


def test_every_module_is_tested_by_name_or_in_the_table() -> None:
    missing = [
        module
        for module in without_own_test()
        if not any(fnmatch(module, pattern) for pattern in PATTERNS)
    ]
    assert missing == [], (
        "these modules have no tests/.../test_NAME.py: rename the test with the module, or name "
        "the module in TESTED_IN beside the file that tests it"
    )


def test_the_table_names_what_is_there() -> None:
    modules = without_own_test()
    stale = {
        pattern for pattern in PATTERNS if not any(fnmatch(module, pattern) for module in modules)
    }
    assert stale == set(), "these have moved, or have a test of their name: correct TESTED_IN"
    gone = [place for place in TESTED_IN if not (ROOT / "tests" / place).exists()]
    assert gone == [], "these tests have moved: correct TESTED_IN"


# Modules of TensorFlow 1's, of which some are more than lists of names.
TENSORFLOW_1 = {"initializers.py", "layers.py", "losses.py", "metrics.py"}


def _is_named_by_others(path: Path) -> bool:
    """Return whether a module has its file name from TensorFlow or Keras."""
    is_list = path.with_suffix(".pyi").exists()
    is_short_way = path.parent == ROOT / "mirrored" and path.name[0] != "_"
    is_of_tensorflow_1 = "compat" in path.parts and path.name in TENSORFLOW_1
    return is_list or is_short_way or is_of_tensorflow_1 or "keras_functions" in path.parts


def test_a_private_module_has_its_file_name_to_itself() -> None:
    private = [
        path
        for path in structure.sources(("mirrored", "layers", "optim"))
        if path.name != "__init__.py" and not _is_named_by_others(path)
    ]
    names = Counter(path.name for path in private)
    shared = [str(path.relative_to(ROOT)) for path in private if names[path.name] > 1]
    assert shared == [], "name each of these modules by its contents"
