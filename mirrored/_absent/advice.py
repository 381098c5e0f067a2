"""What to use instead of the names that TensorFlow has and this library does not.

docs/from-tensorflow.md shows the same rows, and a test holds the two together.
"""

# Modules of TensorFlow, names in them, and what to use.
Row = tuple[str, str, str]

ABSENT: tuple[Row, ...] = (
    # Operations.
    (
        "tf tf.math",
        "reduce_all reduce_any",
        "Use `reduce_sum(cast(x, int32)) == x.size`, or `reduce_sum(cast(x, int32)) > 0`.",
    ),
    (
        "tf.math",
        "reduce_variance reduce_std",
        "Use `reduce_mean(square(x - reduce_mean(x, axis, True)), axis)`, and `sqrt` of it.",
    ),
    ("tf tf.math", "scalar_mul", "Use `*`."),
    ("tf.math", "accumulate_n", "Use `add_n`."),
    ("tf.math", "squared_difference", "Use `square(x - y)`."),
    ("tf tf.linalg", "norm", "Use `sqrt(reduce_sum(x * x, axis))`."),
    ("tf.nn", "l2_loss", "Use `reduce_sum(x * x) / 2.0`."),
    ("tf.nn", "dropout", "Use the layer `keras.layers.Dropout`."),
    ("tf.nn", "leaky_relu", "Use `maximum(0.2 * x, x)`."),
    ("tf.nn", "relu6", "Use `minimum(6.0, nn.relu(x))`."),
    (
        "tf tf.math",
        "floor round sin cos tan asin acos atan atan2 sinh cosh cumsum sort argsort where "
        "is_nan is_inf is_finite floordiv floormod mod ceil cumprod bincount top_k",
        "Use NumPy's function on `x.numpy()`, or by `numpy_function`, which has no gradient.",
    ),
    (
        "tf tf.linalg",
        "einsum tensordot",
        "Use `matmul`, which takes batches, with `reshape` and `transpose`.",
    ),
    (
        "tf tf.linalg",
        "eye linspace range meshgrid",
        "Make it with NumPy, as in `constant(np.arange(4))`.",
    ),
    ("tf", "one_hot", "Use `keras.utils.to_categorical(labels, depth)`."),
    ("tf", "stack", "Use `concat([expand_dims(each, axis) for each in xs], axis)`."),
    ("tf", "unstack split slice strided_slice", "Use an index, as in `x[2:4]` or `x[:, 0]`."),
    ("tf", "gather gather_nd boolean_mask", "Choose rows on the host, with NumPy or a `Dataset`."),
    ("tf", "tile repeat pad", "Use `broadcast_to`, or `concat` with `zeros`."),
    ("tf", "shape size rank", "Use `x.shape`, `x.size` or `x.ndim`, which are Python's."),
    ("tf", "TensorShape", "Use a tuple: shapes are tuples here."),
    ("tf", "is_tensor", "Use `isinstance(x, (Tensor, Variable))`."),
    ("tf", "py_function", "Use `numpy_function`."),
    ("tf", "print", "Use Python's `print`; in a recorded function it prints when it is recorded."),
    (
        "tf",
        "while_loop cond case switch_case map_fn scan foldl foldr vectorized_map",
        "Use Python's loops and `if`; a recorded function keeps the way it went when recorded.",
    ),
    (
        "tf",
        "group no_op control_dependencies",
        "Leave it out: operations run in the order in which they are written.",
    ),
    (
        "tf",
        "assert_equal assert_greater assert_less assert_rank Assert",
        "Use Python's `assert` on `x.shape` or `x.numpy()`.",
    ),
    ("tf", "custom_gradient", "Use `stop_gradient` where a gradient should not flow."),
    ("tf", "gradients hessians", "Use `GradientTape`; tapes can be nested."),
    ("tf", "executing_eagerly", "Leave it out: it is true but while a function is recorded."),
    ("tf", "init_scope name_scope", "Leave it out: there are no graphs to name things in."),
    (
        "tf",
        "ones_initializer zeros_initializer constant_initializer random_normal_initializer "
        "random_uniform_initializer",
        "Use that of `keras.initializers`.",
    ),
    # Types.
    (
        "tf tf.dtypes",
        "float16 half int8 int16 uint16 uint32 uint64 complex64 complex128 complex string",
        "Tensors are float32, float64, bfloat16, int32, int64, uint8 or bool: convert with NumPy "
        "before.",
    ),
    ("tf tf.dtypes", "DType", "Use `numpy.dtype`, which dtypes are here."),
    ("tf", "Module", "Subclass `keras.layers.Layer`."),
    ("tf", "DeviceSpec", "Use the device's name, as in `device('GPU:1')`."),
    ("tf", "SparseTensor RaggedTensor TensorArray", "Use a `Tensor`, or a list of them."),
    # Parts of TensorFlow.
    ("tf", "compat", "TensorFlow 1's names are not provided: use TensorFlow 2's."),
    (
        "tf",
        "io image audio strings feature_column lookup",
        "Read and prepare data with NumPy, and pass arrays, generators or a `data.Dataset`.",
    ),
    (
        "tf",
        "saved_model lite",
        "Use `model.save_weights` and `train.Checkpoint`, and build the model in code.",
    ),
    ("tf", "summary", "Use a callback that writes `logs`, and `profiler.trace` for time."),
    ("tf", "autograph", "Python's `if` and loops on tensors' values are not translated."),
    ("tf", "nest", "Use Python's own lists, tuples and dicts."),
    ("tf", "tpu", "GPUs of one host alone are provided."),
    # Devices.
    (
        "tf.config",
        "run_functions_eagerly functions_run_eagerly experimental_run_functions_eagerly",
        "Use `compile(run_eagerly=True)`, or leave the decorator `function` out.",
    ),
    (
        "tf.config",
        "threading",
        "Use `MirroredStrategy(executor=...)`, and OMP_NUM_THREADS for NumPy's own threads.",
    ),
    ("tf.config", "optimizer", "Leave it out: there is no graph optimizer to configure."),
    (
        "tf.config",
        "experimental_connect_to_cluster experimental_connect_to_host",
        "One process drives the devices of one host.",
    ),
    (
        "tf.config.experimental",
        "enable_op_determinism",
        "Leave it out: the same seed and devices always give the same bits.",
    ),
    ("tf.config.experimental", "get_memory_usage", "Use `get_memory_info(device)['current']`."),
    (
        "tf.debugging",
        "enable_check_numerics check_numerics assert_all_finite",
        "`fit` stops at a loss that is not finite; elsewhere use `np.isfinite(x.numpy())`.",
    ),
    (
        "tf.debugging",
        "Assert assert_equal assert_greater assert_greater_equal assert_less assert_less_equal "
        "assert_near assert_rank assert_shapes assert_type",
        "Use Python's `assert` on `x.shape`, `x.dtype` or `x.numpy()`.",
    ),
    (
        "tf.profiler",
        "experimental",
        "Use `profiler.trace(filepath)`.",
    ),
    (
        "tf.test",
        "is_built_with_gpu_support is_built_with_rocm is_built_with_xla",
        "Use `is_built_with_cuda()` and `is_gpu_available()`.",
    ),
    ("tf.test", "TestCase main", "Use `unittest.TestCase` or pytest, with `x.numpy()`."),
    # Distribution.
    (
        "tf.distribute",
        "MultiWorkerMirroredStrategy ParameterServerStrategy TPUStrategy",
        "Use `MirroredStrategy`: one process drives the GPUs of one host.",
    ),
    (
        "tf.distribute",
        "InputOptions RunOptions InputReplicationMode",
        "Leave it out: there is one way to feed replicas and to run them.",
    ),
    (
        "tf.distribute",
        "Server cluster_resolver coordinator",
        "One process drives the devices of one host.",
    ),
    (
        "tf.distribute.experimental",
        "MultiWorkerMirroredStrategy ParameterServerStrategy TPUStrategy CentralStorageStrategy",
        "Use `distribute.MirroredStrategy`: one process drives the GPUs of one host.",
    ),
    (
        "tf.distribute.experimental",
        "CollectiveHints CollectiveCommunication",
        "Use `CommunicationOptions` and `CommunicationImplementation`, their later names.",
    ),
    (
        "tf.data",
        "TFRecordDataset TextLineDataset FixedLengthRecordDataset",
        "Use `Dataset.from_generator` with a generator that reads the file.",
    ),
    ("tf.data", "Options", "Leave it out: batches are shared among replicas in one way."),
    ("tf.data", "experimental", "Use the methods and names of `data` itself."),
    ("tf.train", "ExponentialMovingAverage", "Keep the average in a `Variable` of your own."),
    (
        "tf.train",
        "list_variables load_checkpoint load_variable",
        "Open the file with safetensors: a checkpoint is one safetensors file.",
    ),
    ("tf.errors", "OpError", "Catch `RuntimeError`, `ValueError` or `MemoryError`."),
    ("tf.errors", "NotFoundError", "Catch `FileNotFoundError` or `ValueError`."),
    ("tf.errors", "UnimplementedError InternalError UnknownError", "Catch `RuntimeError`."),
    (
        "tf.errors",
        "DataLossError",
        "Catch `WeightsFileError`, which is also a `ValueError`.",
    ),
    ("tf.random", "Generator", "Use `uniform` and `normal` with a `seed`."),
    ("tf.random", "truncated_normal", "Use `keras.initializers.TruncatedNormal()(shape)`."),
    ("tf.random", "shuffle", "Use NumPy's, or `data.Dataset.shuffle`."),
    ("tf.random", "categorical", "Use NumPy's `Generator.choice`."),
    # Keras.
    (
        "tf.keras",
        "applications datasets preprocessing",
        "Models and data sets are not part of it; load data with scikit-learn or NumPy.",
    ),
    (
        "tf.keras.mixed_precision",
        "LossScaleOptimizer",
        "Leave it out: bfloat16 has the range of float32, so losses need no scaling.",
    ),
    ("tf.keras", "ops random", "Use the operations of `mirrored` itself."),
    ("tf.keras", "Variable", "Use `mirrored.Variable`, or a layer's `add_weight`."),
    ("tf.keras", "constraints", "Use the optimizer's `clipnorm` or `clipvalue`, or a callback."),
    (
        "tf.keras.activations",
        "softplus log_softmax",
        "Use `mirrored.nn.softplus` or `mirrored.nn.log_softmax`.",
    ),
    (
        "tf.keras.layers",
        "Conv1D Conv2D Conv3D MaxPool1D MaxPool2D MaxPool3D MaxPooling1D MaxPooling2D MaxPooling3D "
        "AveragePooling2D GlobalAveragePooling2D Embedding LSTM GRU SimpleRNN MultiHeadAttention",
        "Use `Dense` on `Flatten`: these have no operations here.",
    ),
    (
        "tf.keras.layers",
        "BatchNormalization LayerNormalization Normalization",
        "Scale the inputs with NumPy, or subclass `keras.layers.Layer`.",
    ),
    ("tf.keras.layers", "ReLU Softmax", "Use `Activation('relu')` or `Activation('softmax')`."),
    (
        "tf.keras.layers",
        "Lambda Reshape Rescaling",
        "Subclass `keras.layers.Layer` and compute it in `call`.",
    ),
    (
        "tf.keras.layers",
        "Add Concatenate Multiply add concatenate multiply",
        "Models have one input and one output a layer: subclass `keras.layers.Layer`.",
    ),
    (
        "tf.keras.models",
        "load_model save_model model_from_json clone_model",
        "Build the model in code, and use its `save_weights` and `load_weights`.",
    ),
    (
        "tf.keras.optimizers",
        "legacy",
        "Use the optimizers of `keras.optimizers` itself.",
    ),
    (
        "tf.keras.optimizers",
        "schedules",
        "Assign to `optimizer.learning_rate` in a callback or a loop.",
    ),
    (
        "tf.keras.callbacks",
        "EarlyStopping ReduceLROnPlateau LearningRateScheduler TerminateOnNaN ModelCheckpoint "
        "BackupAndRestore CSVLogger LambdaCallback TensorBoard",
        "Subclass `Callback`: it can stop training, set the learning rate and save weights.",
    ),
    ("tf.keras.callbacks", "ProgbarLogger", "Use `fit(verbose=1)`."),
    (
        "tf.keras.utils",
        "Sequence PyDataset",
        "Use a `data.Dataset`, or a generator of batches.",
    ),
    ("tf.keras.utils", "plot_model model_to_dot", "Use `model.summary()`."),
    ("tf.keras.utils", "Progbar", "Use tqdm."),
    ("tf.keras.utils", "get_file", "Download the file with `urllib.request`."),
    (
        "tf.keras.utils",
        "normalize",
        "Use `x / (n + (n == 0))` with `n = np.linalg.norm(x, axis=-1, keepdims=True)`.",
    ),
    ("tf.keras.backend", "epsilon", "Use `1e-7`, which the losses use."),
    ("tf.keras.backend", "get_value", "Use `x.numpy()`."),
    ("tf.keras.backend", "set_value", "Use `x.assign(value)`."),
)

