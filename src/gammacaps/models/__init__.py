"""Whole networks, their presets, what they say of an image, and how they are stored."""

from gammacaps.models.cnn import CNN, CNNConfig
from gammacaps.models.export import export
from gammacaps.models.gamma import GammaCapsConfig, GammaCapsNet
from gammacaps.models.hub import from_pretrained, push_to_hub
from gammacaps.models.matrix import MatrixCapsConfig, MatrixCapsNet
from gammacaps.models.parse import Parse
from gammacaps.models.presets import PRESETS, CapsuleModel, Model, create, from_config, to_config
from gammacaps.models.stored import load, save

__all__ = [
    "CNN",
    "PRESETS",
    "CNNConfig",
    "CapsuleModel",
    "GammaCapsConfig",
    "GammaCapsNet",
    "MatrixCapsConfig",
    "MatrixCapsNet",
    "Model",
    "Parse",
    "create",
    "export",
    "from_config",
    "from_pretrained",
    "load",
    "push_to_hub",
    "save",
    "to_config",
]
