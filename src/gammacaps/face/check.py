"""The check of any torch classifier: attacks, their worst case, and whether to believe it."""

import contextlib
import dataclasses
import time
from collections.abc import Iterator

from torch import Tensor, nn

from gammacaps.attacks.gradient import Classifier
from gammacaps.environment import describe_machine
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.robustness import robustness
from gammacaps.face.figures import Check
from gammacaps.face.given import try_model
from gammacaps.face.normalised import wants_normalised
from gammacaps.progress import OnProgress

TRAINING = "The model was in training mode; it was checked in eval mode, as it would be used."


def checked(
    model: Classifier,
    images: Tensor,
    labels: Tensor,
    config: EvaluateConfig,
    *,
    other: Classifier | None = None,
    progress: OnProgress = lambda *_: None,
) -> Check:
    """What the attacks and checks of a configuration say of a model, where its weights lie."""
    started = time.monotonic()
    notes = [TRAINING] if isinstance(model, nn.Module) and model.training else []
    weight = next(model.parameters(), None) if isinstance(model, nn.Module) else None
    if weight is not None:
        images, labels = images.to(weight.device), labels.to(weight.device)
    with in_eval_mode(model):
        try_model(model, images, labels)
        figures = robustness(model, images, labels, config, other=other, progress=progress)
        wanted = wants_normalised(model, images, labels, config.batch)
    settings = {k: list(v) if isinstance(v, tuple) else v for k, v in dataclasses.asdict(config).items()}
    return Check(
        model=name_of(model),
        **figures,
        notes=notes if wanted is None else [wanted, *notes],
        settings=settings,
        machine=describe_machine(str(images.device)),
        seconds=round(time.monotonic() - started, 1),
    )


def name_of(model: Classifier) -> str:
    """What the table calls a model: its class, or a function's own name."""
    return type(model).__name__ if isinstance(model, nn.Module) else getattr(model, "__name__", type(model).__name__)


@contextlib.contextmanager
def in_eval_mode(model: Classifier) -> Iterator[None]:
    """Each module of a network in eval mode inside the block, and as it was after it."""
    learning = [m for m in model.modules() if m.training] if isinstance(model, nn.Module) else []
    for module in learning:
        module.training = False
    try:
        yield
    finally:
        for module in learning:
            module.training = True
