"""TensorFlow's guide "Introduction to modules, layers, and models"."""

import tempfile

import numpy as np


def _dense_module(tf):
    class Dense(tf.Module):
        def __init__(self, in_features, out_features, name=None):
            super().__init__(name=name)
            values = np.sin(np.arange(in_features * out_features, dtype=np.float32))
            self.w = tf.Variable(values.reshape(in_features, out_features), name="w")
            self.b = tf.Variable(tf.zeros([out_features]), name="b")

        def __call__(self, x):
            return tf.nn.relu(tf.matmul(x, self.w) + self.b)

    return Dense


def _sequential(tf):
    dense = _dense_module(tf)

    class SequentialModule(tf.Module):
        def __init__(self, name=None):
            super().__init__(name=name)
            self.dense_1 = dense(in_features=3, out_features=3)
            self.dense_2 = dense(in_features=3, out_features=2)

        def __call__(self, x):
            return self.dense_2(self.dense_1(x))

    return SequentialModule(name="the_model")


def a_simple_module(tf):
    class Simple(tf.Module):
        def __init__(self, name=None):
            super().__init__(name=name)
            self.a_variable = tf.Variable(5.0, name="train_me")
            self.another = tf.Variable(5.0, trainable=False, name="do_not_train_me")

        def __call__(self, x):
            return self.a_variable * x + self.another

    module = Simple(name="simple")
    return [
        module(tf.constant(5.0)),
        [each.name for each in module.trainable_variables],
        [each.name for each in module.variables],
        module.name,
    ]


def modules_in_modules(tf):
    model = _sequential(tf)
    return {
        "value": model(tf.constant([[2.0, 2.0, 2.0]])),
        "submodules": [type(each).__name__ for each in model.submodules],
        "variables": [tuple(each.shape) for each in model.variables],
    }


def weights_that_wait_for_the_input(tf):
    class Flexible(tf.Module):
        def __init__(self, out_features, name=None):
            super().__init__(name=name)
            self.is_built, self.out_features = False, out_features

        def __call__(self, x):
            if not self.is_built:
                self.w = tf.Variable(tf.ones([x.shape[-1], self.out_features]), name="w")
                self.b = tf.Variable(tf.zeros([self.out_features]), name="b")
                self.is_built = True
            return tf.matmul(x, self.w) + self.b

    module = Flexible(3)
    return [module(tf.constant([[2.0, 2.0]])), [tuple(each.shape) for each in module.variables]]


def saved_and_restored(tf):
    model, other = _sequential(tf), _sequential(tf)
    x = tf.constant([[2.0, 1.0, 0.5]])
    model.dense_1.w.assign(model.dense_1.w * 2.0)
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(model=model).write(f"{folder}/checkpoint")
        tf.train.Checkpoint(model=other).restore(path)
    return [model(x), other(x)]


def recorded(tf):
    dense, traced = _dense_module(tf), []

    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.layers = [dense(3, 3), dense(3, 2)]

        @tf.function
        def __call__(self, x):
            traced.append(1)
            for layer in self.layers:
                x = layer(x)
            return x

    model = Model()
    values = [model(tf.constant([[2.0, 2.0, 2.0]])), model(tf.constant([[[2.0, 1.0, 2.0]] * 2]))]
    model.layers[1].b.assign([1.0, 1.0])
    return [values, model(tf.constant([[2.0, 2.0, 2.0]])), len(traced), len(model.variables)]


def scopes_of_names(tf):
    class Scoped(tf.Module):
        @tf.Module.with_name_scope
        def __call__(self, x):
            if not hasattr(self, "w"):
                self.w = tf.Variable(tf.ones([x.shape[1], 2]), name="w")
            return tf.matmul(x, self.w)

    module = Scoped(name="scoped")
    return [module(tf.ones([1, 3])), module.w.name]


def keras_layers(tf):
    class Flexible(tf.keras.layers.Layer):
        def __init__(self, out_features, **kwargs):
            super().__init__(**kwargs)
            self.out_features = out_features

        def build(self, input_shape):
            self.w = self.add_weight(shape=(input_shape[-1], self.out_features), initializer="ones")
            self.b = self.add_weight(shape=(self.out_features,), initializer="zeros")

        def call(self, inputs):
            return tf.matmul(inputs, self.w) + self.b

    class Model(tf.keras.Model):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.dense_1, self.dense_2 = Flexible(3), Flexible(2)

        def call(self, x):
            return self.dense_2(self.dense_1(x))

    model = Model(name="the_model")
    value = model(tf.constant([[2.0, 2.0, 2.0]]))
    return [value, len(model.variables), [tuple(each.shape) for each in model.trainable_variables]]
