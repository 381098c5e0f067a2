# Written by tests/support/stubs.py from the table in nn.py; do not edit it.
from mirrored.compat.v1.call_table import rows_of as _rows_of
from mirrored.compat.v1.listing import list_names as _list_names
import typing as _typing
atrous_conv2d: _typing.Any
atrous_conv2d_transpose: _typing.Any
avg_pool: _typing.Any
avg_pool1d: _typing.Any
avg_pool2d: _typing.Any
avg_pool3d: _typing.Any
avg_pool_v2: _typing.Any
batch_normalization: _typing.Any
bias_add: _typing.Any
conv1d: _typing.Any
conv1d_transpose: _typing.Any
conv2d: _typing.Any
conv2d_transpose: _typing.Any
conv3d: _typing.Any
conv3d_transpose: _typing.Any
conv_transpose: _typing.Any
convolution: _typing.Any
crelu: _typing.Any
depth_to_space: _typing.Any
depthwise_conv2d: _typing.Any
depthwise_conv2d_native: _typing.Any
from mirrored.compat.v1.special import dropout as dropout
elu: _typing.Any
from mirrored.compat.v1.special import embedding_lookup as embedding_lookup
from mirrored.compat.v1.special import in_top_k as in_top_k
l2_loss: _typing.Any
l2_normalize: _typing.Any
leaky_relu: _typing.Any
log_poisson_loss: _typing.Any
log_softmax: _typing.Any
max_pool: _typing.Any
max_pool1d: _typing.Any
max_pool2d: _typing.Any
max_pool3d: _typing.Any
max_pool_v2: _typing.Any
moments: _typing.Any
normalize_moments: _typing.Any
pool: _typing.Any
relu: _typing.Any
relu6: _typing.Any
from mirrored.compat.v1.special import relu_layer as relu_layer
selu: _typing.Any
separable_conv2d: _typing.Any
sigmoid: _typing.Any
from mirrored.compat.v1.special import sigmoid_cross_entropy_with_logits as sigmoid_cross_entropy_with_logits
silu: _typing.Any
softmax: _typing.Any
from mirrored.compat.v1.special import softmax_cross_entropy_with_logits as softmax_cross_entropy_with_logits
softmax_cross_entropy_with_logits_v2: _typing.Any
softplus: _typing.Any
softsign: _typing.Any
space_to_depth: _typing.Any
from mirrored.compat.v1.special import sparse_softmax_cross_entropy_with_logits as sparse_softmax_cross_entropy_with_logits
sufficient_statistics: _typing.Any
swish: _typing.Any
tanh: _typing.Any
top_k: _typing.Any
weighted_cross_entropy_with_logits: _typing.Any
weighted_moments: _typing.Any
from mirrored.compat.v1.special import xw_plus_b as xw_plus_b
zero_fraction: _typing.Any
