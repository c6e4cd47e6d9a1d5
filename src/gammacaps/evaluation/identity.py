"""A network's fingerprint, by which figures know whose they are."""

import dataclasses
import hashlib
from typing import Any

from torch import nn

from gammacaps.attacks.gradient import Classifier
from gammacaps.data.fingerprint import fingerprint
from gammacaps.imports import source_print
from gammacaps.ops import rule_named, rule_names


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
    described = f"{type(model).__name__}{chosen}{list(weights)}{_own_rule(model)}"
    return hashlib.sha256(f"{described}{fingerprint(*weights.values())}".encode()).hexdigest()


def _own_rule(model: nn.Module) -> str:
    """The fingerprint of a user's own routing rule, which may change under its name; nothing for ours."""
    name = getattr(model, "routing", None)
    return (source_print(rule_named(name).logits) or "") if name in rule_names() else ""
