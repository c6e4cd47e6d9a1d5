"""The words that options are chosen from, apart from torch so that the command line's help stays instant."""

from pathlib import Path
from typing import Literal

ScaleOver = Literal["capsule", "batch"]
Backend = Literal["auto", "torch", "triton"]
EncoderName = Literal["convolution", "residual", "deep"]
ActivationName = Literal["relu", "silu"]
StemName = Literal["madry", "deep"]
PresetName = Literal["paper", "small", "deep", "residual", "matrix", "cnn"]
VECTOR_PRESETS = ("paper", "small", "deep", "residual")  # those whose routing rule can be chosen
NormName = Literal["linf", "l2", "l1"]  # in which an attack is small
TrainNormName = Literal["linf", "l2"]
NORM_TITLES = {"linf": "L-inf", "l2": "L2", "l1": "L1"}
AttackLossName = Literal["margin", "ce", "ce-log", "dlr"]
StartName = Literal["uniform", "blocks"]
LossName = Literal["own", "ce-log"]
VerdictWord = Literal["pass", "warn", "fail", "skip"]  # of a check; skip: there was nothing to judge
PrecisionName = Literal["auto", "float32", "bfloat16"]
Schedule = Literal["constant", "cosine", "decay"]
SearchName = Literal["improved", "paper"]
SHIPPED = Path(__file__).parent / "models" / "weights"  # networks that come with the package


def shipped_names() -> tuple[str, ...]:
    """The networks in the package, by name."""
    return tuple(sorted(path.parent.name for path in SHIPPED.glob("*/model.safetensors")))
