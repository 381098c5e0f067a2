"""Fits a line with one neuron, mirrored on two virtual GPUs that share one physical GPU.

Splitting a device is how code for several GPUs is tried where there is one, or none.
"""

import argparse

import numpy as np

import mirrored as mr


def split_first_gpu() -> None:
    """Make two virtual GPUs of 64 MB each; the GPU itself is simulated where there is none."""
    if not mr.config.list_physical_devices("GPU"):
        print("No GPU here: simulating one in host memory.")
        mr.config.experimental.set_simulated_gpus(1)
    gpu = mr.config.list_physical_devices("GPU")[0]
    half = mr.config.LogicalDeviceConfiguration(memory_limit=64)
    mr.config.set_logical_device_configuration(gpu, [half, half])
    mr.config.set_visible_devices(gpu, "GPU")
    print(f"{gpu.name} is split into:")
    for device in mr.config.list_logical_devices("GPU"):
        print(f"  {device.name}")


def main() -> None:
    """Learn y = 3x + 2 from 256 points."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    split_first_gpu()
    mr.random.set_seed(1)
    with mr.MirroredStrategy().scope():
        inputs = mr.layers.Input(shape=(1,))
        model = mr.Model(inputs, mr.layers.Dense(1)(inputs))
        model.compile(loss="mse", optimizer=mr.optim.SGD(learning_rate=0.2))

    x = np.linspace(-1.0, 1.0, 256, dtype=np.float32).reshape(-1, 1)
    model.fit(x, 3.0 * x + 2.0, batch_size=32, epochs=10)

    slope, intercept = model.get_weights()
    print(f"y = {slope.item():.3f} x + {intercept.item():.3f}")


if __name__ == "__main__":
    main()
