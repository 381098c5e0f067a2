"""`tf.DeviceSpec` of TensorFlow 1."""

import mirrored.compat.v1 as tf


def test_names() -> None:
    spec = tf.DeviceSpec(job="ps", task=0, device_type="gpu", device_index=1)
    assert spec.to_string() == str(spec) == "/job:ps/task:0/device:GPU:1"
    assert tf.DeviceSpec.from_string("/job:w/task:3/gpu:1").to_string() == (
        "/job:w/task:3/device:GPU:1"
    )
    assert (tf.DeviceSpec().to_string(), tf.DeviceSpec(device_type="GPU").to_string()) == (
        "",
        "/device:GPU:*",
    )
    assert repr(tf.DeviceSpec(job="a")) == (
        "<DeviceSpec(job=a, replica=None, task=None, device_type=None, device_index=None)>"
    )


def test_parts_change() -> None:
    spec = tf.DeviceSpec(job="ps")
    spec.task = 3
    merged = tf.DeviceSpec(device_type="CPU")
    merged.merge_from(spec)
    assert merged.to_string() == "/job:ps/task:3/device:CPU:*"
    assert spec.replace(job="w") == tf.DeviceSpec("w", task=3)
    assert spec.make_merged_spec(tf.DeviceSpec(task=1)).to_string() == "/job:ps/task:1"
    assert spec.parse_from_string("/gpu:0").to_string() == "/device:GPU:0"
    assert len({spec, tf.DeviceSpec(device_type="GPU", device_index=0)}) == 1


def test_scopes() -> None:
    cpu = tf.DeviceSpec(device_type="CPU", device_index=0)
    with tf.Graph().as_default():
        with tf.device(cpu):
            a = tf.constant(1.0)
        with tf.device(lambda operation: cpu):
            b = tf.constant(1.0)
    assert a.device == b.device == "/device:CPU:0"
