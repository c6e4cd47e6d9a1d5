"""Layers: encoder, primary and routed capsules, matrix capsules, decoder."""

from gammacaps.nn.decoder import Decoder
from gammacaps.nn.layers import layers_of
from gammacaps.nn.matrix import MatrixCapsules, MatrixLayer, MatrixPrimary
from gammacaps.nn.residual import ResidualEncoder
from gammacaps.nn.vector import Convolution, PrimaryCapsules, RoutedCapsules

__all__ = [
    "Convolution",
    "Decoder",
    "MatrixCapsules",
    "MatrixLayer",
    "MatrixPrimary",
    "PrimaryCapsules",
    "ResidualEncoder",
    "RoutedCapsules",
    "layers_of",
]