# What TensorFlow 2.21 has no more, or Keras renamed, and scripts still say.
OLDER: tuple[Row, ...] = (
    ("tf", "placeholder", "Pass tensors or arrays to a function as its arguments."),
    (
        "tf",
        "Session InteractiveSession global_variables_initializer get_default_graph",
        "Leave it out: operations run when they are called, and `x.numpy()` is the value.",
    ),
    (
        "tf",
        "ConfigProto GPUOptions",
        "Use `config.set_logical_device_configuration` and `config.experimental`.",
    ),
    ("tf", "get_variable variable_scope", "Use `Variable`."),
    ("tf", "assign assign_add", "Use the variable's `assign` or `assign_add`."),
    ("tf", "estimator", "Use `keras.Model` with `compile` and `fit`."),
    ("tf", "contrib", "TensorFlow 2 has no `contrib` either."),
    ("tf", "set_random_seed", "Use `random.set_seed`."),
    ("tf", "random_normal random_uniform", "Use `random.normal` or `random.uniform`."),
    ("tf", "Print", "Use Python's `print`."),
    ("tf", "to_float to_int32", "Use `cast(x, float32)` or `cast(x, int32)`."),
    ("tf", "enable_eager_execution", "Leave it out: operations run when they are called."),
    ("tf", "logging", "Use Python's `logging.getLogger('mirrored')`."),
    ("tf", "app flags", "Use `argparse`."),
    ("tf", "gfile", "Use Python's `open` and `pathlib`."),
    (
        "tf.train",
        "GradientDescentOptimizer MomentumOptimizer AdamOptimizer Optimizer Saver",
        "Use `keras.optimizers` and `train.Checkpoint`.",
    ),
    (
        "tf.keras.backend",
        "get_session set_session",
        "Leave it out: operations run when they are called.",
    ),
    ("tf.keras.layers", "experimental", "Prepare data with NumPy, or subclass `Layer`."),
    (
        "tf.keras.utils",
        "multi_gpu_model",
        "Build and compile the model in the scope of a `MirroredStrategy`.",
    ),
)

