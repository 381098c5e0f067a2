"""Which functions of this library TensorFlow 1's names are, as operations of a graph.

Others than these have modules of their own.
"""

from importlib import import_module
from typing import NamedTuple

# Functions of the same name here, by where they are and whether their operations have that name;
# else these have that of their type, which is the name with capitals.
_REGULAR = {
    ("", False): """
        acos acosh add_n asin asinh atan atan2 atanh broadcast_to cast cos cosh dynamic_stitch equal
        exp expand_dims fill floor gather_nd greater greater_equal identity identity_n less
        less_equal logical_and logical_not logical_or maximum minimum not_equal pad rank repeat
        reshape reverse_sequence roll scatter_nd sequence_mask shape sigmoid sign sin sinh size
        slice sqrt square squeeze stop_gradient strided_slice tan tanh tensordot tile
        math.cumulative_logsumexp math.erfinv math.ndtri math.xdivy math.xlog1py math.xlogy
        nn.avg_pool nn.bias_add nn.depth_to_space nn.elu nn.l2_loss nn.leaky_relu nn.log_softmax
        nn.max_pool nn.relu nn.relu6 nn.selu nn.sigmoid nn.softmax nn.softplus nn.softsign
        nn.space_to_depth nn.tanh
    """,
    ("math.", False): """
        abs ceil cumprod cumsum digamma erf erfc expm1 invert_permutation is_finite is_inf is_nan
        lgamma log log1p log_sigmoid logical_xor pow reciprocal rint round rsqrt segment_max
        segment_mean segment_min segment_prod segment_sum squared_difference unsorted_segment_max
        unsorted_segment_mean unsorted_segment_min unsorted_segment_prod unsorted_segment_sqrt_n
        unsorted_segment_sum
    """,
    ("linalg.", False): "cholesky cross qr svd",
    ("nn.", False): "depth_to_space space_to_depth",
    ("", True): """
        clip_by_norm einsum eye histogram_fixed_width histogram_fixed_width_bins meshgrid norm
        one_hot ones_like range sort split transpose zeros_like linalg.adjoint linalg.matrix_rank
        linalg.normalize linalg.pinv math.erfcinv math.polyval math.reduce_std math.reduce_variance
        nn.l2_normalize nn.log_poisson_loss nn.moments nn.pool nn.sufficient_statistics nn.swish
        nn.weighted_moments nn.zero_fraction
    """,
    ("math.", True): """
        bincount confusion_matrix count_nonzero is_non_decreasing is_strictly_increasing lbeta
    """,
    ("linalg.", True): "cholesky_solve global_norm trace",
}
# The others: a name of TensorFlow 1's, what it is here where that is another, its type, and what it
# is called in a graph where that is not its type.
_TABLE = """
add . AddV2 Add
subtract . Sub
multiply . Mul
divide . RealDiv truediv
truediv math.truediv RealDiv truediv
floordiv math.floordiv FloorDiv floordiv
floor_div math.floordiv FloorDiv FloorDiv
mod math.mod FloorMod
floormod math.floormod FloorMod
negative . Neg
matmul . MatMul
reduce_sum . Sum
reduce_mean . Mean
reduce_max . Max
reduce_min . Min
reduce_prod . Prod
reduce_all . All
reduce_any . Any
reduce_logsumexp . ReduceLogSumExp
argmax . ArgMax
argmin . ArgMin
arg_max argmax ArgMax
arg_min argmin ArgMin
concat . ConcatV2 concat
stack . Pack stack
unstack . Unpack unstack
reverse . ReverseV2
gather . GatherV2
zeros . Const zeros
ones . Const ones
linspace . LinSpace linspace
lin_space linspace LinSpace linspace
diag linalg.tensor_diag Diag
matrix_inverse linalg.inv MatrixInverse
matrix_determinant linalg.det MatrixDeterminant
matrix_transpose linalg.matrix_transpose Transpose matrix_transpose
nn.top_k . TopKV2
nn.atrous_conv2d . Conv2D convolution
nn.atrous_conv2d_transpose . Conv2DBackpropInput atrous_conv2d_transpose
nn.avg_pool_v2 nn.avg_pool AvgPool
nn.avg_pool1d . AvgPool AvgPool1D
nn.avg_pool2d . AvgPool
nn.avg_pool3d . AvgPool3D
nn.conv1d . Conv2D conv1d
nn.conv1d_transpose . Conv2DBackpropInput conv1d_transpose
nn.conv2d . Conv2D
nn.conv2d_transpose . Conv2DBackpropInput conv2d_transpose
nn.conv3d . Conv3D
nn.conv3d_transpose . Conv3DBackpropInputV2 conv3d_transpose
nn.conv_transpose . Conv2DBackpropInput conv_transpose
nn.convolution . Conv2D convolution
nn.depthwise_conv2d_native nn.depthwise_conv2d DepthwiseConv2dNative
nn.depthwise_conv2d . DepthwiseConv2dNative depthwise
nn.max_pool_v2 nn.max_pool MaxPool
nn.max_pool1d . MaxPool MaxPool1d
nn.max_pool2d . MaxPool MaxPool2d
nn.max_pool3d . MaxPool3D
nn.separable_conv2d . Conv2D separable_conv2d
nn.softmax_cross_entropy_with_logits_v2 nn.softmax_cross_entropy_with_logits \
 SoftmaxCrossEntropyWithLogits softmax_cross_entropy_with_logits
random_shuffle random.shuffle RandomShuffle
random_gamma random.gamma RandomGamma random_gamma
multinomial random.categorical Multinomial multinomial
accumulate_n math.accumulate_n AccumulateNV2
argsort . ArgSort argsort
diag_part linalg.tensor_diag_part DiagPart
divide_no_nan math.divide_no_nan DivNoNan div_no_nan
matrix_band_part linalg.band_part MatrixBandPart
matrix_diag linalg.diag MatrixDiag
matrix_diag_part linalg.diag_part MatrixDiagPart
matrix_set_diag linalg.set_diag MatrixSetDiag
matrix_solve linalg.solve MatrixSolve
matrix_triangular_solve linalg.triangular_solve MatrixTriangularSolve
scalar_mul . Mul
searchsorted . SearchSorted searchsorted
self_adjoint_eig linalg.eigh SelfAdjointEigV2
tensor_scatter_add tensor_scatter_nd_add TensorScatterAdd
tensor_scatter_nd_add . TensorScatterAdd
tensor_scatter_nd_sub . TensorScatterSub
tensor_scatter_sub tensor_scatter_nd_sub TensorScatterSub
tensor_scatter_nd_update . TensorScatterUpdate
tensor_scatter_update tensor_scatter_nd_update TensorScatterUpdate
nn.batch_normalization . BatchNormalization batchnorm
nn.crelu . CRelu CRelu
nn.normalize_moments . NormalizeMoments normalize
nn.weighted_cross_entropy_with_logits . WeightedCrossEntropyWithLogits logistic_loss
check_numerics debugging.check_numerics CheckNumerics
linalg.eigvalsh . SelfAdjointEigV2
linalg.logdet . LogDet logdet
linalg.lstsq . MatrixSolveLs matrix_solve_ls
linalg.matvec . MatVec MatVec
linalg.slogdet . LogMatrixDeterminant
linalg.transpose linalg.matrix_transpose Transpose matrix_transpose
math.multiply_no_nan . MulNoNan multiply_no_nan
math.nextafter . NextAfter
math.reciprocal_no_nan . DivNoNan reciprocal_no_nan
math.reduce_euclidean_norm . EuclideanNorm
nn.silu . Swish swish
tensor_scatter_nd_max . TensorScatterMax
tensor_scatter_nd_min . TensorScatterMin
"""

