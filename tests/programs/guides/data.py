"""TensorFlow's guide "tf.data: build input pipelines"."""

import numpy as np
from guides import error_of


def listed(dataset):
    return [each for each in dataset.as_numpy_iterator()]


def first_steps(tf):
    dataset = tf.data.Dataset.from_tensor_slices([8, 3, 0, 8, 2, 1])
    iterator = iter(dataset)
    return {
        "elements": [each.numpy() for each in dataset],
        "next": next(iterator).numpy(),
        "sum": dataset.reduce(0, lambda state, value: state + value),
        "length": len(dataset),
        "cardinality": dataset.cardinality(),
    }


def structures(tf):
    one = tf.data.Dataset.from_tensor_slices(np.arange(8).reshape(4, 2))
    two = tf.data.Dataset.from_tensor_slices((np.arange(4.0), np.arange(400).reshape(4, 100)))
    both = tf.data.Dataset.zip((one, two))
    spec = both.element_spec
    return {
        "shapes": [tuple(spec[0].shape), tuple(spec[1][0].shape), tuple(spec[1][1].shape)],
        "dtypes": [spec[0].dtype.name, spec[1][0].dtype.name],
        "elements": [(a, b) for a, (b, _) in listed(both)],
        "a dict": listed(tf.data.Dataset.from_tensor_slices({"a": [1, 2], "b": [3.0, 4.0]})),
    }


def generators(tf):
    def counted(stop):
        yield from range(stop)

    def series():
        for i in range(4):
            yield i, np.arange(i, dtype=np.float32)

    counting = tf.data.Dataset.from_generator(
        counted, args=[25], output_types=tf.int32, output_shapes=()
    )
    uneven = tf.data.Dataset.from_generator(
        series,
        output_signature=(
            tf.TensorSpec(shape=(), dtype=tf.int32),
            tf.TensorSpec(shape=(None,), dtype=tf.float32),
        ),
    )
    padded = uneven.padded_batch(3)
    return [listed(counting.repeat().batch(10).take(3)), listed(padded)]


def batches(tf):
    dataset = tf.data.Dataset.zip((tf.data.Dataset.range(10), tf.data.Dataset.range(0, -10, -1)))
    return {
        "with the rest": listed(dataset.batch(4)),
        "without": listed(dataset.batch(4, drop_remainder=True)),
        "shape": tuple(dataset.batch(7, drop_remainder=True).element_spec[0].shape),
        "unbatched": listed(dataset.batch(4).unbatch().take(2)),
        "rebatched": listed(tf.data.Dataset.range(7).batch(3).rebatch(2)),
    }


def epochs(tf):
    dataset = tf.data.Dataset.range(5)
    return {
        "repeated, then batched": listed(dataset.repeat(2).batch(4)),
        "batched, then repeated": listed(dataset.batch(4).repeat(2)),
        "shuffled": sorted(listed(dataset.shuffle(3, seed=1))),
        "skipped": listed(dataset.skip(2)),
        "sharded": listed(dataset.shard(2, 1)),
        "enumerated": listed(dataset.enumerate(start=5).take(2)),
    }


def windows(tf):
    numbers = tf.data.Dataset.range(20)

    def split(batch):
        return batch[:-1], batch[1:]

    overlapping = numbers.window(5, shift=2, stride=2, drop_remainder=True)
    return {
        "by batch": listed(numbers.batch(5, drop_remainder=True).map(split)),
        "windows": [listed(each) for each in numbers.window(7)],
        "flat": listed(overlapping.flat_map(lambda part: part.batch(5, drop_remainder=True))),
    }


def mixing(tf):
    ones, twos = (tf.data.Dataset.from_tensors(i).repeat(3) for i in (1, 2))
    choice = tf.data.Dataset.from_tensor_slices(np.array([0, 1, 1, 0, 1, 0], np.int64))
    return {
        "chosen": listed(tf.data.Dataset.choose_from_datasets([ones, twos], choice)),
        "interleaved": listed(
            tf.data.Dataset.range(1, 4).interleave(
                lambda x: tf.data.Dataset.from_tensors(x).repeat(4), cycle_length=2, block_length=2
            )
        ),
        "joined": listed(ones.concatenate(twos)),
        "sampled": sorted(
            listed(tf.data.Dataset.sample_from_datasets([ones, twos], [0.5, 0.5], seed=3))
        ),
    }


def grouping(tf):
    numbers = tf.data.Dataset.range(10)
    grouped = numbers.group_by_window(
        key_func=lambda x: x % 2, reduce_func=lambda key, group: group.batch(3), window_size=3
    )
    return {
        "grouped": listed(grouped),
        "scanned": listed(numbers.scan(np.int64(0), lambda total, x: (total + x, total + x))),
        "while it holds": listed(numbers.take_while(lambda x: x < 4)),
        "filtered": listed(numbers.filter(lambda x: x % 3 == 0)),
        "unique": listed(tf.data.Dataset.from_tensor_slices([1, 37, 2, 37, 2, 1]).unique()),
    }


def python_in_a_map(tf):
    def half(x):
        return np.float32(x / 2)

    dataset = tf.data.Dataset.range(4)
    mapped = dataset.map(lambda x: tf.numpy_function(half, [x], tf.float32))
    return [
        listed(mapped),
        [error_of(lambda: dataset.batch(0)), error_of(lambda: dataset.batch(-1))],
    ]


def iterators(tf):
    iterator = iter(tf.data.Dataset.range(2))
    first, second = iterator.get_next_as_optional(), iterator.get_next()
    third = iterator.get_next_as_optional()
    return [first.has_value(), first.get_value(), second, third.has_value()]


def an_iterator_in_a_checkpoint(tf):
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        iterator = iter(tf.data.Dataset.range(20))
        checkpoint = tf.train.Checkpoint(step=tf.Variable(0), iterator=iterator)
        before = [next(iterator).numpy() for _ in range(5)]
        path = checkpoint.save(f"{folder}/at")
        later = [next(iterator).numpy() for _ in range(3)]
        checkpoint.restore(path)
        return [before, later, [next(iterator).numpy() for _ in range(3)]]


def options(tf):
    settings = tf.data.Options()
    settings.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    settings.deterministic = True
    dataset = tf.data.Dataset.range(3).with_options(settings)
    return [listed(dataset), dataset.options().deterministic]
