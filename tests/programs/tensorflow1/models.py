"""The models that books on TensorFlow 1 begin with, in our own words and on made-up data."""

import math

import numpy as np


def _digits(rng, count=256):
    """Return rows of 64 numbers that lean to one of ten patterns, and which one."""
    labels = rng.randint(0, 10, count)
    patterns = rng.rand(10, 64)
    return (patterns[labels] + 0.3 * rng.rand(count, 64)).astype(np.float32), labels


def a_line_fed_one_point_at_a_time(tf):
    rng = np.random.RandomState(0)
    train_x = rng.uniform(2.0, 11.0, 17)
    train_y = 0.25 * train_x + 0.8 + 0.3 * rng.randn(17)
    x, y = tf.placeholder("float"), tf.placeholder("float")
    weight = tf.Variable(rng.randn(), name="weight")
    bias = tf.Variable(rng.randn(), name="bias")
    prediction = tf.add(tf.multiply(x, weight), bias)
    cost = tf.reduce_sum(tf.pow(prediction - y, 2)) / (2 * len(train_x))
    optimizer = tf.train.GradientDescentOptimizer(0.01).minimize(cost)
    costs = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(5):
            for one_x, one_y in zip(train_x, train_y, strict=True):
                sess.run(optimizer, feed_dict={x: one_x, y: one_y})
            costs.append(sess.run(cost, feed_dict={x: train_x, y: train_y}))
        found = [costs, sess.run(weight), sess.run(bias)]
    names = [each.name for each in tf.get_default_graph().get_operations()]
    return [found, names[: names.index("truediv") + 1]]


def softmax_regression(tf):
    images, labels = _digits(np.random.RandomState(1))
    x = tf.placeholder(tf.float32, [None, 64])
    w = tf.Variable(tf.zeros([64, 10]))
    b = tf.Variable(tf.zeros([10]))
    y = tf.nn.softmax(tf.matmul(x, w) + b)
    y_ = tf.placeholder(tf.float32, [None, 10])
    cross_entropy = tf.reduce_mean(-tf.reduce_sum(y_ * tf.log(y), reduction_indices=[1]))
    train_step = tf.train.GradientDescentOptimizer(0.1).minimize(cross_entropy)
    correct = tf.equal(tf.argmax(y, 1), tf.argmax(y_, 1))
    accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))
    sess = tf.InteractiveSession()
    tf.global_variables_initializer().run()
    targets = np.eye(10)[labels]
    for i in range(0, 256, 32):
        sess.run(train_step, feed_dict={x: images[i : i + 32], y_: targets[i : i + 32]})
    found = [
        accuracy.eval(feed_dict={x: images, y_: targets}),
        cross_entropy.eval({x: images, y_: targets}),
    ]
    sess.close()
    return found


def word_vectors(tf):
    rng = np.random.RandomState(2)
    words, size, batch = 30, 8, 16
    graph = tf.Graph()
    with graph.as_default():
        inputs = tf.placeholder(tf.int32, shape=[batch])
        labels = tf.placeholder(tf.int32, shape=[batch, 1])
        valid = tf.constant([1, 5, 7], dtype=tf.int32)
        with tf.device("/cpu:0"):
            start = rng.uniform(-1.0, 1.0, (words, size)).astype(np.float32)
            embeddings = tf.Variable(start)
            embed = tf.nn.embedding_lookup(embeddings, inputs)
            begin = (rng.randn(words, size) / math.sqrt(size)).astype(np.float32)
            softmax_weights = tf.Variable(begin)
            softmax_biases = tf.Variable(tf.zeros([words]))
        logits = tf.matmul(embed, softmax_weights, transpose_b=True) + softmax_biases
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels=tf.squeeze(labels, [1]), logits=logits
            )
        )
        step = tf.Variable(0, trainable=False)
        rate = tf.train.exponential_decay(1.0, step, 5, 0.9, staircase=True)
        train = tf.train.GradientDescentOptimizer(rate).minimize(loss, global_step=step)
        norm = tf.sqrt(tf.reduce_sum(tf.square(embeddings), 1, keep_dims=True))
        normalized = embeddings / norm
        near = tf.matmul(tf.nn.embedding_lookup(normalized, valid), normalized, transpose_b=True)
        init = tf.global_variables_initializer()
    losses = []
    with tf.Session(graph=graph) as session:
        init.run()
        for _ in range(12):
            ids = rng.randint(0, words, batch)
            fed = {inputs: ids, labels: ((ids + 1) % words)[:, None]}
            losses.append(session.run([train, loss], feed_dict=fed)[1])
        return [losses, rate.eval(), int(step.eval()), near.eval()]


