"""Keras' guide "Working with preprocessing layers", with those for numbers and categories."""

import tempfile

import numpy as np
from guides import error_of
from known import labels, numbers, set_weights, told_of

X, KINDS, Y = 3.0 * numbers(22, 2) + 1.0, labels(22, 5)[:, np.newaxis], labels(22, 2)


def statistics_of_data(tf):
    layer = tf.keras.layers.Normalization()
    layer.adapt(X)
    batches = tf.data.Dataset.from_tensor_slices(X).batch(5)
    again = tf.keras.layers.Normalization()
    again.adapt(batches)
    return layer.mean, layer.variance, layer(X[:3]), again.mean, again.variance


def categories(tf):
    kind = tf.keras.layers.CategoryEncoding
    several = np.array([[0, 1], [0, 0], [1, 2], [3, 1]])
    weights = np.array([[0.1, 0.2], [0.1, 0.1], [0.2, 0.3], [0.4, 0.2]])
    return [
        kind(num_tokens=4, output_mode="one_hot")(np.array([3, 2, 0, 1])),
        kind(num_tokens=4, output_mode="multi_hot")(several),
        kind(num_tokens=4, output_mode="count")(several, count_weights=weights),
        error_of(kind, num_tokens=4, output_mode="other"),
    ]


def numbers_as_classes(tf):
    kind = tf.keras.layers.Discretization
    data = np.array([[-1.5, 1.0, 3.4, 0.5], [0.0, 3.0, 1.3, 0.0]], np.float32)
    found = kind(num_bins=4, epsilon=0.01)
    found.adapt(data)
    rows = kind(bin_boundaries=[0.0, 1.0], output_mode="one_hot")(data[:1].T)
    bounds = [float(each) for each in found.bin_boundaries]
    return kind(bin_boundaries=[0.0, 1.0, 2.0])(data), bounds, found(data), rows, error_of(kind)


def rows_of_several_columns(tf):
    """In the model, and in the dataset before it."""
    layers = tf.keras.layers
    scaled = layers.Normalization()
    scaled.adapt(X)
    kinds = layers.CategoryEncoding(num_tokens=5, output_mode="one_hot")
    ends = {"sizes": tf.keras.Input((2,), name="sizes"), "kind": tf.keras.Input((1,), name="kind")}
    x = layers.concatenate([scaled(ends["sizes"]), kinds(ends["kind"])])
    top = layers.Dense(1, activation="sigmoid", name="top")
    model = _with_top(tf.keras.Model(ends, top(x)))
    data = {"sizes": X, "kind": KINDS}
    told = [_fitted(tf, model, data, Y)]
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/rows.keras")
        again = tf.keras.models.load_model(f"{folder}/rows.keras")
    told.append(again.predict({"sizes": X[:3], "kind": KINDS[:3]}, verbose=0))
    inputs = tf.keras.Input((2,))
    before = _with_top(tf.keras.Model(inputs, layers.Dense(1, name="top")(inputs)))
    rows = tf.data.Dataset.from_tensor_slices((X, Y)).batch(8).map(lambda x, y: (scaled(x), y))
    return [*told, _fitted(tf, before, rows)]


def _with_top(model):
    set_weights(model.get_layer("top"))
    return model


def _fitted(tf, model, *data):
    model.compile(tf.keras.optimizers.SGD(0.1), "binary_crossentropy", metrics=["accuracy"])
    history = model.fit(*data, shuffle=False, verbose=0)
    return told_of(history), model.get_layer("top").get_weights()
