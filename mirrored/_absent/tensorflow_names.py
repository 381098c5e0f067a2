"""The public names of TensorFlow 2.21, in the modules that this library has too.

An error says by them that TensorFlow has a name, which is not known without TensorFlow otherwise.
"""

NAMES: dict[str, str] = {
    "tf": """
        AggregationMethod Assert CriticalSection DType DeviceSpec GradientTape Graph IndexedSlices
        IndexedSlicesSpec Module NoneTensorSpec Operation OptionalSpec RaggedTensor
        RaggedTensorSpec RegisterGradient SparseTensor SparseTensorSpec Tensor TensorArray
        TensorArraySpec TensorShape TensorSpec TypeSpec UnconnectedGradients Variable
        VariableAggregation VariableSynchronization abs acos acosh add add_n approx_top_k argmax
        argmin argsort as_dtype as_string asin asinh assert_equal assert_greater assert_less
        assert_rank atan atan2 atanh audio autodiff autograph batch_to_space bfloat16 bitcast
        bitwise bool boolean_mask broadcast_dynamic_shape broadcast_static_shape broadcast_to case
        cast check_pinned clip_by_global_norm clip_by_norm clip_by_value compat complex complex128
        complex64 concat cond config constant constant_initializer control_dependencies conv
        conv2d_backprop_filter_v2 conv2d_backprop_input_v2 convert_to_tensor cos cosh cumsum
        custom_gradient data debugging device distribute divide double dtensor dtypes
        dynamic_partition dynamic_stitch edit_distance eig eigvals einsum ensure_shape equal
        errors executing_eagerly exp expand_dims experimental extract_volume_patches eye
        feature_column fftnd fill fingerprint float16 float32 float64 floor foldl foldr function
        gather gather_nd get_current_name_scope get_logger get_static_value grad_pass_through
        gradients graph_util greater greater_equal group guarantee_const half hessians
        histogram_fixed_width histogram_fixed_width_bins identity identity_n ifftnd image
        import_graph_def init_scope initializers inside_function int16 int32 int64 int8 io irfftnd
        is_symbolic_tensor is_tensor keras less less_equal linalg linspace lite load_library
        load_op_library logical_and logical_not logical_or lookup losses make_ndarray
        make_tensor_proto map_fn math matmul matrix_square_root maximum meshgrid metrics minimum
        mlir multiply name_scope negative nest newaxis nn no_gradient no_op
        nondifferentiable_batch_function norm not_equal numpy_function one_hot ones
        ones_initializer ones_like optimizers pad parallel_stack pow print profiler py_function
        qint16 qint32 qint8 quantization queue quint16 quint8 ragged ragged_fill_empty_rows
        ragged_fill_empty_rows_grad random random_index_shuffle random_normal_initializer
        random_uniform_initializer range rank raw_ops realdiv recompute_grad reduce_all reduce_any
        reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_sum
        register_tensor_conversion_function repeat required_space_to_batch_paddings reshape
        resource reverse reverse_sequence rfftnd roll round saturate_cast saved_model scalar_mul
        scan scatter_nd searchsorted security sequence_mask sets shape shape_n sigmoid sign signal
        sin sinh size slice sort space_to_batch space_to_batch_nd sparse split sqrt square squeeze
        stack stop_gradient strided_slice string strings subtract summary switch_case sysconfig
        tan tanh tensor_scatter_nd_add tensor_scatter_nd_max tensor_scatter_nd_min
        tensor_scatter_nd_sub tensor_scatter_nd_update tensordot test tile timestamp tools tpu
        train transpose truediv truncatediv truncatemod tuple type_spec_from_value types uint16
        uint32 uint64 uint8 unique unique_with_counts unravel_index unstack variable_creator_scope
        variant vectorized_map version where while_loop xla zeros zeros_initializer zeros_like
    """,
    "tf.config": """
        LogicalDevice LogicalDeviceConfiguration PhysicalDevice experimental
        experimental_connect_to_cluster experimental_connect_to_host
        experimental_functions_run_eagerly experimental_run_functions_eagerly
        functions_run_eagerly get_logical_device_configuration get_soft_device_placement
        get_visible_devices list_logical_devices list_physical_devices optimizer
        run_functions_eagerly set_logical_device_configuration set_soft_device_placement
        set_visible_devices threading
    """,
    "tf.config.experimental": """
        ClusterDeviceFilters VirtualDeviceConfiguration disable_mlir_bridge enable_mlir_bridge
        enable_op_determinism enable_tensor_float_32_execution get_device_details
        get_device_policy get_memory_growth get_memory_info get_memory_usage
        get_synchronous_execution get_virtual_device_configuration get_visible_devices
        list_logical_devices list_physical_devices reset_memory_stats set_device_policy
        set_memory_growth set_synchronous_execution set_virtual_device_configuration
        set_visible_devices tensor_float_32_execution_enabled
    """,
    "tf.data": """
        AUTOTUNE Dataset DatasetSpec FixedLengthRecordDataset INFINITE_CARDINALITY Iterator
        IteratorSpec NumpyIterator Options TFRecordDataset TextLineDataset ThreadingOptions
        UNKNOWN_CARDINALITY experimental
    """,
    "tf.debugging": """
        Assert assert_all_finite assert_equal assert_greater assert_greater_equal assert_integer
        assert_less assert_less_equal assert_near assert_negative assert_non_negative
        assert_non_positive assert_none_equal assert_positive assert_proper_iterable assert_rank
        assert_rank_at_least assert_rank_in assert_same_float_dtype assert_scalar assert_shapes
        assert_type check_numerics disable_check_numerics disable_traceback_filtering
        enable_check_numerics enable_traceback_filtering experimental get_log_device_placement
        is_numeric_tensor is_traceback_filtering_enabled set_log_device_placement
    """,
    "tf.distribute": """
        CrossDeviceOps DistributedDataset DistributedIterator DistributedValues
        HierarchicalCopyAllReduce InputContext InputOptions InputReplicationMode MirroredStrategy
        MultiWorkerMirroredStrategy NcclAllReduce OneDeviceStrategy ParameterServerStrategy
        ReduceOp ReductionToOneDevice ReplicaContext RunOptions Server Strategy StrategyExtended
        TPUStrategy cluster_resolver coordinator experimental experimental_set_strategy
        get_replica_context get_strategy has_strategy in_cross_replica_context
    """,
    "tf.distribute.experimental": """
        CentralStorageStrategy CollectiveCommunication CollectiveHints CommunicationImplementation
        CommunicationOptions MultiWorkerMirroredStrategy ParameterServerStrategy
        PreemptionCheckpointHandler PreemptionWatcher TPUStrategy TerminationConfig ValueContext
        coordinator partitioners rpc
    """,
    "tf.dtypes": """
        DType QUANTIZED_DTYPES as_dtype bfloat16 bool cast complex complex128 complex64 double
        experimental float16 float32 float64 half int16 int32 int64 int8 qint16 qint32 qint8
        quint16 quint8 resource saturate_cast string uint16 uint32 uint64 uint8 variant
    """,
    "tf.errors": """
        ABORTED ALREADY_EXISTS AbortedError AlreadyExistsError CANCELLED CancelledError DATA_LOSS
        DEADLINE_EXCEEDED DataLossError DeadlineExceededError FAILED_PRECONDITION
        FailedPreconditionError INTERNAL INVALID_ARGUMENT InternalError InvalidArgumentError
        NOT_FOUND NotFoundError OK OUT_OF_RANGE OpError OperatorNotAllowedInGraphError
        OutOfRangeError PERMISSION_DENIED PermissionDeniedError RESOURCE_EXHAUSTED
        ResourceExhaustedError UNAUTHENTICATED UNAVAILABLE UNIMPLEMENTED UNKNOWN
        UnauthenticatedError UnavailableError UnimplementedError UnknownError
    """,
    "tf.keras": """
        DTypePolicy FloatDTypePolicy Function Initializer Input InputSpec KerasTensor Layer Loss
        Metric Model Operation Optimizer Quantizer Regularizer RematScope Sequential
        StatelessScope SymbolicScope Variable activations applications backend callbacks config
        constraints datasets device distillation distribution dtype_policies export initializers
        layers legacy losses metrics mixed_precision models name_scope ops optimizers
        preprocessing quantizers random regularizers remat tree utils version visualization
        wrappers
    """,
    "tf.keras.activations": """
        celu deserialize elu exponential gelu get glu hard_shrink hard_sigmoid hard_silu
        hard_swish hard_tanh leaky_relu linear log_sigmoid log_softmax mish relu relu6 selu
        serialize sigmoid silu soft_shrink softmax softplus softsign sparse_plus sparse_sigmoid
        sparsemax squareplus swish tanh tanh_shrink threshold
    """,
    "tf.keras.backend": """
        abs all any arange argmax argmin backend batch_dot batch_flatten batch_get_value
        batch_normalization batch_set_value bias_add binary_crossentropy binary_focal_crossentropy
        cast cast_to_floatx categorical_crossentropy categorical_focal_crossentropy clear_session
        clip concatenate constant conv1d conv2d conv2d_transpose conv3d cos count_params
        ctc_batch_cost ctc_decode ctc_label_dense_to_sparse cumprod cumsum depthwise_conv2d dot
        dropout dtype elu epsilon equal eval exp expand_dims eye flatten floatx foldl foldr gather
        get_uid get_value gradients greater greater_equal hard_sigmoid image_data_format in_top_k
        int_shape is_float_dtype is_int_dtype is_keras_tensor is_sparse l2_normalize less
        less_equal log map_fn max maximum mean min minimum moving_average_update name_scope ndim
        not_equal one_hot ones ones_like permute_dimensions pool2d pool3d pow prod
        random_bernoulli random_normal random_normal_variable random_uniform
        random_uniform_variable relu repeat repeat_elements reshape resize_images resize_volumes
        result_type reverse rnn round separable_conv2d set_epsilon set_floatx
        set_image_data_format set_value shape sigmoid sign sin softmax softplus softsign
        sparse_categorical_crossentropy spatial_2d_padding spatial_3d_padding sqrt square squeeze
        stack standardize_dtype std stop_gradient sum switch tanh temporal_padding tile to_dense
        transpose truncated_normal update update_add update_sub var variable zeros zeros_like
    """,
    "tf.keras.callbacks": """
        BackupAndRestore CSVLogger Callback CallbackList EarlyStopping History LambdaCallback
        LearningRateScheduler ModelCheckpoint OrbaxCheckpoint ProgbarLogger ReduceLROnPlateau
        RemoteMonitor SwapEMAWeights TensorBoard TerminateOnNaN
    """,
    "tf.keras.initializers": """
        Constant GlorotNormal GlorotUniform HeNormal HeUniform Identity IdentityInitializer
        Initializer LecunNormal LecunUniform Ones Orthogonal OrthogonalInitializer RandomNormal
        RandomUniform STFT STFTInitializer TruncatedNormal VarianceScaling Zeros constant
        deserialize get glorot_normal glorot_uniform he_normal he_uniform identity lecun_normal
        lecun_uniform ones orthogonal random_normal random_uniform serialize stft truncated_normal
        variance_scaling zeros
    """,
    "tf.keras.layers": """
        Activation ActivityRegularization AdaptiveAveragePooling1D AdaptiveAveragePooling2D
        AdaptiveAveragePooling3D AdaptiveMaxPooling1D AdaptiveMaxPooling2D AdaptiveMaxPooling3D
        Add AdditiveAttention AlphaDropout Attention AugMix AutoContrast Average AveragePooling1D
        AveragePooling2D AveragePooling3D AvgPool1D AvgPool2D AvgPool3D BatchNormalization
        Bidirectional CategoryEncoding CenterCrop Concatenate
        ContrastLimitedAdaptiveHistogramEqualization Conv1D Conv1DTranspose Conv2D Conv2DTranspose
        Conv3D Conv3DTranspose ConvLSTM1D ConvLSTM2D ConvLSTM3D Convolution1D
        Convolution1DTranspose Convolution2D Convolution2DTranspose Convolution3D
        Convolution3DTranspose Cropping1D Cropping2D Cropping3D CutMix Dense DepthwiseConv1D
        DepthwiseConv2D Discretization Dot Dropout ELU EinsumDense Embedding Equalization Flatten
        FlaxLayer GRU GRUCell GaussianDropout GaussianNoise GlobalAveragePooling1D
        GlobalAveragePooling2D GlobalAveragePooling3D GlobalAvgPool1D GlobalAvgPool2D
        GlobalAvgPool3D GlobalMaxPool1D GlobalMaxPool2D GlobalMaxPool3D GlobalMaxPooling1D
        GlobalMaxPooling2D GlobalMaxPooling3D GroupNormalization GroupQueryAttention
        HashedCrossing Hashing Identity Input InputLayer InputSpec IntegerLookup JaxLayer LSTM
        LSTMCell Lambda Layer LayerNormalization LeakyReLU Masking MaxNumBoundingBoxes MaxPool1D
        MaxPool2D MaxPool3D MaxPooling1D MaxPooling2D MaxPooling3D Maximum MelSpectrogram Minimum
        MixUp MultiHeadAttention Multiply Normalization PReLU Permute Pipeline RMSNormalization
        RNN RandAugment RandomBrightness RandomColorDegeneration RandomColorJitter RandomContrast
        RandomCrop RandomElasticTransform RandomErasing RandomFlip RandomGaussianBlur
        RandomGrayscale RandomHeight RandomHue RandomInvert RandomPerspective RandomPosterization
        RandomRotation RandomSaturation RandomSharpness RandomShear RandomTranslation RandomWidth
        RandomZoom ReLU RepeatVector Rescaling Reshape Resizing ReversibleEmbedding
        STFTSpectrogram SeparableConv1D SeparableConv2D SeparableConvolution1D
        SeparableConvolution2D SimpleRNN SimpleRNNCell Softmax Solarization SpatialDropout1D
        SpatialDropout2D SpatialDropout3D SpectralNormalization StackedRNNCells StringLookup
        Subtract TFSMLayer TextVectorization ThresholdedReLU TimeDistributed TorchModuleWrapper
        UnitNormalization UpSampling1D UpSampling2D UpSampling3D Wrapper ZeroPadding1D
        ZeroPadding2D ZeroPadding3D add average concatenate deserialize dot maximum minimum
        multiply serialize subtract
    """,
    "tf.keras.losses": """
        BinaryCrossentropy BinaryFocalCrossentropy CTC CategoricalCrossentropy
        CategoricalFocalCrossentropy CategoricalGeneralizedCrossEntropy CategoricalHinge Circle
        CosineSimilarity Dice Hinge Huber KLD KLDivergence LogCosh Loss MAE MAPE MSE MSLE
        MeanAbsoluteError MeanAbsolutePercentageError MeanSquaredError MeanSquaredLogarithmicError
        Poisson Reduction SparseCategoricalCrossentropy SquaredHinge Tversky binary_crossentropy
        binary_focal_crossentropy categorical_crossentropy categorical_focal_crossentropy
        categorical_generalized_cross_entropy categorical_hinge circle cosine_similarity ctc
        deserialize dice get hinge huber kld kullback_leibler_divergence logcosh mae mape mse msle
        poisson serialize sparse_categorical_crossentropy squared_hinge tversky
    """,
    "tf.keras.metrics": """
        AUC Accuracy BinaryAccuracy BinaryCrossentropy BinaryIoU CategoricalAccuracy
        CategoricalCrossentropy CategoricalHinge ConcordanceCorrelation CosineSimilarity F1Score
        FBetaScore FalseNegatives FalsePositives Hinge IoU KLD KLDivergence LogCoshError MAE MAPE
        MSE MSLE Mean MeanAbsoluteError MeanAbsolutePercentageError MeanIoU MeanMetricWrapper
        MeanSquaredError MeanSquaredLogarithmicError Metric OneHotIoU OneHotMeanIoU
        PearsonCorrelation Poisson Precision PrecisionAtRecall R2Score Recall RecallAtPrecision
        RootMeanSquaredError SensitivityAtSpecificity SparseCategoricalAccuracy
        SparseCategoricalCrossentropy SparseTopKCategoricalAccuracy SpecificityAtSensitivity
        SquaredHinge Sum TopKCategoricalAccuracy TrueNegatives TruePositives binary_accuracy
        binary_crossentropy binary_focal_crossentropy categorical_accuracy
        categorical_crossentropy categorical_focal_crossentropy categorical_hinge
        concordance_correlation deserialize get hinge huber kld kullback_leibler_divergence
        logcosh mae mape mse msle pearson_correlation poisson serialize
        sparse_categorical_accuracy sparse_categorical_crossentropy
        sparse_top_k_categorical_accuracy squared_hinge top_k_categorical_accuracy
    """,
    "tf.keras.mixed_precision": """
        DTypePolicy LossScaleOptimizer Policy dtype_policy global_policy set_dtype_policy
        set_global_policy
    """,
    "tf.keras.models": "Model Sequential clone_model load_model model_from_json save_model",
    "tf.keras.optimizers": """
        Adadelta Adafactor Adagrad Adam AdamW Adamax Ftrl Lamb Lion LossScaleOptimizer
        MultiOptimizer Muon Nadam Optimizer OptimizerMap RMSprop SGD ScheduleFreeAdamW deserialize
        get legacy schedules serialize
    """,
    "tf.keras.regularizers": """
        L1 L1L2 L2 OrthogonalRegularizer Regularizer deserialize get l1 l1_l2 l2
        orthogonal_regularizer serialize
    """,
    "tf.keras.utils": """
        Config CustomObjectScope FeatureSpace Progbar PyDataset Sequence array_to_img
        audio_dataset_from_directory bounding_boxes clear_session custom_object_scope
        deserialize_keras_object disable_interactive_logging enable_interactive_logging
        get_custom_objects get_file get_registered_name get_registered_object get_source_inputs
        image_dataset_from_directory img_to_array is_interactive_logging_enabled is_keras_tensor
        legacy load_img model_to_dot normalize pack_x_y_sample_weight pad_sequences plot_model
        register_keras_serializable save_img serialize_keras_object set_random_seed split_dataset
        standardize_dtype text_dataset_from_directory timeseries_dataset_from_array to_categorical
        unpack_x_y_sample_weight
    """,
    "tf.linalg": """
        LinearOperator LinearOperatorAdjoint LinearOperatorBlockDiag
        LinearOperatorBlockLowerTriangular LinearOperatorCirculant LinearOperatorCirculant2D
        LinearOperatorCirculant3D LinearOperatorComposition LinearOperatorDiag
        LinearOperatorFullMatrix LinearOperatorHouseholder LinearOperatorIdentity
        LinearOperatorInversion LinearOperatorKronecker LinearOperatorLowRankUpdate
        LinearOperatorLowerTriangular LinearOperatorPermutation LinearOperatorScaledIdentity
        LinearOperatorToeplitz LinearOperatorTridiag LinearOperatorZeros adjoint band_part
        banded_triangular_solve cholesky cholesky_solve cross det diag diag_part eig eigh
        eigh_tridiagonal eigvals eigvalsh einsum experimental expm eye global_norm inv
        l2_normalize logdet logm lstsq lu lu_matrix_inverse lu_reconstruct lu_solve matmul
        matrix_rank matrix_transpose matvec norm normalize pinv qr set_diag slogdet solve sqrtm
        svd tensor_diag tensor_diag_part tensordot trace triangular_solve tridiagonal_matmul
        tridiagonal_solve
    """,
    "tf.math": """
        abs accumulate_n acos acosh add add_n angle approx_max_k approx_min_k argmax argmin asin
        asinh atan atan2 atanh bessel_i0 bessel_i0e bessel_i1 bessel_i1e betainc bincount ceil
        confusion_matrix conj cos cosh count_nonzero cumprod cumsum cumulative_logsumexp digamma
        divide divide_no_nan equal erf erfc erfcinv erfinv exp expm1 floor floordiv floormod
        greater greater_equal igamma igammac imag in_top_k invert_permutation is_finite is_inf
        is_nan is_non_decreasing is_strictly_increasing l2_normalize lbeta less less_equal lgamma
        log log1p log_sigmoid log_softmax logical_and logical_not logical_or logical_xor maximum
        minimum mod multiply multiply_no_nan ndtri negative nextafter not_equal polygamma polyval
        pow real reciprocal reciprocal_no_nan reduce_all reduce_any reduce_euclidean_norm
        reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_std reduce_sum
        reduce_variance rint round rsqrt scalar_mul segment_max segment_mean segment_min
        segment_prod segment_sum sigmoid sign sin sinh sobol_sample softmax softplus softsign
        special sqrt square squared_difference subtract tan tanh top_k truediv
        unsorted_segment_max unsorted_segment_mean unsorted_segment_min unsorted_segment_prod
        unsorted_segment_sqrt_n unsorted_segment_sum xdivy xlog1py xlogy zero_fraction zeta
    """,
    "tf.nn": """
        RNNCellDeviceWrapper RNNCellDropoutWrapper RNNCellResidualWrapper all_candidate_sampler
        approx_max_k approx_min_k atrous_conv2d atrous_conv2d_transpose avg_pool avg_pool1d
        avg_pool2d avg_pool3d batch_norm_with_global_normalization batch_normalization bias_add
        collapse_repeated compute_accidental_hits compute_average_loss conv1d conv1d_transpose
        conv2d conv2d_transpose conv3d conv3d_transpose conv_transpose convolution crelu
        ctc_beam_search_decoder ctc_greedy_decoder ctc_loss ctc_unique_labels depth_to_space
        depthwise_conv2d depthwise_conv2d_backprop_filter depthwise_conv2d_backprop_input
        dilation2d dropout elu embedding_lookup embedding_lookup_sparse erosion2d experimental
        fixed_unigram_candidate_sampler fractional_avg_pool fractional_max_pool gelu in_top_k
        isotonic_regression l2_loss l2_normalize leaky_relu learned_unigram_candidate_sampler
        local_response_normalization log_poisson_loss log_softmax lrn max_pool max_pool1d
        max_pool2d max_pool3d max_pool_with_argmax moments nce_loss normalize_moments pool relu
        relu6 safe_embedding_lookup_sparse sampled_softmax_loss scale_regularization_loss selu
        separable_conv2d sigmoid sigmoid_cross_entropy_with_logits silu softmax
        softmax_cross_entropy_with_logits softplus softsign space_to_batch space_to_depth
        sparse_softmax_cross_entropy_with_logits sufficient_statistics swish tanh top_k
        weighted_cross_entropy_with_logits weighted_moments with_space_to_batch zero_fraction
    """,
    "tf.profiler": "experimental",
    "tf.random": """
        Algorithm Generator all_candidate_sampler categorical create_rng_state experimental
        fixed_unigram_candidate_sampler fold_in gamma get_global_generator
        learned_unigram_candidate_sampler log_uniform_candidate_sampler normal poisson
        set_global_generator set_seed shuffle split stateless_binomial stateless_categorical
        stateless_gamma stateless_normal stateless_parameterized_truncated_normal
        stateless_poisson stateless_truncated_normal stateless_uniform truncated_normal uniform
        uniform_candidate_sampler
    """,
    "tf.test": """
        Benchmark TestCase assert_equal_graph_def benchmark_config compute_gradient
        create_local_cluster disable_with_predicate experimental gpu_device_name
        is_built_with_cuda is_built_with_gpu_support is_built_with_rocm is_built_with_xla
        is_cpu_target_available is_gpu_available main with_eager_op_as_function
    """,
    "tf.train": """
        BytesList Checkpoint CheckpointManager CheckpointOptions CheckpointView ClusterDef
        ClusterSpec Coordinator Example ExponentialMovingAverage Feature FeatureList FeatureLists
        Features FloatList Int64List JobDef SequenceExample ServerDef TrackableView
        checkpoints_iterator experimental get_checkpoint_state latest_checkpoint list_variables
        load_checkpoint load_variable
    """,
    "tf.version": """
        COMPILER_VERSION GIT_VERSION GRAPH_DEF_VERSION GRAPH_DEF_VERSION_MIN_CONSUMER
        GRAPH_DEF_VERSION_MIN_PRODUCER VERSION
    """,
}
