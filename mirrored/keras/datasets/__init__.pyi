# Written by tests/support/stubs.py from the table in __init__.py; do not edit it.
from mirrored._absent import public_module as _public_module
from mirrored.keras.datasets import boston_housing as boston_housing
from mirrored.keras.datasets import california_housing as california_housing
from mirrored.keras.datasets import cifar10 as cifar10
from mirrored.keras.datasets import cifar100 as cifar100
from mirrored.keras.datasets import fashion_mnist as fashion_mnist
from mirrored.keras.datasets import imdb as imdb
from mirrored.keras.datasets import mnist as mnist
from mirrored.keras.datasets import reuters as reuters
