"""What to use instead of the attributes that TensorFlow's objects have and this library's have not.

docs/from-tensorflow.md shows the same rows, and a test holds the two together.
"""

from mirrored._absent.advice import Row

_BUILD = "Build the model in code, and use `save_weights` and `load_weights`."
_LOOP = "Write a loop of your own, with `GradientTape` and `optimizer.apply_gradients`."

ABSENT_MEMBERS: tuple[Row, ...] = (
    # Tensors, variables and shapes.
    ("tf.Tensor tf.Variable", "eval", "Use `x.numpy()`: operations run when they are called."),
    (
        "tf.Tensor tf.Variable",
        "op graph",
        "Operations run when they are called.",
    ),
    ("tf.Tensor tf.Variable", "get_shape", "Use `x.shape`."),
    ("tf.Tensor tf.Variable", "set_shape", "Leave it out: shapes are always known."),
    ("tf.Tensor tf.Variable", "ref experimental_ref", "Use `id(x)` as the key of a dict."),
    ("tf.Tensor", "name", "Tensors have no names; variables and layers have."),
    ("tf.Tensor", "cpu gpu", "Use `identity(x)` within `device('CPU:0')` or `device('GPU:0')`."),
    ("tf.Variable", "load", "Use `v.assign(value)`."),
    ("tf.Variable", "count_up_to", "Use `v.assign_add(1)`."),
    (
        "tf.Variable",
        "initializer initialized_value initial_value is_initialized",
        "Leave it out: a variable has its value from the start.",
    ),
    (
        "tf.Variable",
        "scatter_add scatter_sub scatter_update scatter_mul scatter_div scatter_max scatter_min "
        "scatter_nd_add scatter_nd_sub scatter_nd_update scatter_nd_max scatter_nd_min "
        "batch_scatter_update",
        "Change the rows with NumPy, and assign the whole value.",
    ),
    ("tf.Variable", "gather_nd sparse_read", "Use an index, as in `v[2:4]`."),
    ("tf.Variable", "constraint", "Assign what the constraint allows after the optimizer's step."),
    ("tf.TensorShape", "as_list dims", "Shapes are tuples: use `list(x.shape)`."),
    ("tf.TensorShape", "rank ndims", "Shapes are tuples: use `len(x.shape)` or `x.ndim`."),
    ("tf.TensorShape", "num_elements", "Use `x.size`, or `math.prod(x.shape)` of Python's."),
    (
        "tf.TensorShape",
        "is_fully_defined assert_is_fully_defined",
        "Use `None not in x.shape`: only those of `Input` have sizes that are not known.",
    ),
    # Datasets.
    ("tf.data.Dataset", "window", "Use `batch`, or `from_generator` with one that makes windows."),
    (
        "tf.data.Dataset",
        "padded_batch ragged_batch sparse_batch bucket_by_sequence_length",
        "Pad the arrays with NumPy, and use `batch`.",
    ),
    ("tf.data.Dataset", "interleave flat_map", "Use `from_generator`, or `concatenate`."),
    ("tf.data.Dataset", "list_files", "Use Python's `glob`, and `from_generator`."),
    ("tf.data.Dataset", "reduce scan", "Use a loop over the dataset."),
    ("tf.data.Dataset", "apply", "Call the function: `function(dataset)`."),
    (
        "tf.data.Dataset",
        "options with_options",
        "Leave it out: batches are shared among replicas in one way.",
    ),
    (
        "tf.data.Dataset",
        "save load snapshot",
        "Keep arrays in files of NumPy's, and use `from_tensor_slices`.",
    ),
    (
        "tf.data.Dataset",
        "sample_from_datasets choose_from_datasets",
        "Use `from_generator` with one that chooses.",
    ),
    ("tf.data.Dataset", "get_single_element", "Use `next(iter(dataset))`."),
    ("tf.data.Dataset", "rebatch", "Use `unbatch` and `batch`."),
    ("tf.data.Dataset", "random counter", "Use `range`, or `from_generator`."),
    # Tapes and recorded functions.
    (
        "tf.GradientTape",
        "jacobian batch_jacobian",
        "Use `gradient` of each element of the target, with `persistent=True`.",
    ),
    ("tf.GradientTape", "reset", "Use a new tape."),
    (
        "tf.function",
        "get_concrete_function",
        "Call the function: it is recorded for each kind of arguments at its first call.",
    ),
    # Strategies.
    (
        "tf.distribute.Strategy",
        "experimental_run make_dataset_iterator make_input_fn_iterator",
        "Use `run`, and `experimental_distribute_dataset`.",
    ),
    ("tf.distribute.Strategy", "unwrap", "Use `experimental_local_results`."),
    ("tf.distribute.Strategy", "group", "Leave it out: operations run when they are called."),
    (
        "tf.distribute.Strategy",
        "experimental_distribute_datasets_from_function",
        "Use `distribute_datasets_from_function`, its later name.",
    ),
    (
        "tf.distribute.Strategy",
        "cluster_resolver configure update_config_proto",
        "One process drives the devices of one host.",
    ),
    # Keras' objects.
    ("tf.keras.Model", "save export to_json save_own_variables load_own_variables", _BUILD),
    ("tf.keras.Model tf.keras.layers.Layer", "get_config from_config", "Build it anew in code."),
    (
        "tf.keras.Model",
        "train_step test_step predict_step make_train_function make_test_function "
        "make_predict_function train_on_batch test_on_batch",
        _LOOP,
    ),
    ("tf.keras.Model", "predict_on_batch", "Call the model: `model(x)`."),
    (
        "tf.keras.Model tf.keras.layers.Layer",
        "add_loss",
        "Use `add_weight` with a `regularizer`, or a loop of your own.",
    ),
    (
        "tf.keras.Model",
        "compute_loss compute_metrics compiled_loss compiled_metrics get_metrics_result "
        "reset_metrics add_metric",
        "Give losses and metrics to `compile`, or use them in a loop of your own.",
    ),
    ("tf.keras.Model", "input output", "Use `model.inputs` or `model.outputs`."),
    (
        "tf.keras.layers.Layer",
        "add_metric metrics",
        "Give metrics to `compile`, or use them in a loop of your own.",
    ),
    ("tf.keras.layers.Layer", "add_variable", "Use `add_weight`."),
    ("tf.keras.layers.Layer", "compute_mask supports_masking", "There are no masks here."),
    (
        "tf.keras.Model tf.keras.layers.Layer",
        "quantize quantization_mode",
        "Weights are float32 or float64; `mixed_precision` computes in bfloat16.",
    ),
    ("tf.keras.optimizers.Optimizer", "apply update_step", "Use `apply_gradients`."),
    (
        "tf.keras.optimizers.Optimizer",
        "set_weights load_own_variables save_own_variables",
        "Use `train.Checkpoint(optimizer=optimizer)`.",
    ),
    ("tf.keras.optimizers.Optimizer", "exclude_from_weight_decay", "Use two optimizers."),
    (
        "tf.keras.losses.Loss tf.keras.metrics.Metric tf.keras.optimizers.Optimizer",
        "get_config from_config",
        "Make it anew, with the same arguments.",
    ),
    (
        "tf.keras.metrics.Metric",
        "add_weight add_variable",
        "Define `statistics`, which returns a total and a count.",
    ),
)

