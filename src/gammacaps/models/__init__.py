"""Whole networks, their presets, what they say of an image, and how they are stored.

>>> import gammacaps
>>> model, (images, _) = gammacaps.load("fashion-mini"), gammacaps.load_data("fashion-mini")
>>> parse = model.parse(images[:3])
>>> dict(zip(parse.layers, (activations.shape[1] for activations in parse.activations)))
{'primary': 200, 'hidden 1': 16, 'class': 10}
"""

from gammacaps.models.checks import check_fit
from gammacaps.models.cnn import CNN, CNNConfig
from gammacaps.models.export import export
from gammacaps.models.folder import load, save
from gammacaps.models.gamma_capsules import GammaCapsConfig, GammaCapsNet, has_kernels
from gammacaps.models.hugging_face import from_pretrained, push_to_hub
from gammacaps.models.matrix_capsules import MatrixCapsConfig, MatrixCapsNet
from gammacaps.models.normalized import Normalized
from gammacaps.models.parse import Parse
from gammacaps.models.presets import PRESETS, create, from_config, to_config
from gammacaps.models.protocol import (
    CapsuleModel,
    Model,
    has_capsules,
    has_mean_votes,
    require_capsules,
    require_decoder,
    shows_capsules,
)

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
    "Normalized",
    "Parse",
    "check_fit",
    "create",
    "export",
    "from_config",
    "from_pretrained",
    "has_capsules",
    "has_kernels",
    "has_mean_votes",
    "load",
    "push_to_hub",
    "require_capsules",
    "require_decoder",
    "save",
    "shows_capsules",
    "to_config",
]
