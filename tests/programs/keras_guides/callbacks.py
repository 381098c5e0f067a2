"""Keras' guide "Writing your own callbacks"."""

import numpy as np

X = np.linspace(-1, 1, 40, dtype=np.float32)[:, np.newaxis]
Y = 3 * X + 1


def _model(tf, rate=0.1):
    model = tf.keras.Sequential()
    model.add(tf.keras.Input((1,)))
    model.add(tf.keras.layers.Dense(1, kernel_initializer="zeros"))
    optimizer = tf.keras.optimizers.SGD(learning_rate=rate)
    model.compile(optimizer=optimizer, loss="mean_squared_error", metrics=["mse"])
    return model


def every_hook(tf):
    said = []

    class Says(tf.keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            said.append(["train begins", list(logs), sorted(self.params)])

        def on_train_end(self, logs=None):
            said.append(["train ends", list(logs)])

        def on_epoch_begin(self, epoch, logs=None):
            said.append(["epoch begins", epoch, list(logs)])

        def on_epoch_end(self, epoch, logs=None):
            said.append(["epoch ends", epoch, list(logs)])

        def on_train_batch_begin(self, batch, logs=None):
            said.append(["batch begins", batch, list(logs)])

        def on_train_batch_end(self, batch, logs=None):
            said.append(["batch ends", batch, list(logs)])

        def on_test_begin(self, logs=None):
            said.append(["test begins", list(logs)])

        def on_test_batch_end(self, batch, logs=None):
            said.append(["test batch ends", batch, list(logs)])

        def on_test_end(self, logs=None):
            said.append(["test ends", list(logs)])

        def on_predict_batch_end(self, batch, logs=None):
            said.append(["prediction", batch, list(logs), logs["outputs"]])

    model = _model(tf)
    model.fit(X, Y, batch_size=20, epochs=1, verbose=0, validation_split=0.5, callbacks=[Says()])
    model.evaluate(X, Y, batch_size=32, verbose=0, callbacks=[Says()])
    model.predict(X[:3] * 0.0, batch_size=2, verbose=0, callbacks=[Says()])
    return said[:-2], [shape[-1].shape for shape in said[-2:]]


def losses_of_batches(tf):
    seen = []

    class Looks(tf.keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            seen.append(np.float32(logs["loss"]))

        def on_epoch_end(self, epoch, logs=None):
            seen.append([np.float32(logs["loss"]), np.float32(logs["mse"])])

    _model(tf).fit(X, Y, batch_size=16, epochs=2, shuffle=False, verbose=0, callbacks=[Looks()])
    return seen


def stopping_at_the_least_loss(tf):
    class Stops(tf.keras.callbacks.Callback):
        def __init__(self, patience=0):
            super().__init__()
            self.patience = patience
            self.best_weights = None

        def on_train_begin(self, logs=None):
            self.wait, self.stopped_epoch, self.best = 0, 0, np.inf

        def on_epoch_end(self, epoch, logs=None):
            current = logs.get("loss")
            if np.less(current, self.best):
                self.best, self.wait = current, 0
                self.best_weights = self.model.get_weights()
            else:
                self.wait += 1
                if self.wait >= self.patience:
                    self.stopped_epoch = epoch
                    self.model.stop_training = True
                    self.model.set_weights(self.best_weights)

    model, stops = _model(tf, 1.2), Stops(patience=2)
    history = model.fit(X, Y, batch_size=40, epochs=30, verbose=0, callbacks=[stops])
    return history.epoch, stops.stopped_epoch, np.float32(stops.best), model.get_weights()


def a_schedule_of_learning_rates(tf):
    table = [(1, 0.05), (2, 0.01), (4, 0.005)]
    rates = []

    class Schedules(tf.keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if not hasattr(self.model.optimizer, "learning_rate"):
                raise ValueError('Optimizer must have a "learning_rate" attribute.')
            for start, rate in table:
                if start == epoch:
                    self.model.optimizer.learning_rate = rate
            rates.append(np.float32(self.model.optimizer.learning_rate))

    model = _model(tf)
    model.fit(X, Y, batch_size=20, epochs=6, shuffle=False, verbose=0, callbacks=[Schedules()])
    return rates, model.get_weights()


def several_that_keras_has(tf):
    callbacks = tf.keras.callbacks
    seen = []
    model = _model(tf, 0.9)
    history = model.fit(
        X,
        Y,
        batch_size=20,
        epochs=12,
        shuffle=False,
        verbose=0,
        validation_data=(X[::3], Y[::3]),
        callbacks=[
            callbacks.ReduceLROnPlateau(monitor="loss", factor=0.5, patience=1),
            callbacks.EarlyStopping(monitor="val_loss", patience=3, restore_best_weights=True),
            callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: seen.append(sorted(logs))),
        ],
    )
    values = {name: np.float32(each) for name, each in history.history.items()}
    return seen, history.epoch, values, model.get_weights()
