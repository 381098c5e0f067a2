"""Times a matrix times its transpose, summed, on the CPU or on a GPU: ``matmul.py gpu 2000``.

Moving data to a device and computing there are timed apart, because they scale differently.
"""

import argparse
import sys
import time

import numpy as np

import mirrored as mr

LARGEST = 10**8  # Rows: more than any memory holds.


def size(text: str) -> int:
    """Return ``text`` as a number of rows, for argparse."""
    if not text.isdecimal() or not 1 <= int(text) <= LARGEST:
        wanted = f"must be a whole number from 1 to {LARGEST}"
        raise argparse.ArgumentTypeError(f"{wanted}. Received: {text}")
    return int(text)


def parse_arguments() -> argparse.Namespace:
    """Return the device and the size that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("device", choices=["cpu", "gpu"], help="device that computes")
    parser.add_argument("size", type=size, metavar="SIZE", help="number of rows and of columns")
    return parser.parse_args()


def main() -> None:
    """Time the product that was asked for; one line says where there is too little memory."""
    arguments = parse_arguments()
    try:
        time_product(arguments)
    except MemoryError as error:
        sys.exit(f"SIZE {arguments.size} is too large here: {error}")


def time_product(arguments: argparse.Namespace) -> None:
    """Send a random matrix to the device, compute there, and print both times."""
    if arguments.device == "gpu" and not mr.config.list_physical_devices("GPU"):
        print("No GPU here: simulating one, whose kernels are the CPU's.")
        mr.config.experimental.set_simulated_gpus(1)

    size = arguments.size
    host = np.random.default_rng(0).uniform(size=(size, size)).astype(np.float32)
    with mr.device(f"{arguments.device}:0"):
        mr.reduce_sum(mr.ones((1, 1)))  # Starting the device is not what is timed.

        started = time.perf_counter()
        matrix = mr.constant(host)
        sent = time.perf_counter()
        total = mr.reduce_sum(mr.matmul(matrix, mr.transpose(matrix)))
        value = float(total.numpy())  # Reading the result waits until it is there.
        done = time.perf_counter()

    print(f"device:   {total.device}")
    print(f"shape:    {size} x {size}, {host.nbytes / 2**20:.1f} MB")
    print(f"sum:      {value:.6e}")
    print(f"transfer: {1e3 * (sent - started):.2f} ms")
    print(f"compute:  {1e3 * (done - sent):.2f} ms")


if __name__ == "__main__":
    main()
