"""TensorFlow's tutorials on images: a CNN, classification, transfer, segmentation, explanation."""

import numpy as np
from known import draw_weights, numbers, pictures, shadows, told_of

BATCH = 8


def _drawn(count, channels=3):
    images, labels = pictures(count, size=8, channels=channels)
    return images.astype(np.float32) / 255, labels


def a_convolutional_network(tf):
    from tensorflow.keras import datasets, layers, models  # noqa: F401 (as the tutorial has it)

    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = models.Sequential()
        model.add(layers.Conv2D(6, (3, 3), activation="relu", input_shape=(12, 12, 3)))
        model.add(layers.MaxPooling2D((2, 2)))
        model.add(layers.Conv2D(8, (3, 3), activation="relu"))
        model.add(layers.MaxPooling2D((2, 2)))
        lines = []
        model.summary(line_length=80, print_fn=lambda line, line_break=False: lines.append(line))
        assert "(None, 1, 1, 8)" in "\n".join(lines)
        model.add(layers.Flatten())
        model.add(layers.Dense(8, activation="relu"))
        model.add(layers.Dense(4))
        model.compile(
            optimizer=tf.keras.optimizers.SGD(0.05, momentum=0.9),
            loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
        )
    draw_weights(model)
    train_images, train_labels = pictures(30, channels=3)
    test_images, test_labels = pictures(13, channels=3)
    train_images, test_images = train_images / 255.0, test_images / 255.0
    history = model.fit(
        *(train_images, train_labels[:, None]),
        epochs=2,
        batch_size=BATCH,
        shuffle=False,
        validation_data=(test_images, test_labels[:, None]),
        verbose=0,
    )
    score = model.evaluate(test_images, test_labels[:, None], batch_size=BATCH, verbose=0)
    return (
        told_of(history),
        model.count_params(),
        np.float32(score),
        shadows(model.get_weights()),
    )


def classification_of_scaled_images(tf):
    from tensorflow import keras
    from tensorflow.keras import layers
    from tensorflow.keras.models import Sequential

    images, labels = pictures(30, size=8, channels=3)
    train_ds = tf.data.Dataset.from_tensor_slices((images, labels)).batch(BATCH)
    val_ds = tf.data.Dataset.from_tensor_slices(pictures(11, size=8, channels=3)).batch(BATCH)
    train_ds = train_ds.cache().prefetch(buffer_size=tf.data.AUTOTUNE)
    normalization_layer = layers.Rescaling(1.0 / 255)
    normalized_ds = train_ds.map(lambda x, y: (normalization_layer(x), y))
    first_image = next(iter(normalized_ds))[0][0]
    with tf.distribute.MirroredStrategy().scope():
        model = Sequential(
            [
                layers.Rescaling(1.0 / 255, input_shape=(8, 8, 3)),
                layers.Conv2D(4, 3, padding="same", activation="relu"),
                layers.MaxPooling2D(),
                layers.Conv2D(6, 3, padding="same", activation="relu"),
                layers.MaxPooling2D(),
                layers.Dropout(0.0),
                layers.Flatten(),
                layers.Dense(8, activation="relu"),
                layers.Dense(4, name="outputs"),
            ]
        )
        model.compile(
            optimizer=keras.optimizers.SGD(0.05),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
        )
    draw_weights(model)
    history = model.fit(train_ds, validation_data=val_ds, epochs=2, verbose=0)
    img_array = tf.expand_dims(images[0], 0)
    score = tf.nn.softmax(model.predict(img_array, verbose=0)[0])
    return first_image, told_of(history), score, int(np.argmax(score)), shadows(model.get_weights())