# What to do about every other name of a module.
GENERAL = {
    "tf": "The names there are stand in docs/from-tensorflow.md.",
    "tf.config": "The devices of one host are all there is to configure.",
    "tf.config.experimental": "The devices of one host are all there is to configure.",
    "tf.data": "Use the methods of `data.Dataset`.",
    "tf.debugging": "Use NumPy on `x.numpy()`.",
    "tf.distribute": "Use `MirroredStrategy`: one process drives the GPUs of one host.",
    "tf.distribute.experimental": "Use the names of `distribute` itself.",
    "tf.dtypes": "Tensors are float32, float64, bfloat16, int32, int64 or bool.",
    "tf.errors": "Catch Python's own exceptions, which those of `errors` are too.",
    "tf.keras": "The names there are stand in docs/from-tensorflow.md.",
    "tf.keras.activations": "Use a function of a tensor, made of the operations there are.",
    "tf.keras.backend": "Use the operations of `mirrored` itself.",
    "tf.keras.callbacks": "Subclass `Callback`.",
    "tf.keras.initializers": "Use a function of `shape` and `dtype` that returns a tensor.",
    "tf.keras.layers": "Subclass `Layer`, and compute it in `call` by the operations there are.",
    "tf.keras.losses": "Use a function of targets and predictions with one loss an example.",
    "tf.keras.metrics": "Use a function of targets and predictions, or subclass `Metric`.",
    "tf.keras.mixed_precision": "Use `set_global_policy`, or a layer's `dtype=`.",
    "tf.keras.models": "Subclass `Model`.",
    "tf.keras.optimizers": "Use `SGD` or `Adam`, or subclass `Optimizer` and define `update`.",
    "tf.keras.regularizers": "Use a function of the variable that returns a scalar.",
    "tf.keras.utils": "Use NumPy, or Python's own library.",
    "tf.linalg": "Use NumPy's function by `numpy_function`, which has no gradient.",
    "tf.math": "Use NumPy's function by `numpy_function`, which has no gradient.",
    "tf.nn": "Combine the operations there are.",
    "tf.profiler": "Use `profiler.trace(filepath)`.",
    "tf.random": "Use `uniform` and `normal`, or NumPy's generators.",
    "tf.test": "Use pytest or unittest.",
    "tf.train": "Use `Checkpoint` and `CheckpointManager`.",
    "tf.version": "Use `VERSION`.",
}