def an_autoencoder(tf):
    rng = np.random.RandomState(3)
    data = rng.rand(32, 12).astype(np.float32)
    x = tf.placeholder("float", [None, 12])
    sizes = {"encoder": (12, 3), "decoder": (3, 12)}
    weights = {k: tf.Variable((rng.randn(*v) * 0.3).astype(np.float32)) for k, v in sizes.items()}
    biases = {k: tf.Variable(tf.zeros([v[1]])) for k, v in sizes.items()}

    def layer(x, name):
        return tf.nn.sigmoid(tf.add(tf.matmul(x, weights[name]), biases[name]))

    code = layer(x, "encoder")
    cost = tf.reduce_mean(tf.pow(x - layer(code, "decoder"), 2))
    optimizer = tf.train.RMSPropOptimizer(0.01).minimize(cost)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        costs = [sess.run([optimizer, cost], feed_dict={x: data})[1] for _ in range(10)]
        return [costs, sess.run(code, feed_dict={x: data[:2]})]


def a_cell_unrolled_with_clipped_gradients(tf):
    rng = np.random.RandomState(5)
    x = tf.placeholder(tf.float32, [None, 6, 3])
    w = tf.get_variable("w", initializer=(rng.randn(3, 5) * 0.3).astype(np.float32))
    u = tf.get_variable("u", initializer=(rng.randn(5, 5) * 0.3).astype(np.float32))
    b = tf.get_variable("b", [5], initializer=tf.zeros_initializer())
    state = tf.zeros([4, 5])
    for step in tf.unstack(x, axis=1):
        state = tf.tanh(tf.matmul(step, w) + tf.matmul(state, u) + b)
    loss = tf.reduce_mean(tf.square(state - 0.5))
    optimizer = tf.train.AdamOptimizer(0.01)
    gradients = [each for each, _ in optimizer.compute_gradients(loss)]
    clipped, norm = tf.clip_by_global_norm(gradients, 0.5)
    train = optimizer.apply_gradients(list(zip(clipped, [w, u, b], strict=True)))
    fed = {x: rng.randn(4, 6, 3)}
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return [sess.run([train, loss, norm], fed)[1:] for _ in range(8)]


def a_policy_that_gradients_are_gathered_for(tf):
    rng = np.random.RandomState(6)
    states = tf.placeholder(shape=[None, 4], dtype=tf.float32)
    first = tf.Variable(rng.randn(4, 8).astype(np.float32))
    second = tf.Variable(rng.randn(8, 2).astype(np.float32))
    output = tf.nn.softmax(tf.matmul(tf.nn.relu(tf.matmul(states, first)), second))
    chosen = tf.arg_max(output, 1)
    rewards = tf.placeholder(shape=[None], dtype=tf.float32)
    actions = tf.placeholder(shape=[None], dtype=tf.int32)
    indexes = tf.range(0, tf.shape(output)[0]) * tf.shape(output)[1] + actions
    taken = tf.gather(tf.reshape(output, [-1]), indexes)
    loss = -tf.reduce_mean(tf.log(taken) * rewards)
    variables = tf.trainable_variables()
    holders = [tf.placeholder(tf.float32, name=f"{i}_holder") for i in range(len(variables))]
    gradients = tf.gradients(loss, variables)
    optimizer = tf.train.AdamOptimizer(learning_rate=0.01)
    update = optimizer.apply_gradients(zip(holders, variables, strict=True))
    fed = {rewards: rng.rand(6), actions: [0, 1, 0, 1, 1, 0], states: rng.randn(6, 4)}
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        gathered = [np.zeros_like(each) for each in sess.run(variables)]
        for _ in range(3):
            for total, each in zip(gathered, sess.run(gradients, feed_dict=fed), strict=True):
                total += each
            sess.run(update, feed_dict=dict(zip(holders, gathered, strict=True)))
        return [sess.run(loss, fed), sess.run(chosen, fed)]


def means_of_weights(tf):
    rng = np.random.RandomState(7)
    x = tf.placeholder(tf.float32, [None, 2])
    w = tf.Variable(rng.randn(2, 1).astype(np.float32), name="w")
    step = tf.train.get_or_create_global_step()
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 1.0))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    averages = tf.train.ExponentialMovingAverage(0.9, step)
    with tf.control_dependencies([train]):
        maintain = averages.apply(tf.trainable_variables())
    fed = {x: rng.randn(8, 2)}
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(5):
            sess.run(maintain, fed)
        found = sess.run([w, averages.average(w)])
    return [found, maintain.name, averages.average_name(w), sorted(averages.variables_to_restore())]
