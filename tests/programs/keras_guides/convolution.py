"""What Keras' guides and examples show by convolution."""

import numpy as np
from known import draw_weights, labels, numbers, pictures, shadows, told_of


def _images(count, channels=3, size=8):
    return pictures(count, size, channels)[0].astype(np.float32) / 255


X, Y = _images(22), pictures(22, 8, 3)[1]


def _fitted(tf, model, x=X, y=Y, **options):
    options = {"batch_size": 8, **options}
    history = model.fit(x, y, epochs=2, shuffle=False, verbose=0, **options)
    return told_of(history), shadows(model.get_weights())


def _sparse(tf, model, rate=0.05):
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.SGD(rate), loss, metrics=["acc"])
    return model


def features_of_a_sequential_model(tf):
    keras, layers = tf.keras, tf.keras.layers
    model = keras.Sequential()
    model.add(keras.Input(shape=(20, 20, 3)))
    model.add(layers.Conv2D(4, 5, strides=2, activation="relu"))
    model.add(layers.Conv2D(4, 3, activation="relu", name="my_intermediate_layer"))
    model.add(layers.MaxPooling2D(3))
    before = list(model.output_shape)
    model.add(layers.Conv2D(6, 2, activation="relu"))
    model.add(layers.GlobalMaxPooling2D())
    draw_weights(model)
    x = _images(2, size=20)
    outputs = [layer.output for layer in model.layers]
    features = keras.Model(inputs=model.inputs, outputs=outputs)(x)
    place = model.get_layer(name="my_intermediate_layer").output
    one = keras.Model(inputs=model.inputs, outputs=place)(x)
    return before, [list(each.shape) for each in features], features[-1], shadows([one])


def an_encoder_and_a_decoder(tf):
    keras, layers = tf.keras, tf.keras.layers
    encoder_input = keras.Input(shape=(12, 12, 1), name="img")
    x = layers.Conv2D(4, 3, activation="relu")(encoder_input)
    x = layers.Conv2D(6, 3, activation="relu")(x)
    x = layers.MaxPooling2D(2)(x)
    x = layers.Conv2D(9, 2, activation="relu")(x)
    encoder_output = layers.GlobalMaxPooling2D()(x)
    encoder = keras.Model(encoder_input, encoder_output, name="encoder")
    decoder_input = keras.Input(shape=(9,), name="encoded_img")
    x = layers.Reshape((3, 3, 1))(decoder_input)
    x = layers.Conv2DTranspose(4, 3, activation="relu")(x)
    x = layers.UpSampling2D(2)(x)
    x = layers.Conv2DTranspose(1, 3, activation="relu")(x)
    decoder = keras.Model(decoder_input, x, name="decoder")
    autoencoder_input = keras.Input(shape=(12, 12, 1), name="img")
    decoded = decoder(encoder(autoencoder_input))
    autoencoder = draw_weights(keras.Model(autoencoder_input, decoded, name="autoencoder"))
    autoencoder.compile(keras.optimizers.SGD(0.1), keras.losses.MeanAbsoluteError())
    images = _images(22, 1, 12)
    return _fitted(tf, autoencoder, images, images), encoder.predict(images[:3], verbose=0)


def a_toy_residual_network(tf):
    keras, layers = tf.keras, tf.keras.layers
    inputs = keras.Input(shape=(12, 12, 3), name="img")
    x = layers.Conv2D(4, 3, activation="relu")(inputs)
    x = layers.Conv2D(6, 3, activation="relu")(x)
    block_1_output = layers.MaxPooling2D(2)(x)
    x = layers.Conv2D(6, 3, activation="relu", padding="same")(block_1_output)
    x = layers.Conv2D(6, 3, activation="relu", padding="same")(x)
    block_2_output = layers.add([x, block_1_output])
    x = layers.Conv2D(6, 3, activation="relu")(block_2_output)
    x = layers.GlobalAveragePooling2D()(x)
    x = layers.Dense(8, activation="relu")(x)
    x = layers.Dropout(0.0)(x)
    model = draw_weights(keras.Model(inputs, layers.Dense(4)(x), name="toy_resnet"))
    model.compile(
        optimizer=keras.optimizers.RMSprop(1e-3),
        loss=keras.losses.CategoricalCrossentropy(from_logits=True),
        metrics=["acc"],
    )
    rows = keras.utils.to_categorical(Y, 4)
    return _fitted(tf, model, _images(22, size=12), rows, validation_split=0.2)


