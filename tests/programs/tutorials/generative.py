"""TensorFlow's tutorials on autoencoders, variational ones too, and on DCGAN."""

import numpy as np
from known import draw_weights, numbers, pictures, shadows, told_of

BATCH = 8


def _drawn(count):
    return pictures(count, size=8)[0].astype(np.float32) / 255


def _shares(tf, strategy, images):
    dataset = tf.data.Dataset.from_tensor_slices(images).batch(BATCH)
    return strategy.experimental_distribute_dataset(dataset)


def a_denoising_autoencoder(tf):
    from tensorflow.keras import layers, losses
    from tensorflow.keras.models import Model

    class Denoise(Model):
        def __init__(self):
            super().__init__()
            self.encoder = tf.keras.Sequential(
                [
                    layers.Input(shape=(8, 8, 1)),
                    layers.Conv2D(6, (3, 3), activation="relu", padding="same", strides=2),
                    layers.Conv2D(4, (3, 3), activation="relu", padding="same", strides=2),
                ]
            )
            self.decoder = tf.keras.Sequential(
                [
                    layers.Conv2DTranspose(
                        4, kernel_size=3, strides=2, activation="relu", padding="same"
                    ),
                    layers.Conv2DTranspose(
                        6, kernel_size=3, strides=2, activation="relu", padding="same"
                    ),
                    layers.Conv2D(1, kernel_size=(3, 3), activation="sigmoid", padding="same"),
                ]
            )

        def call(self, x):
            encoded = self.encoder(x)
            return self.decoder(encoded)

    images, held_out = _drawn(28), _drawn(11)
    noisy, held_out_noisy = (
        tf.clip_by_value(each + 0.2 * numbers(*each.shape), clip_value_min=0.0, clip_value_max=1.0)
        for each in (images, held_out)
    )
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        autoencoder = Denoise()
        autoencoder(noisy[:1])
        autoencoder.compile(optimizer="sgd", loss=losses.MeanSquaredError())
    draw_weights(autoencoder)
    history = autoencoder.fit(
        *(noisy, images),
        epochs=2,
        batch_size=BATCH,
        shuffle=False,
        validation_data=(held_out_noisy, held_out),
        verbose=0,
    )
    encoded = autoencoder.encoder(held_out_noisy[:2]).numpy()
    decoded = autoencoder.decoder(encoded).numpy()
    shapes = [list(each.output_shape[1:]) for each in (autoencoder.encoder, autoencoder.decoder)]
    return told_of(history), shapes, encoded, decoded


def an_autoencoder_that_repeats_pixels(tf):
    keras = tf.keras
    from tensorflow.keras import layers

    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        image = keras.Input(shape=(8, 8, 1))
        x = layers.Conv2D(6, (3, 3), activation="relu", padding="same")(image)
        x = layers.MaxPooling2D((2, 2), padding="same")(x)
        x = layers.Conv2D(4, (3, 3), activation="relu", padding="same")(x)
        encoded = layers.MaxPooling2D((2, 2), padding="same", name="code")(x)
        x = layers.Conv2D(4, (3, 3), activation="relu", padding="same")(encoded)
        x = layers.UpSampling2D((2, 2))(x)
        x = layers.Conv2D(6, (3, 3), activation="relu", padding="same")(x)
        x = layers.UpSampling2D((2, 2), interpolation="bilinear")(x)
        decoded = layers.Conv2D(1, (3, 3), activation="sigmoid", padding="same")(x)
        autoencoder = keras.Model(image, decoded)
        autoencoder.compile(optimizer=keras.optimizers.SGD(0.5), loss="binary_crossentropy")
    draw_weights(autoencoder)
    images = _drawn(28)
    history = autoencoder.fit(
        images, images, epochs=2, batch_size=BATCH, shuffle=False, validation_split=0.2, verbose=0
    )
    encoder = keras.Model(autoencoder.input, autoencoder.get_layer("code").output)
    return (
        told_of(history),
        encoder.predict(images[:3], verbose=0),
        shadows(autoencoder.get_weights()),
    )


