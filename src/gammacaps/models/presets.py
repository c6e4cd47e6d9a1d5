"""Networks by name: `create`, and the way a network's configuration is written and read."""

import dataclasses
from typing import Any, get_args, get_origin

import torch
from torch.overrides import TorchFunctionMode

from gammacaps.environment import free_memory
from gammacaps.errors import InputError, check_choice
from gammacaps.models.cnn import CNN, CNNConfig
from gammacaps.models.gamma_capsules import GammaCapsConfig, GammaCapsNet
from gammacaps.models.matrix_capsules import MatrixCapsConfig, MatrixCapsNet
from gammacaps.models.protocol import Model

ARCHITECTURES: dict[str, tuple[type[Any], type[Any]]] = {
    "gamma": (GammaCapsNet, GammaCapsConfig),
    "matrix": (MatrixCapsNet, MatrixCapsConfig),
    "cnn": (CNN, CNNConfig),
}

DEEP = GammaCapsConfig(encoder="deep", filters=64, kernel=3, primary_kernel=3, primary_stride=1)
PRESETS: dict[str, Any] = {
    "paper": GammaCapsConfig(),
    # The most robust: small convolutions and pooling before the capsules.
    "deep": DEEP,
    # For a CPU: about 40 times fewer operations than the paper's.
    "small": dataclasses.replace(DEEP, filters=16, primary_types=8, hidden=(16,), decoder=(128, 256)),
    # For colour and larger images: the number of primary capsules hardly depends on the image's size.
    "residual": GammaCapsConfig(
        encoder="residual",
        filters=32,
        kernel=3,
        primary_types=16,
        primary_kernel=3,
        primary_stride=1,
        decoder=(128,),
    ),
    "matrix": MatrixCapsConfig(),
    "cnn": CNNConfig(),
}


def create(preset: str = "paper", **overrides: Any) -> Model:
    """A new network by the name of its preset, with fields of its configuration changed.

    >>> import gammacaps
    >>> model = gammacaps.create("small", classes=5, image_shape=(3, 32, 32), routing="rba")
    >>> model.layers
    ('primary', 'hidden 1', 'class')
    """
    check_choice("preset", preset, PRESETS)
    config = PRESETS[preset]
    return from_config({"architecture": _architecture_of(config), **dataclasses.asdict(config), **overrides})


def to_config(model: Model) -> dict[str, Any]:
    """A network's configuration as plain values, with the name of its architecture."""
    if model.architecture not in ARCHITECTURES:
        raise InputError(
            f"A {type(model).__name__} is none of the networks that config.json can describe "
            f"({', '.join(ARCHITECTURES)}): store its state_dict() yourself."
        )
    config: Any = model.config
    return {"architecture": model.architecture, **dataclasses.asdict(config)}


def from_config(values: dict[str, Any]) -> Model:
    """The network (with new weights) that `to_config` described; refused if it would not fit into memory."""
    network, config = _configured(values)
    check_memory(_outline(network, config))
    model: Model = network(config)
    return model


def shapes_of(values: dict[str, Any]) -> dict[str, torch.Size]:
    """The names and shapes of that network's weights, in no time and without memory for them."""
    return {name: tensor.shape for name, tensor in _outline(*_configured(values)).state_dict().items()}


def _configured(values: dict[str, Any]) -> tuple[type[Any], Any]:
    """The class of a network, and its configuration with every value checked."""
    fields = dict(values)
    architecture = fields.pop("architecture", None)
    check_choice("architecture", architecture, ARCHITECTURES)
    network, config = ARCHITECTURES[architecture]
    known = {field.name: field.type for field in dataclasses.fields(config)}
    for name in fields:
        check_choice(f"field of a {architecture} network's configuration", name, known)
    return network, config(**{name: _checked(name, value, known[name]) for name, value in fields.items()})


class _Unfilled(TorchFunctionMode):
    """Leaves tensors without initial values: those on the meta device have none, and torch takes seconds to see it."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__module__", None) == "torch.nn.init":
            return kwargs["tensor"] if "tensor" in kwargs else args[0]
        return func(*args, **kwargs)


def _outline(network: type[Any], config: Any) -> Model:
    """The network with the shapes of its weights alone."""
    try:
        with torch.device("meta"), _Unfilled():
            model: Model = network(config)
    except (RuntimeError, OverflowError, TypeError) as error:  # by which torch says that it can't count so far
        raise InputError(f"This network has too many weights to count ({error!s:.80}): use a smaller one.") from None
    return model


def check_memory(model: Model, copies: int = 1, what: str = "takes") -> None:
    """Refuses a network of whose size so many copies do not fit into the machine's free memory."""
    tensors, free = [*model.parameters(), *model.buffers()], free_memory()
    needed = copies * sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    if free is not None and needed > free:
        count = sum(parameter.numel() for parameter in model.parameters())
        raise InputError(
            f"This network has {count:,} parameters and {what} {needed / 1e9:,.1f} GB, but {free / 1e9:,.1f} GB of "
            "memory are free: use a smaller one."
        )


def _checked(name: str, value: Any, kind: Any) -> Any:
    """The value as its field's type, lists becoming tuples; numbers that are no whole numbers are refused."""
    if get_origin(kind) is tuple:
        kinds = get_args(kind)
        values = tuple(value) if isinstance(value, list | tuple) else None
        if values is not None and (kinds[-1] is ... or len(values) == len(kinds)):
            return tuple(_checked(name, v, int) for v in values)
    elif kind in (int, bool, str):
        if type(value) is kind:
            return value
    elif value in get_args(kind):
        return value
    if get_origin(kind) is tuple:
        many = "" if get_args(kind)[-1] is ... else f"{len(get_args(kind))} "
        expected = f"a list of {many}whole numbers, such as [32]" if not many else f"a list of {many}whole numbers"
    elif kind in (int, bool, str):
        expected = {int: "a whole number", bool: "true or false", str: "a name"}[kind]
    else:
        expected = "one of " + ", ".join(map(repr, get_args(kind)))
    raise InputError(f"{name} must be {expected}, not {value!r}.")


def _architecture_of(config: Any) -> str:
    return next(name for name, (_, kind) in ARCHITECTURES.items() if isinstance(config, kind))
