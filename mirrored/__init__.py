from mirrored import config as config, devices as devices, layers as layers, ops as ops, optim as optim
from mirrored.ops import *
from mirrored.variables import Variable as Variable
from mirrored.distribute import MirroredStrategy as MirroredStrategy