# The arguments of TensorFlow 1's functions, in its order, where today's are others. Behind an
# equals sign stands what today's is called; where nothing does, it changes nothing here.
_ARGUMENTS = """
reduce_sum,reduce_mean,reduce_max,reduce_min,reduce_prod,reduce_all,reduce_any,reduce_logsumexp: \
 input_tensor axis keepdims name reduction_indices=axis keep_dims=keepdims
argmax,argmin: input axis name dimension=axis output_type
arg_max,arg_min: input dimension=axis output_type name
confusion_matrix: labels predictions num_classes dtype name weights
count_nonzero: input_tensor=input axis keepdims dtype name reduction_indices=axis \
 keep_dims=keepdims input
expand_dims: input axis name dim=axis
fill: dims value name layout=
gather: params indices validate_indices name axis batch_dims
gather_nd: params indices name batch_dims bad_indices_policy
multinomial: logits num_samples seed name output_dtype=dtype
nn.avg_pool,nn.avg_pool2d,nn.max_pool: value=input ksize strides padding data_format name input
nn.conv1d: value=input filters stride padding use_cudnn_on_gpu= data_format name input dilations
nn.conv2d: input filter=filters strides padding use_cudnn_on_gpu= data_format dilations name filters
nn.conv2d_transpose,nn.conv3d_transpose: value=input filter=filters output_shape strides padding \
 data_format name input filters dilations
nn.conv3d: input filter=filters strides padding data_format dilations name filters
nn.convolution: input filter=filters padding strides dilation_rate=dilations name data_format \
 filters dilations
nn.depthwise_conv2d: input filter strides padding rate=dilations name data_format dilations
nn.pool: input window_shape pooling_type padding dilation_rate=dilations strides name data_format \
 dilations
nn.separable_conv2d: input depthwise_filter pointwise_filter strides padding rate=dilations name \
 data_format dilations
nn.crelu: features name axis
nn.l2_normalize: x axis epsilon name dim=axis
nn.softmax,nn.log_softmax: logits axis name dim=axis
nn.moments: x axes shift name keep_dims=keepdims keepdims
nn.softmax_cross_entropy_with_logits_v2: labels logits axis name dim=axis
nn.sufficient_statistics: x axes shift keep_dims=keepdims name keepdims
nn.weighted_cross_entropy_with_logits: labels logits pos_weight name targets=labels
nn.weighted_moments: x axes frequency_weights name keep_dims=keepdims keepdims
norm: tensor ord axis keepdims name keep_dims=keepdims
ones,zeros: shape dtype name layout=
ones_like,zeros_like: tensor=input dtype name optimize=
pad: tensor paddings mode name constant_values
space_to_depth,depth_to_space,nn.space_to_depth,nn.depth_to_space: \
 input block_size name data_format
reverse_sequence: input seq_lengths seq_axis batch_axis name seq_dim=seq_axis batch_dim=batch_axis
shape,size: input name out_type
squeeze: input axis name squeeze_dims=axis
transpose: a perm name conjugate=
"""


