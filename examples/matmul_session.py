"""Times a product in a session of TensorFlow 1, with its log: ``matmul_session.py gpu 2000``.

The text is that of lessons of its time; the import alone is another.
"""

import argparse
import time

import mirrored as mr
import mirrored.compat.v1 as tf


def parse_arguments() -> argparse.Namespace:
    """Return the device and the size that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("device", choices=["cpu", "gpu"], help="device that computes")
    parser.add_argument("size", type=int, metavar="SIZE", help="number of rows and of columns")
    return parser.parse_args()


def main() -> None:
    """Draw the product, run it once, and print its sum and how long that took."""
    arguments = parse_arguments()
    if arguments.device == "gpu" and not mr.config.list_physical_devices("GPU"):
        print("No GPU here: simulating one, whose kernels are the CPU's.")
        mr.config.experimental.set_simulated_gpus(1)

    shape = [arguments.size, arguments.size]
    with tf.device(f"/{arguments.device}:0"):
        random_matrix = tf.random_uniform(shape=shape, minval=0, maxval=1)
        dot_operation = tf.matmul(random_matrix, tf.transpose(random_matrix))
        sum_operation = tf.reduce_sum(dot_operation)

    start = time.perf_counter()
    with tf.Session(config=tf.ConfigProto(log_device_placement=True)) as session:
        result = session.run(sum_operation)
    print(f"shape: {shape}, device: {arguments.device}, sum: {result:.6e}")
    print(f"time:  {1e3 * (time.perf_counter() - start):.2f} ms")


if __name__ == "__main__":
    main()
