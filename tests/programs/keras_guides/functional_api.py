"""Keras' guide "The Functional API"."""

import numpy as np
from known import labels, numbers, set_weights, told_of

X, Y = numbers(30, 12), labels(30, 4)


def _classifier(tf):
    inputs = tf.keras.Input(shape=(12,), name="digits")
    hidden = tf.keras.layers.Dense(8, activation="tanh", name="hidden")(inputs)
    outputs = tf.keras.layers.Dense(4, name="logits")(hidden)
    return set_weights(tf.keras.Model(inputs=inputs, outputs=outputs, name="classifier"))


def a_graph_of_layers(tf):
    inputs = tf.keras.Input(shape=(12,))
    image = tf.keras.Input(shape=(8, 8, 3))
    model = _classifier(tf)
    layers = [[each.name, type(each).__name__] for each in model.layers]
    return [list(inputs.shape), str(inputs.dtype), list(image.shape), model.name, layers]


def it_is_trained_as_any_model(tf):
    model = _classifier(tf)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = tf.keras.optimizers.Adam(learning_rate=0.01)
    model.compile(loss=loss, optimizer=optimizer, metrics=["accuracy"])
    history = model.fit(
        X, Y, batch_size=7, epochs=2, shuffle=False, validation_split=0.2, verbose=0
    )
    scores = model.evaluate(X, Y, batch_size=7, verbose=0)
    return told_of(history), np.float32(scores), model.predict(X, verbose=0)


def its_input_has_a_name(tf):
    model, loss = _classifier(tf), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(loss=loss, optimizer=tf.keras.optimizers.SGD(0.1))
    given = {"digits": X, "more": Y}
    history = model.fit(given, Y, batch_size=8, shuffle=False, verbose=0)
    dataset = tf.data.Dataset.from_tensor_slices(({"digits": X}, Y)).batch(8)
    again = model.fit(dataset, validation_data=dataset, verbose=0)
    return told_of(history), told_of(again), model.predict(given, batch_size=8, verbose=0)


def models_of_one_graph(tf):
    layers = tf.keras.layers
    image = tf.keras.Input(shape=(3, 4), name="image")
    code = layers.Dense(5, activation="tanh")(layers.Flatten()(image))
    encoder = tf.keras.Model(image, code, name="encoder")
    drawn = tf.keras.ops.reshape(layers.Dense(12)(code), (-1, 3, 4))
    autoencoder = set_weights(tf.keras.Model(image, drawn, name="autoencoder"))
    autoencoder.compile(optimizer="sgd", loss="mse")
    images = X.reshape(30, 3, 4)
    before = encoder(images[:2])
    autoencoder.fit(images, images, batch_size=8, shuffle=False, verbose=0)
    sizes = [encoder.count_params(), autoencoder.count_params(), list(autoencoder.output_shape)]
    return before, sizes, encoder(images[:2]), autoencoder(images[:2])


def models_are_called_as_layers_are(tf):
    layers = tf.keras.layers
    image, code = tf.keras.Input(shape=(12,)), tf.keras.Input(shape=(5,))
    encoder = tf.keras.Model(image, layers.Dense(5, activation="tanh")(image), name="encoder")
    decoder = tf.keras.Model(code, layers.Dense(12)(code), name="decoder")
    whole = tf.keras.Input(shape=(12,), name="whole")
    model = set_weights(tf.keras.Model(whole, decoder(encoder(whole)), name="autoencoder"))
    model.compile(optimizer=tf.keras.optimizers.SGD(0.2), loss="mse")
    history = model.fit(X, X, batch_size=8, epochs=2, shuffle=False, verbose=0)
    names = [each.name for each in model.layers]
    return told_of(history), names, encoder.predict(X[:3], verbose=0), len(model.weights)


def an_ensemble(tf):
    def member():
        inputs = tf.keras.Input(shape=(12,))
        return tf.keras.Model(inputs, tf.keras.layers.Dense(1)(inputs))

    members = [member() for _ in range(3)]
    inputs = tf.keras.Input(shape=(12,))
    outputs = tf.keras.layers.average([each(inputs) for each in members])
    model = set_weights(tf.keras.Model(inputs=inputs, outputs=outputs))
    return model(X[:4]), model.predict(X, batch_size=8, verbose=0)


def _tickets(tf, kind):
    layers = tf.keras.layers
    title = tf.keras.Input(shape=(4,), name="title")
    body = tf.keras.Input(shape=(6,), name="body")
    tags = tf.keras.Input(shape=(2,), name="tags")
    parts = [layers.Dense(5)(title), layers.Dense(3)(body), tags]
    features = layers.concatenate(parts)
    priority = layers.Dense(1, name="priority")(features)
    department = layers.Dense(4, name="department")(features)
    outputs = [priority, department]
    if kind is dict:
        outputs = {"priority": priority, "department": department}
    return set_weights(tf.keras.Model(inputs=[title, body, tags], outputs=outputs))


TICKETS = {"title": X[:, :4], "body": X[:, 4:10], "tags": X[:, 10:]}
TARGETS = {"priority": (X[:, :1] > 0) * 1.0, "department": numbers(30, 4) ** 2}