# What older versions had, or other libraries' objects have, and scripts still say.
OLDER_MEMBERS: tuple[Row, ...] = (
    (
        "tf.Tensor tf.Variable",
        "T astype clip item max mean min ravel reshape sum tolist transpose",
        "Use the function of `mirrored`, or NumPy's, as in `x.numpy().tolist()`.",
    ),
    (
        "tf.data.Dataset",
        "make_one_shot_iterator make_initializable_iterator",
        "Use `iter(dataset)`, or a loop over it.",
    ),
    ("tf.data.Dataset", "output_shapes output_types output_classes", "Use `element_spec`."),
    ("tf.distribute.Strategy", "experimental_run_v2", "Use `run`, its later name."),
    (
        "tf.keras.Model",
        "fit_generator evaluate_generator predict_generator",
        "Use `fit`, `evaluate` or `predict`, which take generators.",
    ),
    (
        "tf.keras.Model",
        "predict_classes predict_proba",
        "Use `predict(x)`, and `argmax(axis=-1)` of it for classes.",
    ),
    ("tf.keras.optimizers.Optimizer", "lr", "Use `learning_rate`, its later name."),
    (
        "tf.keras.optimizers.Optimizer",
        "get_gradients compute_gradients",
        "Use `GradientTape`, and `apply_gradients`.",
    ),
    ("tf.keras.metrics.Metric", "reset_states", "Use `reset_state`, its later name."),
)

# What to do about every other attribute of an object.
GENERAL_MEMBERS = {
    "tf.Tensor": "Its attributes stand in `help(Tensor)`.",
    "tf.Variable": "Use `assign`, `assign_add` or `assign_sub`.",
    "tf.TensorShape": "Shapes are tuples.",
    "tf.data.Dataset": "Use the methods there are, or `from_generator`.",
    "tf.GradientTape": "Use `gradient`.",
    "tf.function": "It has `python_function`, and can be called.",
    "tf.distribute.Strategy": "Its methods stand in `help(distribute.Strategy)`.",
    "tf.distribute.ReplicaContext": "Its methods stand in `help(distribute.ReplicaContext)`.",
    "tf.keras.Model": "Its methods stand in `help(Model)`.",
    "tf.keras.layers.Layer": "Its methods stand in `help(layers.Layer)`.",
    "tf.keras.optimizers.Optimizer": "Its methods stand in `help(optim.Optimizer)`.",
    "tf.keras.losses.Loss": "Call it, with targets and predictions.",
    "tf.keras.metrics.Metric": "Use `update_state`, `result` and `reset_state`.",
    "tf.train.Checkpoint": "Use `save`, `write` and `restore`.",
    "tf.train.CheckpointManager": "Use `save`, `checkpoints` and `latest_checkpoint`.",
}
