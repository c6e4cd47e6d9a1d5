"""Another way to run a network in training: the encoder computed twice, with no other rounding."""

import functools

from torch.utils.checkpoint import checkpoint as checkpointed

from gammacaps.models import Model


def recompute_encoder(model: Model) -> None:
    """Keeps only the images for the gradient of the convolutions: what lies between is computed again when needed."""
    model.encode = functools.partial(checkpointed, model.encode, use_reentrant=False)  # type: ignore[method-assign]