def a_frozen_base_and_a_new_top(tf):
    layers = tf.keras.layers
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        base_model = tf.keras.Sequential(
            [
                layers.Input(shape=(8, 8, 3)),
                layers.Conv2D(6, 3, strides=2, use_bias=False, name="first"),
                layers.BatchNormalization(name="first_bn"),
                layers.ReLU(6.0),
                layers.DepthwiseConv2D(3, padding="same", use_bias=False, name="second"),
                layers.BatchNormalization(name="second_bn"),
                layers.ReLU(6.0),
                layers.SeparableConv2D(8, 2, name="third"),
            ],
            name="base",
        )
        draw_weights(base_model)
        base_model.trainable = False
        inputs = tf.keras.Input(shape=(8, 8, 3))
        x = base_model(inputs, training=False)
        x = layers.GlobalAveragePooling2D()(x)
        outputs = layers.Dense(1, activation="sigmoid")(x)
        model = tf.keras.Model(inputs, outputs)
        draw_weights(model.layers[-1])
    images, labels = _drawn(22)
    dataset = tf.data.Dataset.from_tensor_slices((images, labels % 2)).batch(BATCH)

    def fitted(rate):
        with strategy.scope():
            model.compile(
                optimizer=tf.keras.optimizers.SGD(learning_rate=rate),
                loss=tf.keras.losses.BinaryCrossentropy(),
                metrics=[tf.keras.metrics.BinaryAccuracy(threshold=0.5, name="accuracy")],
            )
        counts = [len(model.trainable_variables), len(model.non_trainable_variables)]
        return (
            counts,
            told_of(model.fit(dataset, epochs=2, verbose=0)),
            shadows(model.get_weights()),
        )

    frozen = fitted(0.1)
    base_model.trainable = True
    for layer in base_model.layers[:3]:
        layer.trainable = False
    return frozen, fitted(0.01)


def segmentation_by_a_small_u_net(tf):
    layers = tf.keras.layers

    def upsample(filters, size):
        result = tf.keras.Sequential()
        result.add(layers.Conv2DTranspose(filters, size, strides=2, padding="same", use_bias=False))
        result.add(layers.BatchNormalization())
        result.add(layers.ReLU())
        return result

    with tf.distribute.MirroredStrategy().scope():
        inputs = layers.Input(shape=[8, 8, 3])
        a = layers.Conv2D(4, 3, strides=2, padding="same", activation="relu", name="a")(inputs)
        b = layers.Conv2D(6, 3, strides=2, padding="same", activation="relu", name="b")(a)
        base = tf.keras.Model(inputs, [a, b])
        whole = layers.Input(shape=[8, 8, 3])
        *skips, x = base(whole)
        x = upsample(5, 3)(x)
        x = layers.Concatenate()([x, skips[0]])
        x = layers.Conv2DTranspose(filters=3, kernel_size=3, strides=2, padding="same")(x)
        model = tf.keras.Model(inputs=whole, outputs=x)
        model.compile(
            optimizer=tf.keras.optimizers.SGD(0.1),
            loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
        )
    draw_weights(model)
    images, _ = _drawn(20)
    masks = (images[..., :1] > 0.4).astype(np.uint8) + (images[..., 1:2] > 0.6)
    weights = np.array([1.0, 2.0, 1.5], np.float32)
    weights = weights / weights.sum()
    sample_weights = tf.gather(weights, indices=tf.cast(masks, tf.int32))
    dataset = tf.data.Dataset.from_tensor_slices((images, masks, sample_weights)).batch(BATCH)
    history = model.fit(dataset, epochs=2, verbose=0)
    mask = tf.math.argmax(model.predict(images[:3], verbose=0), axis=-1)[..., tf.newaxis]
    return told_of(history), mask, shadows(model.get_weights())


def _trained(tf):
    layers = tf.keras.layers
    inputs = tf.keras.Input((8, 8, 3))
    x = layers.Conv2D(6, 3, padding="same", activation="relu", name="features")(inputs)
    x = layers.AveragePooling2D(2, name="pooled")(x)
    x = layers.Conv2D(6, 3, activation="relu", name="last_conv")(x)
    x = layers.GlobalMaxPooling2D()(x)
    outputs = layers.Dense(4, activation="softmax")(x)
    return draw_weights(tf.keras.Model(inputs, outputs))


def an_adversarial_image(tf):
    with tf.distribute.MirroredStrategy().scope():
        model = _trained(tf)
    model.trainable = False
    images, labels = _drawn(2)
    image = tf.convert_to_tensor(images[:1])
    label = tf.one_hot(labels[:1], 4)
    loss_object = tf.keras.losses.CategoricalCrossentropy()
    with tf.GradientTape() as tape:
        tape.watch(image)
        prediction = model(image)
        loss = loss_object(label, prediction)
    gradient = tape.gradient(loss, image)
    changed = tf.clip_by_value(image + 0.1 * tf.sign(gradient), 0, 1)
    return prediction, gradient, model.predict(changed, verbose=0)


