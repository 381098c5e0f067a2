"""Adapters that turn what users have into checked arrays, and arrays into global batches.

Nothing here knows of devices: a batch becomes tensors where training shares it among replicas.
"""

from mirrored.data.adapters import Arrays as Arrays
from mirrored.data.adapters import adapt as adapt
from mirrored.data.adapters import check_batch_size as check_batch_size
from mirrored.data.adapters import split_validation as split_validation
from mirrored.data.adapters import with_class_weights as with_class_weights
from mirrored.data.batches import Batch as Batch
from mirrored.data.batches import Batches as Batches
from mirrored.data.batches import Span as Span