def a_generator_against_a_discriminator(tf):
    from tensorflow.keras import layers

    def make_generator_model():
        model = tf.keras.Sequential()
        model.add(layers.Dense(2 * 2 * 8, use_bias=False, input_shape=(5,)))
        model.add(layers.BatchNormalization())
        model.add(layers.LeakyReLU())
        model.add(layers.Reshape((2, 2, 8)))
        assert model.output_shape == (None, 2, 2, 8)
        model.add(layers.Conv2DTranspose(6, (5, 5), strides=(1, 1), padding="same", use_bias=False))
        model.add(layers.BatchNormalization())
        model.add(layers.LeakyReLU())
        model.add(layers.Conv2DTranspose(4, (5, 5), strides=(2, 2), padding="same", use_bias=False))
        model.add(layers.BatchNormalization())
        model.add(layers.LeakyReLU())
        last = {"strides": (2, 2), "padding": "same", "use_bias": False, "activation": "tanh"}
        model.add(layers.Conv2DTranspose(1, (5, 5), **last))
        assert model.output_shape == (None, 8, 8, 1)
        return model

    def make_discriminator_model():
        model = tf.keras.Sequential()
        model.add(layers.Conv2D(4, (5, 5), strides=(2, 2), padding="same", input_shape=[8, 8, 1]))
        model.add(layers.LeakyReLU())
        model.add(layers.Conv2D(8, (5, 5), strides=(2, 2), padding="same"))
        model.add(layers.LeakyReLU())
        model.add(layers.Flatten())
        model.add(layers.Dense(1))
        return model

    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        cross_entropy = tf.keras.losses.BinaryCrossentropy(from_logits=True, reduction="none")
        generator = draw_weights(make_generator_model())
        discriminator = draw_weights(make_discriminator_model(), seed=1)
        generator_optimizer = tf.keras.optimizers.SGD(0.1)
        discriminator_optimizer = tf.keras.optimizers.SGD(0.1)

    def mean(losses):
        return tf.nn.compute_average_loss(losses, global_batch_size=BATCH)

    def discriminator_loss(real_output, fake_output):
        real_loss = cross_entropy(tf.ones_like(real_output), real_output)
        fake_loss = cross_entropy(tf.zeros_like(fake_output), fake_output)
        return mean(real_loss) + mean(fake_loss)

    def generator_loss(fake_output):
        return mean(cross_entropy(tf.ones_like(fake_output), fake_output))

    def train_step(images):
        noise = tf.sin(9.0 * images[:, 0, :5, 0])  # What the tutorial draws at random.
        with tf.GradientTape() as gen_tape, tf.GradientTape() as disc_tape:
            generated_images = generator(noise, training=True)
            real_output = discriminator(images, training=True)
            fake_output = discriminator(generated_images, training=True)
            gen_loss = generator_loss(fake_output)
            disc_loss = discriminator_loss(real_output, fake_output)
        gradients = gen_tape.gradient(gen_loss, generator.trainable_variables)
        generator_optimizer.apply_gradients(
            zip(gradients, generator.trainable_variables, strict=True)
        )
        gradients = disc_tape.gradient(disc_loss, discriminator.trainable_variables)
        discriminator_optimizer.apply_gradients(
            zip(gradients, discriminator.trainable_variables, strict=True)
        )
        return gen_loss, disc_loss

    @tf.function
    def distributed_train_step(images):
        losses = strategy.run(train_step, args=(images,))
        return [strategy.reduce(tf.distribute.ReduceOp.SUM, each, axis=None) for each in losses]

    seen = [
        distributed_train_step(images)
        for _ in range(2)
        for images in _shares(tf, strategy, _drawn(20) * 2 - 1)
    ]
    shown = generator(numbers(3, 5), training=False)
    return seen, shown, shadows(generator.get_weights()), shadows(discriminator.get_weights())


def a_variational_autoencoder(tf):
    class CVAE(tf.keras.Model):
        def __init__(self, latent_dim):
            super().__init__()
            self.latent_dim = latent_dim
            self.encoder = tf.keras.Sequential(
                [
                    tf.keras.layers.InputLayer(input_shape=(8, 8, 1)),
                    tf.keras.layers.Conv2D(
                        filters=4, kernel_size=3, strides=(2, 2), activation="relu"
                    ),
                    tf.keras.layers.Conv2D(
                        filters=8, kernel_size=3, strides=(2, 2), activation="relu"
                    ),
                    tf.keras.layers.Flatten(),
                    tf.keras.layers.Dense(latent_dim + latent_dim),
                ]
            )
            self.decoder = tf.keras.Sequential(
                [
                    tf.keras.layers.InputLayer(input_shape=(latent_dim,)),
                    tf.keras.layers.Dense(units=2 * 2 * 4, activation=tf.nn.relu),
                    tf.keras.layers.Reshape(target_shape=(2, 2, 4)),
                    tf.keras.layers.Conv2DTranspose(
                        filters=8, kernel_size=3, strides=2, padding="same", activation="relu"
                    ),
                    tf.keras.layers.Conv2DTranspose(
                        filters=4, kernel_size=3, strides=2, padding="same", activation="relu"
                    ),
                    tf.keras.layers.Conv2DTranspose(
                        filters=1, kernel_size=3, strides=1, padding="same"
                    ),
                ]
            )

        def encode(self, x):
            return tf.split(self.encoder(x), num_or_size_splits=2, axis=1)

        def reparameterize(self, mean, logvar, eps):
            return eps * tf.exp(logvar * 0.5) + mean

        def decode(self, z, apply_sigmoid=False):
            logits = self.decoder(z)
            return tf.sigmoid(logits) if apply_sigmoid else logits

    def log_normal_pdf(sample, mean, logvar, raxis=1):
        log2pi = tf.math.log(2.0 * np.pi)
        return tf.reduce_sum(
            -0.5 * ((sample - mean) ** 2.0 * tf.exp(-logvar) + logvar + log2pi), axis=raxis
        )

    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model, optimizer = CVAE(2), tf.keras.optimizers.SGD(1e-2)
    draw_weights(model.encoder)
    draw_weights(model.decoder, seed=1)

    def compute_loss(x):
        mean, logvar = model.encode(x)
        eps = tf.sin(9.0 * x[:, 0, :2, 0])  # What the tutorial draws at random.
        z = model.reparameterize(mean, logvar, eps)
        x_logit = model.decode(z)
        cross_ent = tf.nn.sigmoid_cross_entropy_with_logits(logits=x_logit, labels=x)
        logpx_z = -tf.reduce_sum(cross_ent, axis=[1, 2, 3])
        logpz = log_normal_pdf(z, 0.0, 0.0)
        logqz_x = log_normal_pdf(z, mean, logvar)
        return tf.nn.compute_average_loss(-(logpx_z + logpz - logqz_x), global_batch_size=BATCH)

    def train_step(x):
        with tf.GradientTape() as tape:
            loss = compute_loss(x)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    @tf.function
    def distributed_train_step(x):
        return strategy.reduce("SUM", strategy.run(train_step, args=(x,)), axis=None)

    images = np.where(_drawn(20) > 0.5, 1.0, 0.0).astype("float32")
    seen = [distributed_train_step(x) for _ in range(2) for x in _shares(tf, strategy, images)]
    return seen, model.decode(numbers(3, 2), apply_sigmoid=True), shadows(model.get_weights())
