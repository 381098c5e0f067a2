"""What books on TensorFlow 1 explain: fetches and feeds, scopes, sharing, summaries, files."""

import os
import tempfile
from collections import namedtuple

import numpy as np

Pair = namedtuple("Pair", "first second")


def fetches_and_feeds(tf):
    one, two, five = tf.constant([3.0]), tf.constant([2.0]), tf.constant([5.0])
    between = tf.add(two, five)
    product = tf.multiply(one, between)
    a, b = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    output = tf.multiply(a, b)
    doubled = tf.constant(2) * 3 + 1
    with tf.Session() as sess:
        pair = sess.run(Pair(product, {"x": between, "y": [one, (two,)]}))
        found = [sess.run([product, between]), pair.first, pair.second, sess.run([[one], []])]
        found.append(sess.run([output], feed_dict={a: [7.0], b: [2.0]}))
        found.append(sess.run(product, feed_dict={between: [10.0]}))
        return [*found, doubled.eval(), [str(each) for each in (output, a, product, doubled)]]


def a_counter(tf):
    state = tf.Variable(0, name="counter")
    update = tf.assign(state, tf.add(state, tf.constant(1)))
    init_op = tf.global_variables_initializer()
    with tf.Session() as sess:
        sess.run(init_op)
        return [int(sess.run(each)) for _ in range(3) for each in (update, state, "counter:0")]


def variables_that_are_shared(tf):
    def layer(inputs, kernel_shape, bias_shape):
        weights = tf.get_variable("weights", kernel_shape, initializer=tf.constant_initializer(0.1))
        biases = tf.get_variable("biases", bias_shape, initializer=tf.constant_initializer(0.0))
        return tf.nn.relu(tf.matmul(inputs, weights) + biases)

    def filtered(inputs):
        with tf.variable_scope("conv1"):
            hidden = layer(inputs, [3, 4], [4])
        with tf.variable_scope("conv2"):
            return layer(hidden, [4, 2], [2])

    one, two = (tf.placeholder(tf.float32, [None, 3]) for _ in range(2))
    with tf.variable_scope("filters") as scope:
        first = filtered(one)
        scope.reuse_variables()
        second = filtered(two)
    with tf.variable_scope("foo"), tf.name_scope("bar"):
        v = tf.get_variable("v", [1])
        x = 1.0 + v
    try:
        filtered(one)
        filtered(two)
    except ValueError as error:
        text = str(error)[:60]
    names = [each.name for each in tf.trainable_variables()]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        found = sess.run([first, second], {one: np.ones((2, 3)), two: 2.0 * np.ones((1, 3))})
    return [found, names, text, first.name, second.name, first.shape.as_list(), v.name, x.op.name]


def layers_with_summaries(tf):
    rng = np.random.RandomState(1)
    x = tf.placeholder(tf.float32, [None, 6], name="x-input")
    y_ = tf.placeholder(tf.int64, [None], name="y-input")

    def layer(inputs, shape, name, act):
        with tf.name_scope(name):
            with tf.name_scope("weights"):
                weights = tf.Variable((rng.randn(*shape) * 0.3).astype(np.float32))
                with tf.name_scope("summaries"):
                    mean = tf.reduce_mean(weights)
                    tf.summary.scalar("mean", mean)
                    with tf.name_scope("stddev"):
                        stddev = tf.sqrt(tf.reduce_mean(tf.square(weights - mean)))
                    tf.summary.scalar("stddev", stddev)
                    tf.summary.histogram("histogram", weights)
            with tf.name_scope("biases"):
                biases = tf.Variable(tf.constant(0.1, shape=shape[1:]))
            return act(tf.matmul(inputs, weights) + biases, name="activation")

    hidden = layer(x, [6, 5], "layer1", tf.nn.relu)
    with tf.name_scope("dropout"):
        keep_prob = tf.placeholder(tf.float32)
        tf.summary.scalar("keep_probability", keep_prob)
        dropped = tf.nn.dropout(hidden, keep_prob)
    y = layer(dropped, [5, 3], "layer2", tf.identity)
    loss = tf.losses.sparse_softmax_cross_entropy(labels=y_, logits=y)
    tf.summary.scalar("loss", loss)
    train = tf.train.AdamOptimizer(0.05).minimize(loss)
    merged = tf.summary.merge_all()
    fed = {x: rng.randn(8, 6), y_: rng.randint(0, 3, 8), keep_prob: 1.0}
    with tempfile.TemporaryDirectory() as folder, tf.Session() as sess:
        writer = tf.summary.FileWriter(folder, sess.graph)
        sess.run(tf.global_variables_initializer())
        losses = []
        for i in range(4):
            summary, _, value = sess.run([merged, train, loss], feed_dict=fed)
            writer.add_summary(summary, i)
            losses.append(value)
        writer.close()
        files = len(os.listdir(folder))
    return [losses, files, sorted(each.name for each in tf.get_collection("summaries"))]


def files_of_variables(tf):
    v1 = tf.Variable(np.arange(3, dtype=np.float32), name="v1")
    v2 = tf.get_variable("v2", shape=[5], initializer=tf.zeros_initializer())
    changes = [v1.assign(v1 + 1), v2.assign(v2 - 1)]
    saver = tf.train.Saver(max_to_keep=2)
    with tempfile.TemporaryDirectory() as folder:
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            for each in changes:
                each.op.run()
            for step in range(3):
                path = saver.save(sess, os.path.join(folder, "model"), global_step=step)
        with tf.Session() as sess:
            saver.restore(sess, tf.train.latest_checkpoint(folder))
            state = tf.train.get_checkpoint_state(folder)
            kept = [os.path.basename(each) for each in state.all_model_checkpoint_paths]
            return [sess.run([v1, v2]), os.path.basename(path), kept]


def an_order_of_operations(tf):
    v = tf.Variable(1.0)
    with tf.control_dependencies([v.assign_add(1.0)]):
        after = tf.identity(v.read_value())
    total = tf.while_loop(
        lambda i, s: tf.less(i, 5), lambda i, s: (i + 1, s + v), [tf.constant(0), 0.0]
    )[1]
    chosen = tf.cond(after > 1.5, lambda: after * 2.0, lambda: after)
    with tf.Session() as sess:
        sess.run(v.initializer)
        return [sess.run(each) for each in (after, total, chosen, v)]
