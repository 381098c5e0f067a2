"""Training steps in which the order of reads and writes matters, as later lessons have them."""

import numpy as np


def normalization_with_statistics_of_its_own(tf):
    rng = np.random.RandomState(0)
    training = tf.placeholder_with_default(False, (), "training")
    x, y = tf.placeholder(tf.float32, [None, 8]), tf.placeholder(tf.int64, [None])
    w = tf.Variable((rng.randn(8, 3) * 0.5).astype(np.float32))

    def normalized(inputs, decay=0.9):
        size = [inputs.get_shape()[-1]]
        scale, offset = tf.Variable(tf.ones(size)), tf.Variable(tf.zeros(size))
        mean = tf.Variable(tf.zeros(size), trainable=False)
        variance = tf.Variable(tf.ones(size), trainable=False)

        def by_batch():
            of_mean, of_variance = tf.nn.moments(inputs, [0])
            kept = [
                tf.assign(mean, mean * decay + of_mean * (1 - decay)),
                tf.assign(variance, variance * decay + of_variance * (1 - decay)),
            ]
            with tf.control_dependencies(kept):
                return tf.nn.batch_normalization(inputs, of_mean, of_variance, offset, scale, 1e-3)

        def by_all():
            return tf.nn.batch_normalization(inputs, mean, variance, offset, scale, 1e-3)

        return tf.cond(training, by_batch, by_all), mean

    logits, mean = normalized(tf.matmul(x, w))
    entropies = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    loss = tf.reduce_mean(entropies)
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    fed = {x: rng.rand(20, 8), y: rng.randint(0, 3, 20)}
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        losses = [sess.run([train, loss], {**fed, training: True})[1] for _ in range(4)]
        return [losses, sess.run(mean), sess.run(loss, fed)]


def updates_that_are_collected(tf):
    rng = np.random.RandomState(1)
    x = tf.placeholder(tf.float32, [None, 4])
    kept, w = tf.Variable(tf.zeros([4]), trainable=False), tf.Variable(tf.ones([4]))
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign(kept, tf.reduce_mean(x, 0)))
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        loss = tf.reduce_mean(tf.square(x * w - tf.identity(kept)))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return [sess.run([train, kept, w], {x: rng.rand(5, 4)})[1:] for _ in range(3)]


def values_of_actions_fetched_with_the_step(tf):
    rng = np.random.RandomState(2)
    state = tf.placeholder(shape=[1, 6], dtype=tf.float32)
    weights = tf.Variable(rng.uniform(0, 0.01, (6, 3)).astype(np.float32))
    values = tf.matmul(state, weights)
    best = tf.argmax(values, 1)
    wanted = tf.placeholder(shape=[1, 3], dtype=tf.float32)
    loss = tf.reduce_sum(tf.square(wanted - values))
    step = tf.train.create_global_step()
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    rows, found, here = np.identity(6), [], 0
    with tf.Session() as sess:
        sess.run(tf.initialize_all_variables())
        for _ in range(8):
            action, targets = sess.run([best, values], {state: rows[here : here + 1]})
            there = (here + int(action[0]) + 1) % 6
            after = sess.run(values, {state: rows[there : there + 1]})
            targets[0, action[0]] = float(there == 5) + 0.9 * np.max(after)
            fed = {state: rows[here : here + 1], wanted: targets}
            _, kept, number = sess.run([train, weights, step], fed)
            found.append([int(number), kept[here]])
            here = there
    return found