class Row(NamedTuple):
    """One line of the table.

    Attributes:
        target: Where the function is, from the package on.
        kind: The type of its operations.
        called: What they are called.
        arguments: What its arguments are called, in order, each with its name of today; empty: as
            today.
    """

    target: str
    kind: str
    called: str
    arguments: dict[str, str]


def _lines(table: str) -> list[str]:
    return table.strip().replace("\\\n", "").splitlines()


def _orders() -> dict[str, dict[str, str]]:
    by_name = {}
    for line in _lines(_ARGUMENTS):
        names, _, defaults = line.partition(":")
        pairs = [pair.partition("=") for pair in defaults.split()]
        order = {name: today if equals else name for name, equals, today in pairs}
        by_name.update(dict.fromkeys(names.split(","), order))
    return by_name


def _rows() -> dict[str, Row]:
    rows, orders = {}, _orders()

    def add(name: str, target: str, kind: str, called: str) -> None:
        rows[name] = Row(target, kind, called, orders.get(name, {}))

    for line in _lines(_TABLE):
        name, target, kind, *called = line.split()
        add(name, name if target == "." else target, kind, called[0] if called else kind)
    for (home, is_named), names in _REGULAR.items():
        for name in names.split():
            last = name.rpartition(".")[2]
            kind = "".join(word.capitalize() for word in last.split("_"))
            add(name, f"{home}{name}", kind, last if is_named else kind)
    return rows


ROWS = _rows()


def rows_of(home: str = "") -> str:
    """Return the names of a module and their rows in the table, as `LateNames` reads them.

    Args:
        home: The module, such as "math"; "" is `tf` itself.
    """
    if not home:
        return " ".join(name for name in ROWS if "." not in name)
    here = dir(import_module(f"mirrored.{home}"))
    rows = {name.removeprefix(f"{home}."): name for name in ROWS if name.startswith(f"{home}.")}
    if home != "nn":
        for known, row in ROWS.items():
            last = known.removeprefix("nn.")
            if row.target.startswith(f"{home}."):
                rows.setdefault(row.target.removeprefix(f"{home}."), known)
            if last in here:
                rows.setdefault(last, known)
    return " ".join(f"{name}={row}" for name, row in rows.items())