def images_and_series_in_one_model(tf):
    keras, layers = tf.keras, tf.keras.layers
    image_input = keras.Input(shape=(8, 8, 3), name="img_input")
    timeseries_input = keras.Input(shape=(None, 5), name="ts_input")
    x1 = layers.Conv2D(3, 3)(image_input)
    x1 = layers.GlobalMaxPooling2D()(x1)
    x2 = layers.Conv1D(3, 3)(timeseries_input)
    x2 = layers.GlobalMaxPooling1D()(x2)
    x = layers.concatenate([x1, x2])
    outputs = [layers.Dense(1, name="score_output")(x), layers.Dense(4, name="class_output")(x)]
    model = draw_weights(keras.Model(inputs=[image_input, timeseries_input], outputs=outputs))
    model.compile(
        optimizer=keras.optimizers.SGD(1e-2),
        loss={
            "score_output": keras.losses.MeanSquaredError(),
            "class_output": keras.losses.CategoricalCrossentropy(from_logits=True),
        },
        metrics={"score_output": [keras.metrics.MeanAbsolutePercentageError()]},
        loss_weights={"score_output": 2.0, "class_output": 1.0},
    )
    inputs = {"img_input": X, "ts_input": numbers(22, 6, 5)}
    targets = {"score_output": 2.0 + numbers(22, 1), "class_output": numbers(22, 4) ** 2}
    return _fitted(tf, model, inputs, targets, batch_size=11)