def several_inputs_and_outputs_in_lists(tf):
    model = _tickets(tf, list)
    binary = tf.keras.losses.BinaryCrossentropy(from_logits=True)
    many = tf.keras.losses.CategoricalCrossentropy(from_logits=True)
    adam = tf.keras.optimizers.Adam(0.01)
    model.compile(optimizer=adam, loss=[binary, many], loss_weights=[1.0, 0.2])
    given = [[*TICKETS.values()], [*TARGETS.values()]]
    history = model.fit(*given, epochs=2, batch_size=10, shuffle=False, verbose=0)
    return told_of(history), model.predict(given[0], batch_size=10, verbose=0)


def several_inputs_and_outputs_by_name(tf):
    model = _tickets(tf, dict)
    model.compile(
        optimizer=tf.keras.optimizers.SGD(0.1),
        loss={
            "priority": tf.keras.losses.BinaryCrossentropy(from_logits=True),
            "department": tf.keras.losses.CategoricalCrossentropy(from_logits=True),
        },
        loss_weights={"priority": 1.0, "department": 0.2},
    )
    history = model.fit(TICKETS, TARGETS, epochs=2, batch_size=10, shuffle=False, verbose=0)
    dataset = tf.data.Dataset.from_tensor_slices((TICKETS, TARGETS)).batch(10)
    again = model.fit(dataset, verbose=0)
    return told_of(history), told_of(again), model.predict(TICKETS, batch_size=10, verbose=0)


def connections_that_skip_layers(tf):
    layers = tf.keras.layers
    inputs = tf.keras.Input(shape=(12,), name="row")
    first = layers.Dense(6, activation="tanh")(inputs)
    second = layers.add([layers.Dense(6, activation="tanh")(first), first])
    third = layers.add([layers.Dense(6, activation="tanh")(second), second])
    model = tf.keras.Model(inputs, layers.Dense(4)(third), name="residual")
    set_weights(model).compile(
        optimizer=tf.keras.optimizers.SGD(0.1),
        loss=tf.keras.losses.CategoricalCrossentropy(from_logits=True),
        metrics=["acc"],
    )
    rows = tf.keras.utils.to_categorical(Y, 4)
    history = model.fit(X, rows, batch_size=8, shuffle=False, validation_split=0.2, verbose=0)
    return told_of(history), model.get_weights()


def a_shared_layer(tf):
    shared = tf.keras.layers.Dense(3, activation="tanh")
    first, second = tf.keras.Input(shape=(12,)), tf.keras.Input(shape=(12,))
    outputs = tf.keras.layers.Dense(1)(shared(first) - shared(second))
    model = set_weights(tf.keras.Model([first, second], outputs))
    model.compile(optimizer=tf.keras.optimizers.SGD(0.1), loss="mse")
    pair = [X, numbers(30, 12, phase=2.0)]
    history = model.fit(pair, X[:, :1], batch_size=8, epochs=2, shuffle=False, verbose=0)
    return told_of(history), len(model.weights), model.predict(pair, verbose=0)


def tensors_within_a_model(tf):
    model = _classifier(tf)
    features = [layer.output for layer in model.layers]
    return tf.keras.Model(inputs=model.input, outputs=features)(X[:3])


def _dense_of_ones_own(tf):
    class Own(tf.keras.layers.Layer):
        def __init__(self, units=32):
            super().__init__()
            self.units = units

        def build(self, input_shape):
            shape = (input_shape[-1], self.units)
            self.w = self.add_weight(shape=shape, initializer="random_normal", trainable=True)
            self.b = self.add_weight(shape=(self.units,), initializer="zeros", trainable=True)

        def call(self, inputs):
            return tf.matmul(inputs, self.w) + self.b

    return Own


def a_layer_of_ones_own(tf):
    inputs = tf.keras.Input((12,))
    model = tf.keras.Model(inputs, _dense_of_ones_own(tf)(4)(inputs))
    set_weights(model).compile(optimizer="sgd", loss="mse")
    history = model.fit(X, X[:, :4], batch_size=8, shuffle=False, verbose=0)
    return told_of(history), model.get_weights()


def a_recurrent_layer_around_a_model(tf):
    units, steps, width = 4, 3, 2
    inputs = tf.keras.Input((None, units))
    head = tf.keras.layers.Dense(1)(tf.keras.ops.mean(inputs, axis=1))
    classifier = tf.keras.Model(inputs, head)

    class Recurrent(tf.keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.of_input = tf.keras.layers.Dense(units, activation="tanh")
            self.of_state = tf.keras.layers.Dense(units, activation="tanh")
            self.classifier = classifier

        def call(self, inputs):
            seen, state = [], tf.zeros((inputs.shape[0], units))
            for step in range(inputs.shape[1]):
                state = self.of_input(inputs[:, step, :]) + self.of_state(state)
                seen.append(state)
            return self.classifier(tf.stack(seen, axis=1))

    layer = Recurrent()
    layer(tf.zeros((1, steps, width)))
    set_weights(layer)
    whole = tf.keras.Input(batch_shape=(5, steps, width))
    model = tf.keras.Model(whole, layer(whole))
    rows = numbers(5, steps, width)
    return layer(tf.constant(rows)), model(rows), list(model.output_shape), len(layer.weights)