def where_a_class_is_seen(tf):
    """Grad-CAM, and gradients along a line from a black image."""
    with tf.distribute.MirroredStrategy().scope():
        model = _trained(tf)
    images = tf.constant(_drawn(3)[0])
    last_conv = model.get_layer("last_conv")
    grad_model = tf.keras.models.Model(model.inputs, [last_conv.output, model.output])
    with tf.GradientTape() as tape:
        last_conv_layer_output, predictions = grad_model(images)
        index = tf.argmax(predictions[0])
        class_channel = predictions[:, index]
    gradients = tape.gradient(class_channel, last_conv_layer_output)
    pooled = tf.reduce_mean(gradients, axis=(0, 1, 2))
    heatmap = last_conv_layer_output[0] @ pooled[..., tf.newaxis]
    heatmap = tf.squeeze(heatmap)
    heatmap = tf.maximum(heatmap, 0) / tf.math.reduce_max(heatmap)

    alphas = tf.linspace(start=0.0, stop=1.0, num=6)[:, tf.newaxis, tf.newaxis, tf.newaxis]
    baseline = tf.zeros(shape=(8, 8, 3))
    path = baseline[tf.newaxis] + alphas * (images[:1] - baseline)
    with tf.GradientTape() as tape:
        tape.watch(path)
        target = model(path)[:, 0]
    slopes = tape.gradient(target, path)
    attributions = tf.reduce_mean((slopes[:-1] + slopes[1:]) / 2.0, axis=0) * images[0]
    return gradients, heatmap, attributions


def an_image_that_excites_a_layer(tf):
    """Deep dream, and the Gram matrices of the styles of images."""
    with tf.distribute.MirroredStrategy().scope():
        base_model = _trained(tf)
        layers = [base_model.get_layer(name).output for name in ("features", "last_conv")]
        dream_model = tf.keras.Model(inputs=base_model.input, outputs=layers)

    @tf.function(
        input_signature=(
            tf.TensorSpec(shape=[None, None, 3], dtype=tf.float32),
            tf.TensorSpec(shape=[], dtype=tf.float32),
        )
    )
    def ascend(img, step_size):
        with tf.GradientTape() as tape:
            tape.watch(img)
            activations = dream_model(tf.expand_dims(img, axis=0))
            loss = tf.reduce_sum([tf.math.reduce_mean(each) for each in activations])
        gradients = tape.gradient(loss, img)
        gradients /= tf.math.reduce_std(gradients) + 1e-8
        return loss, tf.clip_by_value(img + gradients * step_size, -1, 1)

    img, losses = tf.constant(_drawn(4)[0][0]), []
    for _ in range(3):
        loss, img = ascend(img, tf.constant(0.01))
        losses.append(loss)
    features = dream_model(img[tf.newaxis])[0]
    gram = tf.linalg.einsum("bijc,bijd->bcd", features, features)
    high = features[:, :, 1:, :] - features[:, :, :-1, :]
    return losses, img, gram, high, tf.image.total_variation(img[tf.newaxis])


def a_residual_block_of_ones_own(tf):
    """The block of "Custom layers"."""

    class ResnetIdentityBlock(tf.keras.Model):
        def __init__(self, kernel_size, filters):
            super().__init__(name="")
            filters1, filters2, filters3 = filters
            self.conv2a = tf.keras.layers.Conv2D(filters1, (1, 1))
            self.bn2a = tf.keras.layers.BatchNormalization()
            self.conv2b = tf.keras.layers.Conv2D(filters2, kernel_size, padding="same")
            self.bn2b = tf.keras.layers.BatchNormalization()
            self.conv2c = tf.keras.layers.Conv2D(filters3, (1, 1))
            self.bn2c = tf.keras.layers.BatchNormalization()

        def call(self, input_tensor, training=False):
            x = self.conv2a(input_tensor)
            x = self.bn2a(x, training=training)
            x = tf.nn.relu(x)
            x = self.conv2b(x)
            x = self.bn2b(x, training=training)
            x = tf.nn.relu(x)
            x = self.conv2c(x)
            x = self.bn2c(x, training=training)
            x += input_tensor
            return tf.nn.relu(x)

    with tf.distribute.MirroredStrategy().scope():
        block = ResnetIdentityBlock(1, [1, 2, 3])
        block(tf.zeros([1, 2, 3, 3]))
    draw_weights(block)
    names = [type(layer).__name__ for layer in block.layers]
    rows = numbers(4, 2, 3, 3)
    trained = block(rows, training=True)
    return names, len(block.variables), trained, block(rows), shadows(block.get_weights())
