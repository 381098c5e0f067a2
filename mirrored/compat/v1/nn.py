"""TensorFlow 1's `tf.nn`."""

from mirrored.compat.v1.call_table import rows_of as _rows_of
from mirrored.compat.v1.listing import list_names as _list_names

_list_names(
    __name__,
    {
        "mirrored.compat.v1.drawn_calls": _rows_of("nn"),
        "mirrored.compat.v1.special": """
            dropout embedding_lookup in_top_k relu_layer sigmoid_cross_entropy_with_logits
            softmax_cross_entropy_with_logits sparse_softmax_cross_entropy_with_logits xw_plus_b
        """,
    },
    refused={
        "Use `tf.gradients`.": """
            conv2d_backprop_filter conv2d_backprop_input conv3d_backprop_filter
            conv3d_backprop_filter_v2 depthwise_conv2d_backprop_filter
            depthwise_conv2d_backprop_input depthwise_conv2d_native_backprop_filter
            depthwise_conv2d_native_backprop_input
        """,
        "Use `tf.layers.batch_normalization`.": "lrn",
        "There are no cells of recurrent networks: write one, and use `tf.scan` or unroll it.": """
            dynamic_rnn raw_rnn rnn_cell static_rnn
        """,
        "Use `sparse_softmax_cross_entropy_with_logits` over all classes.": """
            nce_loss sampled_softmax_loss
        """,
    },
)
