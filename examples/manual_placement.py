"""Places work by hand: the same product on each of four GPUs, and their sum on the CPU.

This is what a strategy does for you, spelled out; the GPUs are simulated where there are none.
"""

import argparse

import mirrored as mr


def main() -> None:
    """Compute the product on every GPU and print where it ran and what the sum is."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    if not mr.config.list_physical_devices("GPU"):
        print("No GPU here: simulating four in host memory.")
        mr.config.experimental.set_simulated_gpus(4)

    products = []
    for gpu in mr.config.list_logical_devices("GPU"):
        with mr.device(gpu.name):
            a = mr.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
            b = mr.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
            product = mr.matmul(a, b)
        print(f"product on {product.device}")
        products.append(product)

    with mr.device("/CPU:0"):
        total = mr.add_n(products)
    print(f"sum on {total.device}")
    print(total)


if __name__ == "__main__":
    main()
