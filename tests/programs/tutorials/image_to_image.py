"""TensorFlow's tutorials "pix2pix" and "Neural style transfer"."""

import numpy as np
from known import draw_weights, pictures, shadows

BATCH = 4


def _images(count):
    return pictures(count, size=8, channels=3)[0].astype(np.float32) / 127.5 - 1


def images_out_of_images(tf):
    layers = tf.keras.layers

    def downsample(filters, size, apply_batchnorm=True):
        initializer = tf.random_normal_initializer(0.0, 0.02)
        result = tf.keras.Sequential()
        result.add(
            layers.Conv2D(
                *(filters, size),
                strides=2,
                padding="same",
                kernel_initializer=initializer,
                use_bias=False,
            )
        )
        if apply_batchnorm:
            result.add(layers.BatchNormalization())
        result.add(layers.LeakyReLU())
        return result

    def upsample(filters, size, apply_dropout=False):
        result = tf.keras.Sequential()
        result.add(layers.Conv2DTranspose(filters, size, strides=2, padding="same", use_bias=False))
        result.add(layers.BatchNormalization())
        if apply_dropout:
            result.add(layers.Dropout(0.0))
        result.add(layers.ReLU())
        return result

    def make_generator():
        inputs = layers.Input(shape=[8, 8, 3])
        x, skips = inputs, []
        for down in (downsample(4, 4, apply_batchnorm=False), downsample(6, 4), downsample(8, 4)):
            x = down(x)
            skips.append(x)
        ups = [upsample(6, 4, apply_dropout=True), upsample(4, 4)]
        for up, skip in zip(ups, reversed(skips[:-1]), strict=True):
            x = layers.Concatenate()([up(x), skip])
        last = layers.Conv2DTranspose(3, 4, strides=2, padding="same", activation="tanh")
        return tf.keras.Model(inputs=inputs, outputs=last(x))

    def make_discriminator():
        inp = layers.Input(shape=[8, 8, 3], name="input_image")
        tar = layers.Input(shape=[8, 8, 3], name="target_image")
        x = layers.concatenate([inp, tar])
        x = downsample(4, 4, apply_batchnorm=False)(x)
        x = layers.ZeroPadding2D()(x)
        x = layers.Conv2D(6, 4, strides=1, use_bias=False)(x)
        x = layers.BatchNormalization()(x)
        x = layers.ZeroPadding2D()(layers.LeakyReLU()(x))
        return tf.keras.Model(inputs=[inp, tar], outputs=layers.Conv2D(1, 4, strides=1)(x))

    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        generator = draw_weights(make_generator())
        discriminator = draw_weights(make_discriminator(), seed=1)
        loss_object = tf.keras.losses.BinaryCrossentropy(from_logits=True, reduction="none")
        generator_optimizer = tf.keras.optimizers.SGD(0.01)
        discriminator_optimizer = tf.keras.optimizers.SGD(0.01)

    def mean(losses):
        return tf.nn.compute_average_loss(
            tf.reduce_mean(losses, axis=[1, 2]), global_batch_size=BATCH
        )

    def train_step(input_image, target):
        with tf.GradientTape() as gen_tape, tf.GradientTape() as disc_tape:
            gen_output = generator(input_image, training=True)
            real = discriminator([input_image, target], training=True)
            generated = discriminator([input_image, gen_output], training=True)
            gan_loss = mean(loss_object(tf.ones_like(generated), generated))
            l1_loss = mean(tf.reduce_mean(tf.abs(target - gen_output), axis=-1))
            gen_loss = gan_loss + 100 * l1_loss
            disc_loss = mean(loss_object(tf.ones_like(real), real))
            disc_loss += mean(loss_object(tf.zeros_like(generated), generated))
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
    def distributed_train_step(input_image, target):
        losses = strategy.run(train_step, args=(input_image, target))
        return [strategy.reduce("SUM", each, axis=None) for each in losses]

    images = _images(11)
    dataset = tf.data.Dataset.from_tensor_slices((images, images[:, ::-1])).batch(BATCH)
    dataset = strategy.experimental_distribute_dataset(dataset.repeat().take(4))
    seen = [distributed_train_step(*pair) for pair in dataset]
    weights = [shadows(each.get_weights()) for each in (generator, discriminator)]
    return seen, weights, generator(images[:1], training=False)


def the_style_of_an_image(tf):
    layers = tf.keras.layers
    inputs = tf.keras.Input((None, None, 3))
    first = layers.Conv2D(4, 3, padding="same", activation="relu", name="block1_conv1")(inputs)
    pooled = layers.MaxPooling2D()(first)
    second = layers.Conv2D(6, 3, padding="same", activation="relu", name="block2_conv1")(pooled)
    vgg = draw_weights(tf.keras.Model(inputs, second))

    def vgg_layers(layer_names):
        vgg.trainable = False
        outputs = [vgg.get_layer(name).output for name in layer_names]
        return tf.keras.Model(vgg.inputs, outputs)

    def gram_matrix(input_tensor):
        result = tf.linalg.einsum("bijc,bijd->bcd", input_tensor, input_tensor)
        input_shape = tf.shape(input_tensor)
        return result / tf.cast(input_shape[1] * input_shape[2], tf.float32)

    class StyleContentModel(tf.keras.models.Model):
        def __init__(self, style_layers, content_layers):
            super().__init__()
            self.vgg = vgg_layers(style_layers + content_layers)
            self.style_layers, self.content_layers = style_layers, content_layers
            self.num_style_layers = len(style_layers)
            self.vgg.trainable = False

        def call(self, inputs):
            outputs = self.vgg(inputs * 2.0)
            style, content = outputs[: self.num_style_layers], outputs[self.num_style_layers :]
            style = [gram_matrix(each) for each in style]
            return {
                "content": dict(zip(self.content_layers, content, strict=True)),
                "style": dict(zip(self.style_layers, style, strict=True)),
            }

    style_image, content_image = (tf.constant(_images(count)[:1] / 2 + 0.5) for count in (2, 3))
    extractor = StyleContentModel(["block1_conv1", "block2_conv1"], ["block2_conv1"])
    style_targets = extractor(style_image)["style"]
    content_targets = extractor(content_image)["content"]
    image = tf.Variable(content_image)
    opt = tf.keras.optimizers.Adam(learning_rate=0.02, beta_1=0.99, epsilon=1e-1)

    def style_content_loss(outputs):
        parts = []
        for kind, targets, weight in (
            ("style", style_targets, 1e-1),
            ("content", content_targets, 10.0),
        ):
            squares = [
                tf.reduce_mean((outputs[kind][name] - targets[name]) ** 2) for name in targets
            ]
            parts.append(tf.add_n(squares) * (weight / len(targets)))
        return parts[0] + parts[1]

    @tf.function()
    def train_step(image):
        with tf.GradientTape() as tape:
            loss = style_content_loss(extractor(image))
            loss += 1e-3 * tf.reduce_sum(tf.image.total_variation(image))
        grad = tape.gradient(loss, image)
        opt.apply_gradients([(grad, image)])
        image.assign(tf.clip_by_value(image, clip_value_min=0.0, clip_value_max=1.0))
        return loss

    losses = [train_step(image) for _ in range(3)]
    return losses, shadows([image]), extractor(image)["style"]["block1_conv1"]
