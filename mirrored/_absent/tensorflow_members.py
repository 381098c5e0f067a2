"""The public attributes of TensorFlow 2.21's objects, of Keras 3's among them.

An error says by them that TensorFlow's object has what this library's has not.
"""

MEMBERS: dict[str, str] = {
    "tf.Tensor": """
        backing_device consumers cpu device dtype eval experimental_ref get_shape gpu graph
        is_packed name ndim numpy op ref set_shape shape value_index
    """,
    "tf.Variable": """
        aggregation assign assign_add assign_sub batch_scatter_update constraint count_up_to
        create device dtype eval experimental_ref from_proto gather_nd get_shape graph handle
        initial_value initialized_value initializer is_initialized load name numpy op read_value
        read_value_no_copy ref scatter_add scatter_div scatter_max scatter_min scatter_mul
        scatter_nd_add scatter_nd_max scatter_nd_min scatter_nd_sub scatter_nd_update scatter_sub
        scatter_update set_shape shape sparse_read synchronization to_proto trainable value
    """,
    "tf.TensorShape": """
        as_list as_proto assert_has_rank assert_is_compatible_with assert_is_fully_defined
        assert_same_rank cast concatenate dims experimental_as_proto experimental_from_proto
        experimental_type_proto flatten from_tensors is_compatible_with is_fully_defined
        is_subtype_of merge_with most_specific_common_supertype most_specific_compatible_shape
        ndims num_elements placeholder_value rank to_tensors with_rank with_rank_at_least
        with_rank_at_most
    """,
    "tf.data.Dataset": """
        apply as_numpy_iterator batch bucket_by_sequence_length cache cardinality
        choose_from_datasets concatenate counter element_spec enumerate filter fingerprint
        flat_map from_generator from_tensor_slices from_tensors get_single_element group_by_window
        ignore_errors interleave list_files load map options padded_batch prefetch ragged_batch
        random range rebatch reduce rejection_resample repeat sample_from_datasets save scan shard
        shuffle skip snapshot sparse_batch take take_while unbatch unique window with_options zip
    """,
    "tf.GradientTape": """
        batch_jacobian gradient jacobian reset stop_recording watch watched_variables
    """,
    "tf.function": """
        experimental_get_compiler_ir experimental_get_tracing_count function_spec function_type
        get_concrete_function get_initialization_function input_signature name
        pretty_printed_concrete_signatures python_function
    """,
    "tf.distribute.Strategy": """
        cluster_resolver colocate_vars_with configure distribute_datasets_from_function
        experimental_distribute_dataset experimental_distribute_datasets_from_function
        experimental_distribute_values_from_function experimental_local_results experimental_run
        extended gather group make_dataset_iterator make_input_fn_iterator num_replicas_in_sync
        reduce run scope unwrap update_config_proto
    """,
    "tf.distribute.ReplicaContext": """
        all_gather all_reduce devices merge_call num_replicas_in_sync replica_id_in_sync_group
        strategy
    """,
    "tf.keras.Model": """
        add_loss add_metric add_variable add_weight build build_from_config call compile
        compile_from_config compiled_loss compiled_metrics compute_dtype compute_loss compute_mask
        compute_metrics compute_output_shape compute_output_spec count_params
        distribute_reduction_method distribute_strategy dtype dtype_policy evaluate export fit
        from_config get_build_config get_compile_config get_config get_layer get_metrics_result
        get_quantization_layer_structure get_state_tree get_weights input input_dtype input_spec
        jit_compile layers load_own_variables load_weights loss losses make_predict_function
        make_test_function make_train_function metrics metrics_names metrics_variables
        non_trainable_variables non_trainable_weights output path predict predict_on_batch
        predict_step quantization_mode quantize quantized_build quantized_call rematerialized_call
        reset_metrics run_eagerly save save_own_variables save_weights set_state_tree set_weights
        stateless_call stateless_compute_loss summary supports_masking symbolic_call test_on_batch
        test_step to_json train_on_batch train_step trainable trainable_variables
        trainable_weights variable_dtype variables weights
    """,
    "tf.keras.layers.Layer": """
        add_loss add_metric add_variable add_weight build build_from_config call compute_dtype
        compute_mask compute_output_shape compute_output_spec count_params dtype dtype_policy
        from_config get_build_config get_config get_weights input input_dtype input_spec
        load_own_variables losses metrics metrics_variables non_trainable_variables
        non_trainable_weights output path quantization_mode quantize quantized_build
        quantized_call rematerialized_call save_own_variables set_weights stateless_call
        supports_masking symbolic_call trainable trainable_variables trainable_weights
        variable_dtype variables weights
    """,
    "tf.keras.optimizers.Optimizer": """
        add_optimizer_variables add_variable add_variable_from_reference apply apply_gradients
        assign assign_add assign_sub build exclude_from_weight_decay finalize_variable_values
        from_config get_config iterations learning_rate load_own_variables save_own_variables
        scale_loss set_weights stateless_apply update_step variables
    """,
    "tf.keras.losses.Loss": """
        call dtype from_config get_config
    """,
    "tf.keras.metrics.Metric": """
        add_variable add_weight dtype from_config get_config reset_state result
        stateless_reset_state stateless_result stateless_update_state update_state variables
    """,
    "tf.train.Checkpoint": """
        read restore save save_counter sync write
    """,
    "tf.train.CheckpointManager": """
        checkpoint checkpoint_interval checkpoints directory latest_checkpoint
        restore_or_initialize save sync
    """,
}
