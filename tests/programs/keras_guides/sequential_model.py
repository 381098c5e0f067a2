"""Keras' guide "The Sequential model"."""

from known import labels, numbers, set_weights, told_of

X, Y = numbers(22, 6), labels(22, 3)


def _stack(tf, *rest, **named):
    layers = tf.keras.layers
    sizes = [(5, "relu", "first"), (4, "tanh", "second"), (3, None, "third")]
    stack = [layers.Dense(units, activation=each, name=name) for units, each, name in sizes]
    return tf.keras.Sequential([*rest, *stack], **named)


def a_list_of_layers(tf):
    model = _stack(tf, name="stack")
    before = [model.built, len(model.layers), len(model.weights)]
    model(tf.ones((1, 6)))
    x, layers = tf.constant(X[:2]), set_weights(model).layers
    by_hand = layers[2](layers[1](layers[0](x)))
    after = [model.name, model.built, [each.name for each in layers], len(model.weights)]
    return before, after, model(x), by_hand


def layers_come_and_go(tf):
    model = tf.keras.Sequential()
    for units in (5, 4, 3):
        model.add(tf.keras.layers.Dense(units))
    model.pop()
    model.add(tf.keras.layers.Dense(2, name="instead"))
    model.build((None, 6))
    shapes = [weight.shape for weight in model.get_weights()]
    return [each.name for each in model.layers][-1], len(model.layers), shapes


def a_layer_gets_weights_when_it_is_called(tf):
    layer = tf.keras.layers.Dense(3)
    before = len(layer.weights)
    layer(tf.ones((1, 4)))
    return before, [weight.shape for weight in layer.get_weights()]


def sizes_that_are_known_from_the_start(tf):
    first = _stack(tf, tf.keras.Input(shape=(6,)))
    second = tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=(4,))])
    return [
        [len(model.layers), model.count_params(), model.input_shape, model.output_shape]
        for model in (first, second)
    ]


def what_every_layer_gives(tf):
    model = set_weights(_stack(tf, tf.keras.Input(shape=(6,))))
    every = tf.keras.Model(model.inputs, [layer.output for layer in model.layers])
    one = tf.keras.Model(inputs=model.inputs, outputs=model.get_layer("second").output)
    return every(X[:2]), one(X[:2]), one.predict(X, batch_size=8, verbose=0)


def frozen_layers_stay(tf):
    model = set_weights(_stack(tf, tf.keras.Input(shape=(6,))))
    for layer in model.layers[:-1]:
        layer.trainable = False
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=tf.keras.optimizers.SGD(0.3), loss=loss)
    history = model.fit(X, Y, batch_size=8, epochs=2, shuffle=False, verbose=0)
    counts = [len(model.trainable_weights), len(model.non_trainable_weights)]
    return told_of(history), counts, model.get_weights()


def a_frozen_model_below_new_layers(tf):
    base = set_weights(_stack(tf, tf.keras.Input(shape=(6,))))
    base.trainable = False
    top = tf.keras.layers.Dense(3, kernel_initializer="ones")
    model = tf.keras.Sequential([base, top])
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    history = model.fit(X, Y, batch_size=8, shuffle=False, verbose=0)
    return told_of(history), model.get_weights()
