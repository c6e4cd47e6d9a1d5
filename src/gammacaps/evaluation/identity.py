"""A network's fingerprint, by which figures know whose they are."""

import dataclasses
import hashlib
from typing import Any

from torch import nn

from gammacaps.attacks.gradient import Classifier
from gammacaps.data.fingerprint import fingerprint


def identity(model: Classifier) -> str:
    """A classifier's fingerprint: of its configuration and its weights with their names, where it has them.

    Of the configuration only what is not the default counts, so that figures stay those of their network when networks
    get a new option.
    """
    if not isinstance(model, nn.Module):
        return "unknown"
    weights, config = model.state_dict(), getattr(model, "config", None)
    chosen: Any = config
    if dataclasses.is_dataclass(config):
        values = {field.name: (getattr(config, field.name), field.default) for field in dataclasses.fields(config)}
        chosen = {name: value for name, (value, usual) in values.items() if value != usual}
    described = f"{type(model).__name__}{chosen}{list(weights)}"
    return hashlib.sha256(f"{described}{fingerprint(*weights.values())}".encode()).hexdigest()
