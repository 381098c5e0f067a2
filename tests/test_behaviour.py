"""docs/behaviour.md and the tests say the same: each row of the page has tests that hold it.

The table below names them. It fails when a row has none, or when a test that it names is gone.
"""

import re
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = (TESTS.parent / "docs" / "behaviour.md").read_text()
HEADING = "## Unverified"

# By the file below tests/: the row's key, and the functions that hold it.
HELD: dict[str, dict[str, str]] = {
    "data/test_elements.py": {"dataset-errors": "test_what_comes_after_an_error"},
    "data/test_rng.py": {
        "dataset-seeds": "test_draws_with_a_seed_begin_with_the_iterator "
        "test_draws_with_one_seed_are_alike_in_a_call",
    },
    "distribute/test_central_storage_strategy.py": {
        "central-storage": "test_devices test_training_is_that_of_one_device",
    },
    "behaviour/test_devices.py": {
        "logical-devices": "test_what_freezes_the_configuration",
        "listing-takes-no-memory": "test_listing_devices_takes_no_memory",
    },
    "behaviour/test_placement.py": {
        "operation-names": "test_names_of_operations",
        "cpu-only": "test_casts_and_integers_are_on_gpus",
    },
    "behaviour/test_signatures.py": {
        "device-tuples": "test_arguments_and_defaults",
        "logical-configuration": "test_arguments_and_defaults",
        "constant-dtype": "test_arguments_and_defaults",
        "default-devices": "test_arguments_and_defaults",
        "run": "test_arguments_and_defaults",
        "average-loss": "test_arguments_and_defaults",
        "collectives": "test_arguments_and_defaults",
        "communication-options": "test_arguments_and_defaults",
        "strategy-options": "test_our_own_options_are_given_by_name",
        "nccl-failure": "test_our_own_options_are_given_by_name",
        "deterministic-option": "test_our_own_options_are_given_by_name",
        "fit-arguments": "test_arguments_and_defaults",
    },
    "behaviour/test_strategies.py": {
        "duplicate-devices": "test_the_error_of_duplicates_lists_the_devices",
        "per-replica-repr": "test_distributed_values_print_what_they_hold",
        "mirrored-variable-repr": "test_distributed_values_print_what_they_hold",
        "scope": "test_the_error_of_another_strategys_scope_names_both",
        "synchronization": "test_auto_becomes_on_write",
        "loss-reduction": "test_the_default_reduction_of_a_loss_in_a_loop_of_ones_own",
        "one-copy-saved": "test_one_copy_is_saved_and_all_are_restored",
        "batch-size": "test_a_batch_of_all_replicas_together_has_32_examples",
    },
    "workers/test_values.py": {"worker-sums": "test_sums_gathers_and_broadcasts"},
    "workers/test_failures.py": {
        "worker-failures": "test_all_hear_of_it test_who_hangs_is_named_by_the_deadline "
        "test_who_is_frozen_after_its_last_call_ends_the_job",
    },
    "layers/test_batch_normalization.py": {"batch-statistics": "test_replicas_train_as_one_device"},
    "training/callbacks/test_runs.py": {"callbacks": "test_runs_on_three_replicas"},
    "training/callbacks/test_history.py": {
        "history": "test_a_history_of_the_users_own_goes_on "
        "test_plots_of_epochs_of_which_some_are_validated",
    },
    "training/callbacks/test_early_stopping.py": {
        "best-weights": "test_the_weights_are_the_last_steps_and_the_best_are_kept",
    },
    "training/callbacks/test_model_checkpoint.py": {"checkpoint-files": "test_what_is_refused"},
    "training/callbacks/test_non_finite.py": {"terminate-on-nan": "test_the_step_writes_nothing"},
    "training/callbacks/test_speed.py": {
        "speed-shown": "test_examples_a_second",
        "small-steps": "test_one_device_would_be_faster_is_said_once "
        "test_what_is_large_or_alone_or_on_threads_is_left_in_peace",
    },
    "training/callbacks/test_swap_ema_weights.py": {
        "averages": "test_evaluation_and_prediction test_an_evaluation_that_ends_early "
        "test_a_fit_that_stops_early_ends_with_the_averages",
    },
    "training/callbacks/test_tensorboard.py": {
        "tensorboard": "test_epochs_batches_and_weights test_an_error_closes_the_files "
        "test_what_is_refused",
    },
    "training/callbacks/test_travel.py": {
        "callbacks-travel": "test_they_travel test_training_goes_on_with_what_they_had_counted",
    },
    "training/files/test_restoration.py": {
        "late-variables": "test_attributes_that_a_module_gets_later "
        "test_the_file_is_the_one_that_was_restored test_the_first_call_of_an_unbuilt_model "
        "test_training_goes_on_with_the_same_bits",
    },
    "training/test_backup_and_restore.py": {
        "backup": "test_it_goes_on test_in_the_middle_of_an_epoch test_a_spoilt_backup",
    },
    "bad_input/test_full_disks.py": {"full-disks": "test_a_log test_a_checkpoint test_summaries"},
    "training/test_loop_shapes.py": {
        "varying-axes": "test_further_axes_may_vary",
        "input-rank": "test_inputs_get_the_rank_of_the_model test_prediction_and_calls "
        "test_images_with_and_without_their_one_channel test_inputs_that_do_not_fit",
        "sample-weights": "test_weights_and_losses_as_in_keras test_refused_weights_change_nothing "
        "test_one_weight_an_example_weighs_all_of_its_losses",
        "scalar-loss": "test_weights_and_losses_as_in_keras test_refused_weights_change_nothing "
        "test_weights_of_examples_and_a_metric_of_one_number",
    },
    "training/test_masks.py": {
        "masks": "test_a_fit_is_over_what_counts test_losses_of_shards_with_masks_add_up "
        "test_metrics_of_shards_with_masks_add_up "
        "test_a_mask_of_other_axes_than_the_losses_is_refused",
    },
    "test_absent_names.py": {
        "absent-names": "test_every_absent_name_says_so test_a_misspelt_name_leads_to_the_nearest "
        "test_a_misspelt_absent_name_leads_to_its_advice "
        "test_importing_an_absent_name_says_what_reading_it_says",
    },
    "test_absent_members.py": {
        "absent-names": "test_every_absent_attribute_says_so test_what_is_refused_is_not_listed",
    },
    "test_argument_names.py": {
        "argument-names": "test_a_misspelt_or_old_argument_names_the_right_one",
    },
    "test_reprs.py": {
        "reprs": "test_what_it_is_made_with test_a_strategy_lists_tensorflows_names_and_a_users",
    },
    "test_tracebacks.py": {
        "tracebacks": "test_they_end_at_the_users_line test_errors_keep_what_they_were_raised_from",
    },
    "test_public_api.py": {
        "star-import": "test_importing_all_of_a_module_hides_nothing_of_python",
    },
    "ops/test_gathering.py": {
        "indices-outside": "test_what_is_outside test_in_fit_an_index_outside_stops_the_step",
    },
    "ops/test_scattering.py": {"rows-in-order": "test_bits_are_those_of_rows_one_by_one"},
    "ops/test_hard_values.py": {
        "hard-gradients": "test_eagerly test_recorded test_recorded_on_the_emulated_card",
        "norm-not-finite": "test_eagerly test_recorded",
    },
    "test_advice_formulas.py": {
        "formulas": "test_a_formula_computes_what_it_stands_for test_every_formula_is_here",
    },
    "backends/cuda/test_faults.py": {"device-lost": "test_a_lost_device"},
    "backends/cuda/kernels/test_matrices.py": {
        "matrices-on-cards": "test_a_matrix_without_a_result",
    },
    "distribute/test_strategy_pickling.py": {
        "strategies-travel": "test_a_strategy_in_another_process test_one_strategy_stays_one "
        "test_devices_that_are_not_there test_the_strategy_in_force_is_taken_where_it_is_alike",
    },
    "training/test_model_pickling.py": {
        "models-travel": "test_training_goes_on_with_the_same_bits test_parts_of_models "
        "test_a_model_that_runs test_history_travels_without_its_model",
        "tensors-travel": "test_what_does_not_travel_says_so test_what_is_one_stays_one",
    },
    "test_pytest_plugin.py": {
        "pytest-plugin": "test_each_test_has_devices_of_its_own "
        "test_nothing_is_imported_before_it_is_used",
    },
    "devices/test_resetting.py": {
        "reset-devices": "test_what_was_made_before_says_so test_it_is_refused_in_the_middle "
        "test_memory_goes_back_whoever_keeps_the_tensors test_no_thread_stays",
    },
    "backends/cuda/test_toolkit.py": {
        "gpu-unavailable": "test_no_cupy test_several_cupys test_a_cupy_that_cannot_be_imported "
        "test_a_driver_that_is_too_old test_no_driver_and_no_card test_no_nvrtc "
        "test_the_cpu_is_usable_where_the_gpu_is_not",
    },
    "backends/test_backends.py": {"device-details": "test_real_gpus_come_after_the_cpu"},
    "backends/test_product_settings.py": {
        "tensor-float-32": "test_it_is_on_by_default_as_in_tensorflow "
        "test_what_was_set_reads_back test_what_is_no_flag_changes_nothing",
    },
    "backends/test_visibility.py": {
        "cuda-visible-devices": "test_entries test_unique_ids "
        "test_parts_of_cards_are_not_supported",
    },
    "bad_input/test_compile.py": {
        "compile-scopes": "test_scopes",
        "unknown-loss": "test_names_at_compile",
        "unknown-optimizer": "test_names_at_compile",
        "unknown-activation": "test_construction",
        "units": "test_construction",
        "not-compiled": "test_before_compile",
    },
    "bad_input/test_data.py": {
        "empty-data": "test_fit test_evaluate_and_predict",
        "batch-size-zero": "test_fit test_evaluate_and_predict",
        "unbatched-dataset": "test_fit_on_streams test_evaluate_and_predict_on_streams",
        "cardinality": "test_fit",
        "label-values": "test_fit test_fit_on_streams",
    },
    "bad_input/test_distribution.py": {
        "unbatched-dataset": "test_mistakes",
        "no-hang": "test_mistakes test_what_one_replica_raises",
        "different-structures": "test_mistakes",
    },
    "bad_input/test_non_finite.py": {
        "non-finite-loss": "test_a_loss_that_is_not_finite test_training_that_diverges",
    },
    "data/test_arrays.py": {
        "data-structures": "test_structures_stay_as_they_are_given",
        "class-weight": "test_class_weight",
        "batch-size-zero": "test_batch_size_refused",
        "cardinality": "test_refused",
    },
    "devices/test_configuration.py": {
        "physical-devices": "test_listing_physical_devices_does_not_initialise",
        "logical-devices": "test_listing_logical_devices_freezes",
        "visible-devices": "test_set_visible_devices test_visible_devices_of_the_wrong_type "
        "test_unknown_device_is_shown_with_those_there_are",
        "visible-devices-late": "test_visible_devices_after_initialisation",
        "set-again": "test_visible_devices_after_initialisation",
        "device-details": "test_details",
        "device-policy": "test_device_policies test_unknown_device_policy",
    },
    "devices/test_config_memory.py": {
        "memory-growth": "test_memory_growth_reads_back test_memory_growth_of_what_is_no_gpu "
        "test_memory_growth_of_a_split_device test_memory_growth_after_initialisation",
        "set-again": "test_memory_growth_after_initialisation "
        "test_logical_configuration_after_initialisation",
        "memory-fraction": "test_parts_of_the_memory_of_gpus test_a_part_of_the_hosts_memory "
        "test_parts_of_the_memory_that_cannot_be test_a_split_device_has_no_part_of_its_memory",
        "logical-configuration": "test_logical_configuration_reads_back_as_a_copy "
        "test_a_split_gpu_has_its_limits test_unusable_logical_configurations "
        "test_other_types_of_hardware_do_not_split test_logical_configuration_after_initialisation",
        "logical-cpus": "test_a_cpu_splits_with_or_without_limits",
    },
    "graph/test_inference.py": {
        "drawing-makes-no-device": "test_drawing_makes_no_device "
        "test_a_variable_that_a_call_makes_is_on_a_device",
    },
    "devices/test_device_registry.py": {
        "cuda-visible-devices": "test_cuda_visible_devices",
        "cuda-visible-devices-late": "test_cuda_visible_devices_is_read_at_the_first_listing",
        "memory-growth-differs": "test_growth_that_differs_is_an_error_at_initialisation",
        "memory-growth-environment": "test_growth_reaches_the_backend",
        "notes-are-information": "test_initialisation_logs_a_line_a_device",
    },
    "devices/test_info.py": {"memory-info": "test_current_and_peak test_names"},
    "devices/test_names.py": {
        "device-tuples": "test_listed_devices_print_as_tensorflow_prints_them",
        "device-names": "test_every_form_is_read test_what_cannot_be_read "
        "test_open_parts_are_filled_in",
    },
    "devices/test_placement.py": {
        "placement-log": "test_the_log_is_off_until_asked_for",
        "soft-device-placement": "test_soft_placement test_soft_placement_changes_at_any_time",
        "default-placement": "test_default",
        "inner-device": "test_an_inner_scope_overrides_what_it_names",
        "absent-device": "test_soft_placement test_a_device_that_does_not_exist",
        "absent-kernel": "test_soft_placement test_an_op_without_a_kernel_there",
    },
    "distribute/cross_device_ops/test_collectives.py": {
        "collectives": "test_a_subclass_defines_one_method "
        "test_a_strategy_uses_the_collectives_it_is_given",
        "gather-numbers": "test_numbers_of_gather",
    },
    "distribute/cross_device_ops/test_against_reference.py": {
        "packs": "test_all_reduces test_recorded_as_eager",
        "virtual-gpus-nccl": "test_nccl test_recorded_between_cards test_training_between_cards",
    },
    "distribute/cross_device_ops/test_buckets.py": {
        "packs": "test_every_tensor_once_and_in_order test_num_packs test_how_large "
        "test_vectors_and_back",
    },
    "distribute/cross_device_ops/test_choice.py": {
        "default-collective": "test_the_rules test_which_and_why test_on_cards test_without_nccl "
        "test_a_strategy_says_it_when_it_is_made",
        "notes-are-information": "test_which_and_why",
    },
    "distribute/cross_device_ops/test_hierarchical.py": {
        "num-packs": "test_how_many_all_reduces test_refused",
        "packs-log": "test_the_line_in_the_log",
    },
    "distribute/cross_device_ops/test_nccl_all_reduce.py": {
        "num-packs": "test_num_packs",
        "no-nccl": "test_where_there_are_no_cards_it_is_the_reference "
        "test_a_strategy_takes_it_where_there_are_no_cards",
        "virtual-gpus-nccl": "test_one_rank_a_card_and_one_sum_a_bucket",
        "nccl-self-test": "test_the_self_test_may_be_left_out",
        "nccl-failure": "test_a_self_test_that_fails",
        "nccl-deadline": "test_a_sum_that_never_ends test_the_deadline_is_the_strategys",
        "deterministic-option": "test_the_same_bits_cost_nothing_on_one_card",
    },
    "distribute/cross_device_ops/test_options.py": {
        "communication-options": "test_defaults test_refused",
        "nccl-deadline": "test_timeouts",
        "reduce": "test_a_reduce_op test_no_such_reduce_op",
    },
    "distribute/cross_device_ops/test_connections.py": {
        "virtual-gpus-nccl": "test_a_rank_a_card",
        "workers-nccl": "test_the_choice test_what_a_worker_says",
    },
    "distribute/cross_device_ops/test_reduction_to_one_device.py": {
        "collectives": "test_where_it_reduces test_accumulation_fn",
        "reduce-log": "test_the_line_in_the_log test_the_line_is_logged_ten_times",
        "deterministic": "test_against_numpy",
    },
    "distribute/test_strategy_base.py": {
        "strategy-options": "test_hints",
        "nccl-failure": "test_a_failure_is_raised test_a_failure_is_got_around",
        "deterministic-option": "test_on_the_host_the_same_bits_cost_nothing",
    },
    "test_worker_parity.py": {
        "workers-equal-one": "test_workers_equal_one_replica "
        "test_any_layout_of_workers_equals_one_replica",
        "workers-predict": "test_workers_equal_one_replica",
    },
    "distribute/test_worker_input.py": {
        "workers-input": "test_each_way_to_share_a_dataset",
        "workers-own-input": "test_fit_takes_what_each_worker_has test_each_way_to_share_a_dataset",
    },
    "distribute/test_worker_files.py": {
        "workers-files": "test_the_first_worker_writes_for_all",
    },
    "distribute/test_worker_agreement.py": {"workers-alike": "test_programs_that_differ"},
    "distribute/test_graph_lines.py": {
        "workers-alike": "test_a_difference_is_found test_constants_are_compared "
        "test_what_a_callback_changes_is_found_at_the_end_of_the_epoch",
    },
    "distribute/test_worker_resolver.py": {
        "workers-resolver": "test_what_differs_is_refused test_a_cluster_is_asked_as_tensorflows"
    },
    "distribute/cross_device_ops/test_nccl_across_workers.py": {
        "workers-nccl": "test_workers_equal_one_device test_nobody_waits_for_ever",
    },
    "distribute/cross_device_ops/test_worker_times.py": {
        "workers-slow": "test_who_takes_twice_as_long_is_slow test_a_slow_worker_is_told_of_once",
    },
    "distribute/test_context.py": {
        "contexts": "test_outside_all_scopes_there_is_one_replica "
        "test_scope_is_the_cross_replica_context test_run_is_the_replicas_context",
        "replica-context": "test_run_is_the_replicas_context test_all_reduce_of_structures "
        "test_merge_call_gathers_and_hands_back",
        "gradient-of-all-reduce": "test_gradient_through_all_reduce "
        "test_second_gradient_through_all_reduce",
        "all-reduce-numbers": "test_all_reduce",
        "all-reduce-gradients": "test_gradient_through_all_reduce",
    },
    "distribute/test_context_gather.py": {
        "gather": "test_uneven_shards_are_concatenated test_an_axis_that_is_not_there",
        "replica-context": "test_uneven_shards_are_concatenated",
        "gather-numbers": "test_shapes_over_four_replicas",
    },
    "distribute/test_context_set_strategy.py": {
        "set-strategy": "test_a_strategy_that_is_set_stays_in_force",
    },
    "distribute/test_distributed_variables.py": {
        "copies": "test_properties test_the_initial_value_is_computed_once",
        "on-write-outside": "test_cross_replica_writes_reach_every_copy",
        "on-write-in-replicas": "test_replica_writes_are_aggregated "
        "test_replica_writes_without_aggregation",
        "synchronization": "test_refused_modes test_modes_that_write_every_copy",
        "aggregation": "test_refused_modes",
        "mirrored-variable-repr": "test_repr test_properties",
        "variable-numbers": "test_replica_writes_are_aggregated",
    },
    "distribute/test_distributed_variables_parts.py": {
        "scatters-in-replicas": "test_rows_of_replicas test_what_is_refused",
        "parts-of-copies": "test_outside_of_replicas_all_copies_change test_what_is_refused",
    },
    "distribute/test_on_read_variables.py": {
        "synchronization": "test_properties test_it_is_trained_only_where_that_is_asked_for",
        "copies": "test_random_initial_values_are_equal",
        "on-read": "test_replica_writes",
        "on-read-assign": "test_writes_outside_of_replicas test_a_sum_of_integers_keeps_the_whole "
        "test_a_sum_is_not_added_to_outside_of_replicas",
        "log-of-an-on-read-variable": "test_the_log_of_a_read",
        "variable-numbers": "test_numbers_of_the_guide",
    },
    "distribute/test_extended.py": {
        "extended": "test_devices test_update_calls_a_function_on_each_copy",
    },
    "distribute/cross_device_ops/test_sparse_sums.py": {
        "sparse-sums": "test_numbers test_a_strategy_reduces_it",
    },
    "distribute/test_input.py": {
        "distribute-dataset": "test_parts_of_a_batch test_structures",
        "datasets-from-function": "test_a_dataset_that_ends_in_the_middle_of_a_step",
        "values-from-function": "test_values_from_a_function",
        "per-replica-batch-size": "test_the_batch_size_of_a_replica",
        "shard-sizes": "test_parts_of_a_batch",
    },
    "distribute/test_strategy_base_reduce.py": {
        "reduce": "test_reduce test_refused_reductions",
        "reduce-uneven": "test_uneven_shards_are_reduced_as_the_whole "
        "test_a_sum_over_an_axis_is_not_a_mean_of_means",
    },
    "distribute/test_replica_failures.py": {
        "no-hang": "test_a_failure_stops_all_and_leaves_nothing"
    },
    "distribute/test_replicas.py": {
        "merge-calls": "test_different_numbers_of_merge_calls",
        "no-hang": "test_different_numbers_of_merge_calls",
    },
    "test_threads.py": {
        "refused-thread": "test_a_thread_is_refused test_a_thread_between_cards_is_refused"
    },
    "distribute/test_sharding.py": {"shard-sizes": "test_table test_any_batch"},
    "distribute/test_strategy.py": {
        "default-devices": "test_devices test_logical_devices "
        "test_listed_gpus_of_a_machine_without_any",
        "duplicate-devices": "test_devices_that_cannot_be",
        "absent-devices": "test_devices_that_cannot_be "
        "test_an_unknown_device_lists_those_there_are",
        "scope": "test_a_scope_entered_again_mirrors_once test_scopes_of_two_strategies_do_not_mix",
    },
    "distribute/test_strategy_log.py": {
        "strategy-log": "test_the_line_in_the_log",
        "log-of-a-mirrored-variable": "test_placement_log_of_a_mirrored_variable",
        "four-gpus-by-hand": "test_by_hand_on_four_gpus",
    },
    "distribute/test_strategy_run.py": {
        "run": "test_structures_are_regrouped test_one_replica_is_unwrapped",
        "run-arguments": "test_refused_calls",
        "local-results": "test_local_results",
        "different-structures": "test_results_of_different_structures",
        "two-replicas-run": "test_id_plus_one test_structures_are_regrouped",
    },
    "distribute/test_per_replica.py": {"per-replica-repr": "test_per_replica_repr"},
    "layers/test_added_losses.py": {
        "added-losses": "test_losses_are_there_until_a_call_begins "
        "test_what_is_no_tensor_is_refused test_a_functional_model_adds_none"
    },
    "training/test_runs.py": {
        "step-functions": "test_steps_on_what_an_iterator_gives "
        "test_evaluation_and_prediction_on_batches "
        "test_a_function_that_is_forgotten_is_made_anew"
    },
    "training/test_step_losses.py": {
        "added-losses": "test_added_losses_are_keras test_a_model_without_a_loss",
        "weighted-losses": "test_reductions_are_keras",
    },
    "layers/test_policy.py": {
        "mixed-precision": "test_a_mixed_layer test_policies_that_there_are_not",
    },
    "ops/test_dispatch.py": {
        "default-placement": "test_inputs_are_copied_to_where_the_op_runs",
    },
    "ops/test_conversion.py": {
        "constant-dtype": "test_constant_dtype",
        "constant-shape": "test_constant_of_a_given_shape test_constant_of_another_count",
        "numbers-adopt": "test_numbers_adopt_the_dtype_of_the_tensor test_integers_that_do_not_fit",
        "absent-dtypes": "test_what_cannot_be_a_tensor",
        "ragged-lists": "test_rows_that_differ_in_length test_lists_that_mix_booleans_and_numbers",
        "tensors-keep-their-dtype": "test_tensors_are_not_converted_by_the_way",
    },
    "ops/test_elementwise.py": {
        "two-dtypes": "test_errors",
        "numbers-adopt": "test_errors",
        "integer-division": "test_division_of_integers_gives_float64 test_division_of_two_dtypes",
    },
    "ops/test_every_op.py": {
        "default-placement": "test_device_and_log",
        "cpu-only": "test_device_and_log",
        "two-dtypes": "test_two_dtypes",
    },
    "ops/test_host_function.py": {
        "recorded-python": "test_a_shape_that_is_said test_what_needs_its_shape test_gradients "
        "test_what_nobody_reads_is_called_in_order test_replicas_call_it_one_after_the_other "
        "test_another_shape_in_a_later_run_stops_it_before_anything_is_written",
        "cpu-only": "test_soft_placement_runs_it_on_the_cpu test_hard_placement_is_an_error",
    },
    "ops/test_linalg.py": {"shapes-that-do-not-fit": "test_shapes_that_do_not_fit"},
    "ops/test_reduction.py": {
        "deterministic": "test_order_is_fixed",
        "integer-means": "test_means_of_integers_are_of_sums_in_64_bits test_of_nothing",
    },
    "ops/test_slicing.py": {"index-out-of-bounds": "test_bad_indices"},
    "ops/test_spec.py": {"shapes-that-do-not-fit": "test_broadcast_shapes_that_do_not_fit"},
    "variables/test_generator.py": {
        "random-in-replicas": "test_any_number_of_replicas_draws_what_one_does",
    },
    "ops/test_small_dtypes.py": {
        "small-dtypes": "test_values_eager_and_recorded test_refused "
        "test_devices_datasets_and_files",
    },
    "ops/test_uint8.py": {
        "uint8": "test_values test_refused test_variables",
        "integer-division": "test_values test_refused",
    },
    "ops/test_narrow_floats.py": {
        "bfloat16": "test_forward_rounds_once test_without_the_package",
    },
    "ops/test_tensor.py": {
        "tensor-device": "test_attributes",
        "tensor-print": "test_str_and_repr",
        "tensor-repr": "test_str_and_repr test_repr_of_scalars",
    },
    "layers/test_constraints.py": {"constraints": "test_a_constraint_that_fails_changes_nothing"},
    "optim/test_loss_scale_optimizer.py": {
        "non-finite-loss": "test_fit_goes_on_behind_an_infinite_batch",
    },
    "optim/test_optimizer_steps.py": {
        "summed-gradients": "test_gradients_of_replicas_are_summed",
        "same-batch-numbers": "test_the_same_batch_on_every_replica",
    },
    "optim/test_sgd.py": {
        "sgd": "test_two_variables",
        "momentum": "test_momentum",
        "nesterov": "test_nesterov",
        "half-square": "test_half_the_square",
    },
    "program/test_variable_access.py": {
        "function-variables": "test_what_is_made_in_every_call test_what_is_made_once "
        "test_another_variable_in_a_later_call test_a_recorded_step_of_a_model",
    },
    "program/test_signature.py": {
        "input-signature": "test_a_signature_of_another_function test_calls",
    },
    "program/test_call_results.py": {
        "function-returns": "test_variables test_numbers test_what_is_no_tensor_is_refused",
        "assigns-return": "test_results_of_replicas test_eager_assigns_in_replicas",
    },
    "program/test_parameters.py": {"kinds-of-calls": "test_recordings"},
    "program/test_templates.py": {
        "kinds-of-variables": "test_the_bits_are_those_of_recording_anew "
        "test_other_kinds_are_recorded test_which_arguments_are_one_variable_is_part_of_the_kind "
        "test_a_variable_that_the_function_reads_anyway test_what_is_the_variables_own "
        "test_each_variable_has_slots_of_its_own",
    },
    "control_flow/test_branches.py": {
        "recorded-branches": "test_a_recorded_choice_is_that_of_python "
        "test_what_a_recorded_function_refuses "
        "test_variables_are_written_by_the_function_that_is_taken",
    },
    "distribute/test_replica_attributes.py": {
        "made-in-replicas": "test_one_for_all test_the_first_replica_makes_it",
        "replica-attributes": "test_each_replica_reads_its_own test_outside_of_replicas",
    },
    "autodiff/test_custom_gradients.py": {"custom-gradient": "test_gradients"},
    "autodiff/test_tape.py": {"watch-integers": "test_watching_integers"},
    "autodiff/test_targets.py": {"gradient-of-itself": "test_a_target_that_is_a_source"},
    "program/test_replay.py": {"deterministic": "test_threads_change_no_bits"},
    "programs/test_add_n_program.py": {"four-gpus-by-hand": "test_four_products_and_their_sum"},
    "programs/test_mirrored_line_program.py": {
        "log-of-a-mirrored-variable": "test_the_placement_log_of_building_it",
        "uneven-shards": "test_the_numbers_are_tensorflows",
    },
    "programs/test_placement_program.py": {
        "placement-log": "test_a_product_goes_where_the_default_says",
        "absent-device": "test_an_absent_gpu_with_soft_placement "
        "test_an_absent_gpu_without_soft_placement",
        "absent-kernel": "test_an_op_without_a_gpu_kernel_with_soft_placement "
        "test_an_op_without_a_gpu_kernel_without_soft_placement",
    },
    "test_errors.py": {"errors-are-several": "test_what_catches_them"},
    "test_replica_parity.py": {
        "uneven-shards": "test_every_kind_of_shard",
        "replica-count": "test_replicas_equal_one_in_float64 test_replicas_equal_one_in_float32 "
        "test_every_kind_of_shard",
    },
    "training/test_model_mixed.py": {
        "mixed-precision": "test_training_converges test_files_hold_float32",
        "mixed-replicas": "test_replicas_equal_one",
    },
    "training/test_uint8_data.py": {
        "input-dtype": "test_fit_has_the_bits_of_floats "
        "test_bytes_are_copied_to_the_devices_as_such",
        "loss-dtype": "test_losses_and_metrics test_losses_of_integers_are_floats",
        "uint8": "test_mirrored_variables_of_bytes",
    },
    "data/test_nested_transforms.py": {"interleave-cycle": "test_methods"},
    "data/test_dataset_iterators.py": {
        "iterator-position": "test_an_iterator_goes_on test_the_state_of_a_generator_is_not_known"
    },
    "training/files/test_checkpoint_state.py": {"either-name": "test_either_of_two_names"},
    "training/files/test_checkpoint_resume.py": {
        "optimizer-restore": "test_goes_on_with_the_same_bits test_on_another_number_of_replicas",
        "deterministic": "test_goes_on_with_the_same_bits",
    },
    "test_overrides.py": {
        "overrides": "test_overrides_that_nothing_calls_are_refused "
        "test_assignments_to_instances_are_refused "
        "test_what_is_assigned_to_a_class_is_refused_by_compile "
        "test_a_name_that_is_taken_is_refused",
        "layer-metrics": "test_metrics_in_layers_are_reported",
    },
    "training/metrics/test_gathered_batch.py": {
        "custom-metrics": "test_replicas_report_what_one_device_does "
        "test_an_update_in_a_replica_is_reported_once",
    },
    "training/test_custom_steps.py": {
        "own-steps": "test_what_a_step_may_not_do test_replicas_train_as_one_device",
        "scalar-loss": "test_losses_of_shards_add_up "
        "test_numbers_that_shards_do_not_add_up_to_are_reported",
    },
    "training/shard_analysis/test_rules.py": {
        "scalar-loss": "test_sums_and_means test_what_is_neither"
    },
    "training/test_mixing_operations.py": {
        "mixing": "test_what_mixes_is_listed test_what_does_not_mix_is_not "
        "test_training_logs_it_once test_a_loss_that_looks_at_the_whole_shard "
        "test_what_is_no_model_or_no_input_of_it",
    },
    "training/test_replica_comparison.py": {
        "compare-replicas": "test_right_steps_pass test_wrong_steps_are_found_by_name "
        "test_under_any_strategy_nothing_changes",
    },
    "training/test_loop.py": {
        "loss-shown": "test_logs_of_a_batch_are_the_means_so_far",
        "progress": "test_logs_of_a_batch_are_the_means_so_far",
    },
    "training/test_loop_datasets.py": {
        "generators": "test_the_bits_are_those_of_arrays",
        "data-that-end": "test_data_that_end_end_the_epoch",
    },
    "training/test_loop_inference.py": {
        "weighted-losses": "test_evaluate_the_identity "
        "test_weighted_metrics_divide_by_the_sum_of_weights",
        "predict": "test_predict_keeps_the_order",
        "evaluate-numbers": "test_evaluate_the_identity",
    },
    "training/losses/test_scaling.py": {
        "average-loss": "test_replicas_parts_add_up test_the_global_batch_is_what_counts "
        "test_an_empty_batch_gives_nothing test_penalties_are_added_by_each_replica",
        "average-loss-context": "test_the_cross_replica_context",
        "same-batch-numbers": "test_squared_error_of_a_line",
    },
    "training/losses/test_arguments.py": {
        "loss-reduction": "test_the_mean_over_a_batch_is_refused_in_a_scope",
    },
    "training/test_model.py": {
        "fit-arguments": "test_arguments_stand_as_in_keras",
        "own-scope": "test_a_strategy_scope_may_be_open_or_not",
    },
    "layers/test_layer.py": {"layer-arguments": "test_what_is_no_input_is_not_passed_by_position"},
    "layers/test_weights.py": {
        "layers-in-sets": "test_sets_are_refused",
        "weights-order": "test_parts_come_in_the_order_of_their_assignments_as_in_keras",
        "stream-states": "test_states_of_random_streams_are_among_variables_as_in_keras "
        "test_the_state_of_a_layer_s_stream_is_read_and_assigned",
    },
    "training/test_given_inputs.py": {"given-inputs": "test_what_does_not_fit_is_refused"},
    "graph/test_part.py": {"graph-inputs": "test_any_placeholders_may_be_given_and_asked_for"},
    "graph/test_operations.py": {
        "placeholders": "test_there_are_no_values",
        "graph-names": "test_names_are_those_of_keras",
    },
    "layers/test_merging.py": {"merged-inputs": "test_what_is_refused"},
    "training/test_model_layers.py": {
        "not-built": "test_a_layer_inside_that_is_not_built_yet_is_not_left_out_of_files",
        "layer-names": "test_names_that_are_there_twice",
        "layer-outputs": "test_what_is_no_tensor_is_no_output",
    },
    "training/test_progress.py": {"progress": "test_bar_shows_the_values_of_each_batch"},
    "training/test_loop_hooks.py": {
        "stop-flags": "test_stop_evaluating_and_stop_predicting test_stop_training",
    },
    "bad_input/test_memory.py": {"out-of-memory-of-a-step": "test_out_of_memory_at_every_place"},
    "training/test_progress_bars.py": {
        "progress-bar": "test_lines_do_not_tear_the_bar test_a_bar_within_a_bar "
        "test_a_bar_of_the_applications_own test_rate_and_time_left "
        "test_a_bar_of_unknown_length_moves test_in_a_notebook_the_bar_is_a_widget "
        "test_in_a_notebook_without_widgets_the_bar_is_plain",
    },
    "test_logging.py": {
        "log-level": "test_levels_that_an_application_sets test_the_environments_level "
        "test_a_level_that_an_application_gave_without_a_handler "
        "test_an_application_that_configured_logging_gets_each_line_once_at_its_level",
    },
    "test_files.py": {
        "regular-files": "test_what_is_no_file_is_neither_replaced_nor_read "
        "test_a_file_that_is_there_is_no_error test_failure_changes_nothing "
        "test_an_error_names_the_file",
        "leftovers": "test_leftovers test_the_file_of_a_living_writer_is_no_leftover",
    },
    "serialization/test_configurations.py": {
        "configurations": "test_keras_dicts test_masks_that_keras_draws",
    },
    "serialization/test_own_classes.py": {
        "configurations": "test_lambdas_are_refused",
        "crafted-configurations": "test_what_is_refused test_a_value_that_is_wrong_somewhere "
        "test_lambdas_are_refused",
    },
    "training/files/test_checkpoint_manager.py": {"leftovers": "test_what_a_killed_program_left"},
    "training/files/test_tensor_file.py": {
        "crafted-files": "test_what_a_checkpoint_says test_what_a_weights_file_says "
        "test_one_bad_file_hides_no_good_one",
    },
    "training/files/test_reading_weights.py": {
        "host-reads": "test_a_look_takes_nothing test_what_just_fits_is_trained_and_saved",
    },
    "bad_input/test_keras_files.py": {"keras-weights": "test_what_is_not_read test_a_flipped_bit"},
    "bad_input/test_model_files.py": {"keras-models": "test_what_is_not_read test_configurations"},
    "training/files/test_model_files.py": {"keras-models": "test_training_goes_on"},
    "training/test_exporting.py": {
        "exports": "test_every_layer test_what_is_refused_leaves_no_file test_wrong_arguments",
    },
    "training/test_sklearn_wrappers.py": {
        "estimators": "test_scikit_learns_own_checks "
        "test_a_fit_trains_a_clone_and_a_warm_start_goes_on",
    },
    "training/files/test_keras_weights.py": {
        "keras-weights": "test_what_keras_wrote test_the_order_of_what_optimizers_keep",
    },
    "training/files/test_saving.py": {
        "one-copy-saved": "test_between_replicas",
        "weights-ending": "test_names_of_other_formats",
    },
    "training/test_step_data.py": {
        "input-dtype": "test_float64_end_to_end test_data_are_cast_to_the_dtype_of_the_model",
        "shard-sizes": "test_a_batch_is_cut_and_brought_to_the_devices",
        "listing-takes-no-memory": "test_only_the_devices_of_the_strategy_are_used",
        "memory-where-asked": "test_only_the_devices_of_the_strategy_are_used",
    },
    "training/losses/test_targets.py": {"label-values": "test_refused"},
    "variables/test_device_variable.py": {
        "assign-another-shape": "test_an_assign_that_does_not_fit_changes_nothing",
    },
    "variables/test_variable.py": {
        "aggregation": "test_names_and_numbers_are_tensorflows "
        "test_an_aggregation_that_there_is_not",
        "variable-repr": "test_repr_and_format",
        "read-is-a-snapshot": "test_a_read_is_a_snapshot",
    },
    "data/test_py_dataset.py": {"py-dataset": "test_hooks_come_as_in_keras"},
    "data/test_stored.py": {"files": "test_each_row_is_read_once_a_pass"},
    "bad_input/test_sources.py": {"sources-that-break": "test_what_raises_in_training"},
    "data/test_finite.py": {"validate-data": "test_fit"},
    "data/test_columns.py": {"frames": "test_refused"},
}