def two_networks_against_each_other(tf):
    rng = np.random.RandomState(3)

    def network(x, units, name, reuse=None):
        with tf.variable_scope(name, reuse=reuse):
            size = [x.get_shape()[1], units]
            w = tf.get_variable("w", size, initializer=tf.constant_initializer(0.1))
            b = tf.get_variable("b", [units], initializer=tf.constant_initializer(0.0))
            return tf.nn.relu(tf.matmul(x, w) + b)

    noise, real = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.float32, [None, 3])
    of_real = network(real, 1, "discriminator")
    of_made = network(network(noise, 3, "generator"), 1, "discriminator", True)

    def entropy(logits, labels):
        return tf.reduce_mean(
            tf.nn.sigmoid_cross_entropy_with_logits(logits=logits, labels=labels(logits))
        )

    losses = [entropy(of_real, tf.ones_like) + entropy(of_made, tf.zeros_like)]
    losses.append(entropy(of_made, tf.ones_like))
    steps = [
        tf.train.AdamOptimizer(0.01, beta1=0.5).minimize(
            loss, var_list=[each for each in tf.trainable_variables() if name in each.name]
        )
        for name, loss in zip(("discriminator", "generator"), losses, strict=True)
    ]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(4):
            fed = {noise: rng.rand(5, 2), real: rng.rand(5, 3)}
            found = [
                sess.run([step, loss], fed)[1] for step, loss in zip(steps, losses, strict=True)
            ]
        names = [each.name for each in tf.global_variables()]
        return [found, names, sess.run(tf.trainable_variables())]


def gradients_that_are_gathered(tf):
    x = tf.placeholder(tf.float32, [None, 2])
    w = tf.Variable(tf.ones([2, 1]))
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w)))
    optimizer = tf.train.AdamOptimizer(0.1)
    variables = tf.trainable_variables()
    sums = [tf.Variable(tf.zeros_like(v.initialized_value()), trainable=False) for v in variables]
    empty = [each.assign(tf.zeros_like(each)) for each in sums]
    pairs = optimizer.compute_gradients(loss, variables)
    gather = [total.assign_add(pair[0]) for total, pair in zip(sums, pairs, strict=True)]
    train = optimizer.apply_gradients(list(zip(sums, variables, strict=True)))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(2):
            sess.run(empty)
            for batch in range(3):
                sess.run(gather, {x: [[batch, 1.0]]})
            sess.run(train)
        return sess.run([w, sums])


def what_is_measured_over_batches(tf):
    rng = np.random.RandomState(4)
    labels, found = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.int64, [None])
    measures = [
        tf.metrics.accuracy(labels=labels, predictions=found, name="accuracy"),
        tf.metrics.mean(tf.to_float(found)),
        tf.metrics.precision(labels, found),
        tf.metrics.recall(labels, found),
    ]
    with tf.Session() as sess:
        sess.run(tf.local_variables_initializer())
        for _ in range(3):
            fed = {labels: rng.randint(0, 2, 9), found: rng.randint(0, 2, 9)}
            so_far = sess.run([update for _, update in measures], fed)
        names = [each.name for each in tf.local_variables()]
        return [so_far, sess.run([value for value, _ in measures]), names]


def a_cell_that_is_scanned(tf):
    rng = np.random.RandomState(5)
    x = tf.placeholder(tf.float32, [None, 4, 3])
    w = tf.Variable((rng.randn(3, 5) * 0.5).astype(np.float32))
    u = tf.Variable((rng.randn(5, 5) * 0.5).astype(np.float32))
    steps = tf.transpose(x, [1, 0, 2])
    states = tf.scan(
        lambda state, step: tf.tanh(tf.matmul(state, u) + tf.matmul(step, w)),
        steps,
        initializer=tf.zeros([tf.shape(x)[0], 5]),
    )
    last = tf.gather(states, tf.shape(states)[0] - 1)
    lengths = tf.map_fn(lambda row: tf.reduce_sum(tf.abs(row)) * tf.to_float(tf.shape(x)[0]), last)
    loss = tf.reduce_mean(tf.square(last - 0.5))
    train = tf.train.RMSPropOptimizer(0.01).minimize(loss)
    fed = {x: rng.randn(6, 4, 3)}
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        losses = [sess.run([loss, train], fed)[0] for _ in range(4)]
        return [losses, *sess.run([states, lengths], fed)]
