"""Keras' examples "Knowledge Distillation", imbalanced data, and an optimizer of one's own."""

import numpy as np
from known import labels, numbers, set_weights, told_of

X, Y = numbers(22, 6), labels(22, 4)


def _network(tf, units):
    layers = [tf.keras.layers.Dense(units, activation="relu"), tf.keras.layers.Dense(4)]
    return set_weights(tf.keras.Sequential([tf.keras.Input((6,)), *layers]))


def a_student_and_its_teacher(tf):
    softmax = tf.keras.ops.softmax

    class Distiller(tf.keras.Model):
        def __init__(self, student, teacher):
            super().__init__()
            self.student, self.teacher = student, teacher

        def compile(self, student_loss, distillation_loss, share, temperature, **options):
            super().compile(**options)
            self.student_loss, self.distillation_loss = student_loss, distillation_loss
            self.share, self.temperature = share, temperature

        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, **_):
            soft = [softmax(each / self.temperature) for each in (self.teacher(x), y_pred)]
            loss = self.distillation_loss(*soft) * self.temperature**2
            return self.share * self.student_loss(y, y_pred) + (1.0 - self.share) * loss

        def call(self, inputs):
            return self.student(inputs)

    teacher, student = _network(tf, 16), _network(tf, 4)
    teacher.trainable = False
    model = Distiller(student, teacher)
    losses = tf.keras.losses
    model.compile(
        optimizer=tf.keras.optimizers.SGD(0.1),
        metrics=[tf.keras.metrics.SparseCategoricalAccuracy()],
        student_loss=losses.SparseCategoricalCrossentropy(from_logits=True),
        distillation_loss=losses.MeanSquaredError(),
        share=0.1,
        temperature=2.0,
    )
    history = model.fit(X, Y, batch_size=8, epochs=2, shuffle=False, verbose=0)
    return told_of(history), student.get_weights(), teacher.get_weights()


def few_of_one_kind(tf):
    metrics, kinds = tf.keras.metrics, (np.arange(22) % 7 == 0).astype(np.uint8)[:, np.newaxis]
    layers = [tf.keras.layers.Dense(4, "relu"), tf.keras.layers.Dense(1, "sigmoid")]
    model = set_weights(tf.keras.Sequential([tf.keras.Input((6,)), *layers]))
    counts = [metrics.TruePositives(name="tp"), metrics.FalseNegatives(name="fn")]
    shares = [metrics.Precision(name="precision"), metrics.Recall(name="recall")]
    model.compile(tf.keras.optimizers.SGD(0.1), "binary_crossentropy", metrics=counts + shares)
    weights = {0: 1 / 18, 1: 1 / 4}
    options = {"class_weight": weights, "validation_data": (X[:9], kinds[:9])}
    history = model.fit(X, kinds, batch_size=11, shuffle=False, verbose=0, **options)
    return told_of(history), model.get_weights()


def an_optimizer_of_ones_own(tf):
    ops = tf.keras.ops

    class Momentum(tf.keras.optimizers.Optimizer):
        def __init__(self, learning_rate=0.1, momentum=0.9, **kwargs):
            super().__init__(learning_rate=learning_rate, **kwargs)
            self.momentum = momentum

        def build(self, variables):
            if self.built:
                return
            super().build(variables)
            self.moving = [self.add_variable_from_reference(each, "m") for each in variables]

        def update_step(self, gradient, variable, learning_rate):
            moving = self.moving[self._get_variable_index(variable)]
            rate = ops.cast(learning_rate, variable.dtype)
            self.assign(moving, self.momentum * moving + gradient)
            self.assign_sub(variable, rate * moving)

        def get_config(self):
            return {**super().get_config(), "momentum": self.momentum}

    model = _network(tf, 5)
    loss = tf.keras.losses.get("sparse_categorical_crossentropy")
    model.compile(Momentum(0.05, name="own"), lambda y, p: loss(y, ops.softmax(p)))
    history = model.fit(X, Y, batch_size=8, epochs=2, shuffle=False, verbose=0)
    config = model.optimizer.get_config()
    told = {name: config[name] for name in ("name", "momentum")}
    return told_of(history), model.get_weights(), told
