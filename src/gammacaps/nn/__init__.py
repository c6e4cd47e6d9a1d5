"""Layers: encoder, primary and routed capsules, matrix capsules, decoder.

>>> import torch
>>> from gammacaps.nn import RoutedCapsules
>>> layer = RoutedCapsules(5, 3, 4, 6)  # 5 capsules of size 4 below, 3 of size 6 above
>>> layer(torch.randn(2, 5, 4)).poses.shape
torch.Size([2, 3, 6])
"""

from gammacaps.nn.decoder import Decoder
from gammacaps.nn.deep import DeepEncoder
from gammacaps.nn.layers import layers_of
from gammacaps.nn.matrix import MatrixCapsules, MatrixLayer, MatrixPrimary
from gammacaps.nn.residual import ResidualEncoder
from gammacaps.nn.vector import Convolution, PrimaryCapsules, RoutedCapsules

__all__ = [
    "Convolution",
    "Decoder",
    "DeepEncoder",
    "MatrixCapsules",
    "MatrixLayer",
    "MatrixPrimary",
    "PrimaryCapsules",
    "ResidualEncoder",
    "RoutedCapsules",
    "layers_of",
]