KEYS = re.findall(r"^- \*\*([a-z0-9-]+)\*\*\s", PAGE, re.MULTILINE)


def functions_in(path: str) -> set[str]:
    """Return the names of the test functions in a file below tests/."""
    return set(re.findall(r"^def (test_\w+)\(", (TESTS / path).read_text(), re.MULTILINE))


def test_keys_are_unique() -> None:
    assert [key for key, count in Counter(KEYS).items() if count > 1] == []


def test_every_bullet_is_a_row_but_what_is_not_there_yet() -> None:
    rows, found, rest = PAGE.partition(f"\n{HEADING}\n")
    assert found
    assert len(re.findall(r"^\s*[-*] ", rows, re.MULTILINE)) == len(KEYS)
    assert "**" not in rest


def test_every_row_has_a_test() -> None:
    held = {key for rows in HELD.values() for key, names in rows.items() if names.split()}
    assert set(KEYS) - held == set()


def test_every_key_of_the_table_is_a_row() -> None:
    assert {key for rows in HELD.values() for key in rows} - set(KEYS) == set()


def test_every_test_that_is_named_is_there() -> None:
    named = {
        (path, name)
        for path, rows in HELD.items()
        for names in rows.values()
        for name in names.split()
    }
    there = {(path, name) for path in HELD for name in functions_in(path)}
    assert named - there == set()