def a_convolution_of_ones_own(tf):
    keras, ops = tf.keras, tf.keras.ops

    class Masked(keras.layers.Layer):
        """Sees the pixels above and to the left, as those of PixelCNN do."""

        def __init__(self, mask_type, **kwargs):
            super().__init__()
            self.mask_type = mask_type
            self.conv = keras.layers.Conv2D(**kwargs)

        def build(self, input_shape):
            self.conv.build(input_shape)
            self.mask = np.zeros(self.conv.kernel.shape, np.float32)
            self.mask[: self.mask.shape[0] // 2, ...] = 1.0
            self.mask[self.mask.shape[0] // 2, : self.mask.shape[1] // 2, ...] = 1.0
            if self.mask_type == "B":
                self.mask[self.mask.shape[0] // 2, self.mask.shape[1] // 2, ...] = 1.0

        def call(self, inputs):
            kernel = self.conv.kernel * self.mask
            return ops.conv(inputs, kernel, padding="same") + self.conv.bias

    class Scaled(keras.layers.Conv2D):
        def call(self, inputs):
            return 0.5 * super().call(inputs)

    inputs = keras.Input((8, 8, 3))
    x = Masked("A", filters=4, kernel_size=5)(inputs)
    x = keras.layers.ReLU()(x)
    x = keras.layers.add([x, Masked("B", filters=4, kernel_size=3)(x)])
    x = Scaled(1, 1, activation="sigmoid")(x)
    model = draw_weights(keras.Model(inputs, x))
    model.compile(keras.optimizers.SGD(0.5), "binary_crossentropy")
    return _fitted(tf, model, X, X[..., :1])


def a_frozen_base_of_separable_convolutions(tf):
    keras, layers = tf.keras, tf.keras.layers
    base_model = keras.Sequential(
        [
            keras.Input((8, 8, 3)),
            layers.SeparableConv2D(6, 3, padding="same", use_bias=False),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.MaxPooling2D(3, strides=2, padding="same"),
            layers.DepthwiseConv2D(3, depth_multiplier=2, activation="relu"),
        ]
    )
    draw_weights(base_model)
    base_model.trainable = False
    inputs = keras.Input(shape=(8, 8, 3))
    x = layers.Rescaling(scale=1 / 0.5, offset=-1)(inputs)
    x = base_model(x, training=False)
    x = layers.GlobalAveragePooling2D()(x)
    top = layers.Dense(4)
    model = keras.Model(inputs, top(x))
    draw_weights(top)
    frozen = _fitted(tf, _sparse(tf, model))
    base_model.trainable = True  # But for batch normalization: the base runs as in inference.
    return frozen, _fitted(tf, _sparse(tf, model, 1e-2)), len(model.trainable_weights)


def a_network_for_every_pixel(tf):
    """Of "Image segmentation with a U-Net-like architecture"."""
    keras, layers = tf.keras, tf.keras.layers
    inputs = keras.Input(shape=(8, 8, 3))
    x = layers.Conv2D(4, 3, strides=2, padding="same")(inputs)
    x = layers.BatchNormalization()(x)
    x = layers.Activation("relu")(x)
    previous_block_activation = x
    x = layers.SeparableConv2D(6, 3, padding="same")(x)
    x = layers.BatchNormalization()(x)
    x = layers.MaxPooling2D(3, strides=2, padding="same")(x)
    residual = layers.Conv2D(6, 1, strides=2, padding="same")(previous_block_activation)
    x = layers.add([x, residual])
    previous_block_activation = x
    for filters in (6, 4):
        x = layers.Activation("relu")(x)
        x = layers.Conv2DTranspose(filters, 3, padding="same")(x)
        x = layers.BatchNormalization()(x)
        x = layers.UpSampling2D(2)(x)
        residual = layers.UpSampling2D(2)(previous_block_activation)
        residual = layers.Conv2D(filters, 1, padding="same")(residual)
        x = layers.add([x, residual])
        previous_block_activation = x
    outputs = layers.Conv2D(3, 3, activation="softmax", padding="same")(x)
    model = draw_weights(keras.Model(inputs, outputs))
    model.compile(keras.optimizers.SGD(0.1), loss="sparse_categorical_crossentropy")
    masks = (X[..., :1] > 0.4).astype("uint8") + (X[..., 1:2] > 0.6)
    return _fitted(tf, model, X, masks)


def pixels_out_of_channels(tf):
    """Of "Image Super-Resolution using an Efficient Sub-Pixel CNN"."""
    keras, layers = tf.keras, tf.keras.layers
    conv_args = {"activation": "relu", "padding": "same"}
    inputs = keras.Input(shape=(None, None, 1))
    x = layers.Conv2D(6, 5, **conv_args)(inputs)
    x = layers.Conv2D(4, 3, **conv_args)(x)
    x = layers.Conv2D(4, 3, **conv_args)(x)

    class DepthToSpace(layers.Layer):
        def call(self, inputs):
            return tf.nn.depth_to_space(inputs, 2)

        def compute_output_shape(self, input_shape):
            return (input_shape[0], None, None, input_shape[-1] // 4)

    model = draw_weights(keras.Model(inputs, DepthToSpace()(x)))
    model.compile(keras.optimizers.SGD(0.1), keras.losses.MeanSquaredError())
    small, large = _images(22, 1), _images(22, 1, 16)
    return _fitted(tf, model, small, large), model.predict(_images(1, 1, 3), verbose=0)


def mixing_by_depthwise_convolution(tf):
    """Of "Image classification with ConvMixer"."""
    keras, layers = tf.keras, tf.keras.layers

    def activation_block(x):
        x = layers.Activation("gelu")(x)
        return layers.BatchNormalization()(x)

    inputs = keras.Input((8, 8, 3))
    x = layers.Rescaling(scale=1.0 / 255)(inputs * 255)
    x = activation_block(layers.Conv2D(6, kernel_size=2, strides=2)(x))
    for _ in range(2):
        x0 = x
        x = layers.DepthwiseConv2D(kernel_size=3, padding="same")(x)
        x = layers.Add()([activation_block(x), x0])
        x = activation_block(layers.Conv2D(6, kernel_size=1)(x))
    x = layers.GlobalAvgPool2D()(x)
    model = draw_weights(keras.Model(inputs, layers.Dense(4)(x)))
    return _fitted(tf, _sparse(tf, model), class_weight={0: 1.0, 1: 2.0, 2: 0.5, 3: 1.0})


def patches_as_words(tf):
    """Of "Image classification with Vision Transformer"."""
    keras, layers, ops = tf.keras, tf.keras.layers, tf.keras.ops

    class Patches(layers.Layer):
        def __init__(self, patch_size):
            super().__init__()
            self.patch_size = patch_size

        def call(self, images):
            batch_size, height, width, channels = ops.shape(images)
            count = (height // self.patch_size) * (width // self.patch_size)
            patches = ops.image.extract_patches(images, size=self.patch_size)
            return ops.reshape(patches, (batch_size, count, self.patch_size**2 * channels))

    class PatchEncoder(layers.Layer):
        def __init__(self, num_patches, projection_dim):
            super().__init__()
            self.num_patches = num_patches
            self.projection = layers.Dense(units=projection_dim)
            self.position_embedding = layers.Embedding(num_patches, projection_dim)

        def call(self, patch):
            positions = ops.expand_dims(ops.arange(0, self.num_patches, 1), axis=0)
            return self.projection(patch) + self.position_embedding(positions)

    inputs = keras.Input((8, 8, 3))
    encoded = PatchEncoder(4, 6)(Patches(4)(inputs))
    x1 = layers.LayerNormalization(epsilon=1e-6)(encoded)
    attention_output = layers.MultiHeadAttention(num_heads=2, key_dim=6, dropout=0.0)(x1, x1)
    x2 = layers.Add()([attention_output, encoded])
    x3 = layers.LayerNormalization(epsilon=1e-6)(x2)
    x3 = layers.Dense(6, activation=keras.activations.gelu)(x3)
    features = layers.Flatten()(layers.Add()([x3, x2]))
    model = draw_weights(keras.Model(inputs=inputs, outputs=layers.Dense(4)(features)))
    return _fitted(tf, _sparse(tf, model))


def images_that_are_compared(tf):
    """Of "Image similarity estimation using a Siamese Network with a triplet loss"."""
    keras, layers = tf.keras, tf.keras.layers
    tower = [layers.Conv2D(4, 3, activation="tanh"), layers.AveragePooling2D((2, 2))]
    tower += [layers.Flatten(), layers.Dense(5)]
    embedding = keras.Sequential([keras.Input((8, 8, 3)), *tower], name="embedding")
    draw_weights(embedding)
    loss_tracker = keras.metrics.Mean(name="loss")

    class SiameseModel(keras.Model):
        def call(self, inputs):
            anchor, positive, negative = (embedding(each) for each in inputs)
            near = tf.reduce_sum(tf.square(anchor - positive), -1)
            return near, tf.reduce_sum(tf.square(anchor - negative), -1)

        def train_step(self, data):
            with tf.GradientTape() as tape:
                near, far = self(data)
                loss = tf.reduce_mean(tf.maximum(near - far + 0.5, 0.0))
            gradients = tape.gradient(loss, embedding.trainable_weights)
            self.optimizer.apply_gradients(zip(gradients, embedding.trainable_weights, strict=True))
            loss_tracker.update_state(loss)
            return {"loss": loss_tracker.result()}

        @property
        def metrics(self):
            return [loss_tracker]

    model = SiameseModel()
    model.compile(optimizer=keras.optimizers.SGD(0.02))
    triplets = tuple(_images(24)[place:][:22] for place in range(3))
    dataset = tf.data.Dataset.from_tensor_slices(triplets).batch(8)
    history = model.fit(dataset, epochs=2, verbose=0)
    return told_of(history), shadows(embedding.get_weights())


def a_generator_of_images(tf):
    """Of "Customizing what happens in fit()" and "DCGAN to generate face images"."""
    layers, keras = tf.keras.layers, tf.keras

    class GAN(keras.Model):
        def __init__(self, discriminator, generator, latent_dim):
            super().__init__()
            self.discriminator, self.generator = discriminator, generator
            self.latent_dim = latent_dim
            self.d_loss_tracker = keras.metrics.Mean(name="d_loss")
            self.g_loss_tracker = keras.metrics.Mean(name="g_loss")

        @property
        def metrics(self):
            return [self.d_loss_tracker, self.g_loss_tracker]

        def compile(self, d_optimizer, g_optimizer, loss_fn):
            super().compile()
            self.d_optimizer, self.g_optimizer = d_optimizer, g_optimizer
            self.loss_fn = loss_fn

        def train_step(self, real_images):
            if isinstance(real_images, tuple):
                real_images = real_images[0]
            batch_size = tf.shape(real_images)[0]
            # What the guide draws at random.
            latent = tf.sin(9.0 * real_images[:, 0, : self.latent_dim, 0])
            combined_images = tf.concat([self.generator(latent), real_images], axis=0)
            kinds = tf.concat([tf.ones((batch_size, 1)), tf.zeros((batch_size, 1))], axis=0)
            with tf.GradientTape() as tape:
                predictions = self.discriminator(combined_images)
                d_loss = self.loss_fn(kinds, predictions)
            grads = tape.gradient(d_loss, self.discriminator.trainable_weights)
            self.d_optimizer.apply(grads, self.discriminator.trainable_weights)
            misleading_labels = tf.zeros((batch_size, 1))
            with tf.GradientTape() as tape:
                predictions = self.discriminator(self.generator(-latent))
                g_loss = self.loss_fn(misleading_labels, predictions)
            grads = tape.gradient(g_loss, self.generator.trainable_weights)
            self.g_optimizer.apply(grads, self.generator.trainable_weights)
            self.d_loss_tracker.update_state(d_loss)
            self.g_loss_tracker.update_state(g_loss)
            return {
                "d_loss": self.d_loss_tracker.result(),
                "g_loss": self.g_loss_tracker.result(),
            }

    discriminator = keras.Sequential(
        [
            keras.Input(shape=(8, 8, 1)),
            layers.Conv2D(4, (3, 3), strides=(2, 2), padding="same"),
            layers.LeakyReLU(negative_slope=0.2),
            layers.Conv2D(6, (3, 3), strides=(2, 2), padding="same"),
            layers.LeakyReLU(negative_slope=0.2),
            layers.GlobalMaxPooling2D(),
            layers.Dense(1),
        ],
        name="discriminator",
    )
    generator = keras.Sequential(
        [
            keras.Input(shape=(4,)),
            layers.Dense(2 * 2 * 4),
            layers.LeakyReLU(negative_slope=0.2),
            layers.Reshape((2, 2, 4)),
            layers.Conv2DTranspose(4, (4, 4), strides=(2, 2), padding="same"),
            layers.LeakyReLU(negative_slope=0.2),
            layers.Conv2DTranspose(4, (4, 4), strides=(2, 2), padding="same"),
            layers.LeakyReLU(negative_slope=0.2),
            layers.Conv2D(1, (3, 3), padding="same", activation="sigmoid"),
        ],
        name="generator",
    )
    gan = GAN(draw_weights(discriminator), draw_weights(generator, seed=1), latent_dim=4)
    gan.compile(
        d_optimizer=keras.optimizers.SGD(learning_rate=0.1),
        g_optimizer=keras.optimizers.SGD(learning_rate=0.1),
        loss_fn=keras.losses.BinaryCrossentropy(from_logits=True),
    )
    dataset = tf.data.Dataset.from_tensor_slices(_images(22, 1)).batch(8)
    history = gan.fit(dataset, epochs=2, verbose=0)
    weights = [shadows(each.get_weights()) for each in (discriminator, generator)]
    return told_of(history), weights


def a_loop_over_images(tf):
    """Of "Writing a training loop from scratch", for any strategy."""
    strategy, keras, layers = tf.distribute.get_strategy(), tf.keras, tf.keras.layers
    stack = [layers.Conv2D(4, 3, activation="relu"), layers.MaxPooling2D()]
    stack += [layers.BatchNormalization(), layers.Flatten(), layers.Dense(4)]
    model = draw_weights(keras.Sequential([keras.Input((8, 8, 3)), *stack]))
    optimizer = keras.optimizers.SGD(learning_rate=1e-2, momentum=0.9)
    train_acc_metric = keras.metrics.SparseCategoricalAccuracy()

    def step(x, y):
        with tf.GradientTape() as tape:
            logits = model(x, training=True)
            each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
            loss_value = tf.nn.compute_average_loss(each, global_batch_size=8)
        grads = tape.gradient(loss_value, model.trainable_weights)
        optimizer.apply(grads, model.trainable_weights)
        train_acc_metric.update_state(y, logits)
        return loss_value

    @tf.function
    def train_step(x, y):
        return strategy.reduce("SUM", strategy.run(step, args=(x, y)), axis=None)

    data = tf.data.Dataset.from_tensor_slices((X, labels(22, 4))).batch(8)
    shares, seen = strategy.experimental_distribute_dataset(data), []
    for _ in range(2):
        seen.append([[train_step(x, y) for x, y in shares], np.float32(train_acc_metric.result())])
        train_acc_metric.reset_state()
    return seen, shadows(model.get_weights())
