"""One step of training: what it makes small, and the attack that it is made small under."""

import contextlib
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from gammacaps.attacks.gradient import climbed
from gammacaps.attacks.losses import Against, AttackLoss
from gammacaps.models import Model, has_capsules
from gammacaps.runs.train_config import TrainConfig
from gammacaps.training.class_sets import ClassSets
from gammacaps.training.gamma_objective import ACTIVE, GammaObjective
from gammacaps.training.learner import Learner
from gammacaps.training.losses import classification_loss, divergence, divergence_of, reconstruction_loss, spread_margin
from gammacaps.training.schedule import learning_rate, radius, step_size
from gammacaps.training.sharing import Sharing
from gammacaps.training.starts import draw_noise
from gammacaps.training.weight_perturbation import perturbed_weights


def take_step(
    config: TrainConfig,
    learner: Learner,
    images: Tensor,
    labels: Tensor,
    progress: float,
    sharing: Sharing | None = None,
) -> tuple[dict[str, Tensor], Tensor, Tensor]:
    """One step of Adam on a batch: the losses, the accuracy (under attack) and the (attacked) images.

    With several processes the images are this one's, and the losses and the accuracy its share of the batch's.
    """
    sharing = sharing or Sharing(Objective(config, learner.model), len(images))
    noise = draw_noise(config, images, learner.step, sharing.size)
    for group in learner.optimizer.param_groups:
        group["lr"] = learning_rate(config, learner.step, progress)
    learner.optimizer.zero_grad(set_to_none=True)
    parts, attacked = _gradients(learner, sharing, images, labels, noise, progress)
    if config.weight_perturbation:
        with perturbed_weights(learner.model, config.weight_perturbation):
            learner.optimizer.zero_grad(set_to_none=True)
            _gradients(learner, sharing, images, labels, noise, progress, attacked)
    learner.optimizer.step()
    learner.take_into_average(config.ema)
    losses = sharing.added(parts)
    return losses, losses.pop("accuracy"), attacked[0] if len(attacked) == 1 else torch.cat(attacked)


def _gradients(
    learner: Learner,
    sharing: Sharing,
    images: Tensor,
    labels: Tensor,
    noise: Tensor,
    progress: float,
    attacked: Sequence[Tensor] | None = None,
) -> tuple[list[dict[str, Tensor]], list[Tensor]]:
    """Adds the batch's gradient to the weights: the values and the (attacked) images of each part of it.

    With `attacked`, the images of each part as an earlier attack has moved them, they are not attacked anew.
    """
    parts, moved = [], []
    for place, part in enumerate(sharing.parts):
        given, starts = (images[part.given], labels[part.given]), noise[part.in_batch]
        there = None if attacked is None else attacked[place]
        values, seen = sharing.learned(part, *given, starts, learner.step, progress, there)
        parts.append(values)
        moved.append(seen)
    return parts, moved


class Objective(nn.Module):
    """What a step makes small, of some images of its batch; a module, for DistributedDataParallel takes only those."""

    def __init__(self, config: TrainConfig, model: Model, sets: ClassSets | None = None) -> None:
        super().__init__()
        self.config, self.model = config, model
        self.gamma = GammaObjective(sets, model.classes) if sets and config.gamma_weight() else None
        self.builds_tree = self.gamma is not None and config.tree > 0
        self.reconstructs = model.reconstructs and config.reconstruction > 0

    def all_learn(self) -> bool:
        """Whether every weight gets a gradient: a decoder's do only where images are reconstructed."""
        return self.reconstructs or not self.model.reconstructs

    def forward(
        self,
        images: Tensor,
        labels: Tensor,
        noise: Tensor,
        step: int,
        progress: float,
        attacked: Tensor | None = None,
    ) -> tuple[dict[str, Tensor], Tensor]:
        """The loss and what it consists of, the accuracy (under attack), and the (attacked) images.

        They are attacked here, unless they are given as they were `attacked` before.
        """
        given = self.given(images, labels, noise, step, progress, attacked)
        return self.losses(**given), given["attacked"]

    def given(
        self,
        images: Tensor,
        labels: Tensor,
        noise: Tensor,
        step: int,
        progress: float,
        attacked: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """All that the losses of a step are computed from; the attack is the only part that is run for it."""
        if attacked is None:
            attacked = self._attacked(images, labels, noise, step, progress) if self.config.robust else images
        margin = torch.full((), spread_margin(step), device=images.device)
        return {"images": images, "labels": labels, "attacked": attacked, "margin": margin}

    def _attacked(self, images: Tensor, labels: Tensor, noise: Tensor, step: int, progress: float) -> Tensor:
        config, model, clean = self.config, self.model, None
        with precision(config, images.device):
            if config.trades:
                with torch.no_grad():
                    clean = model(images)
            return attack(config, model, images, labels, step, progress, clean, noise)

    def losses(self, images: Tensor, labels: Tensor, attacked: Tensor, margin: Tensor) -> dict[str, Tensor]:
        """The loss and what it consists of, and the accuracy (under attack)."""
        config, model = self.config, self.model
        name = loss_name(config, model)
        with precision(config, images.device):
            parse = model.parse(attacked, couplings=self.builds_tree) if has_capsules(model) else None
            scores = model(attacked) if parse is None else parse.scores
            if config.trades and config.robust:
                clean = model(images)
                loss = classification_loss(name, clean, labels, margin, config.smoothing)
                loss = loss + config.trades * divergence(name, clean, scores).mean()
            else:
                loss = classification_loss(name, scores, labels, margin, config.smoothing)
            losses = {"classification": loss.detach()}
            if self.reconstructs:
                assert has_capsules(model)
                assert parse is not None
                difference = reconstruction_loss(model.reconstruct(parse, labels).float(), images)
                losses["reconstruction"] = difference.detach()
                loss = loss + config.reconstruction * difference
        if self.gamma is not None:
            assert parse is not None
            term, active = self.gamma(parse, labels)
            losses |= {"gamma": term.detach(), ACTIVE: active}
            loss = loss + config.gamma_weight() * term
            if self.builds_tree:
                term = self.gamma.tree(parse, labels)
                losses["tree"] = term.detach()
                loss = loss + config.tree * term
        return {"loss": loss, **losses, "accuracy": (scores.argmax(dim=1) == labels).float().mean()}


def attack(
    config: TrainConfig,
    model: Model,
    images: Tensor,
    labels: Tensor,
    step: int,
    progress: float,
    clean: Tensor | None,
    noise: Tensor | None = None,
) -> Tensor:
    """The images as PGD moves them, its steps shrunk with eps; for TRADES away from the clean scores."""
    eps, size = radius(config, progress), step_size(config, progress)
    loss: str | AttackLoss = config.attack_loss
    if clean is not None:
        loss = Against(divergence_of(loss_name(config, model)), clean.detach())
    noise = draw_noise(config, images, step, len(images)) if noise is None else noise
    start = images + (2 * noise - 1) * eps
    ways: dict[str, Any] = {"steps": config.attack_steps, "loss": loss, "norm": config.norm}
    return climbed(model, images, labels, eps=eps, step=size, start=start, **ways)


def loss_name(config: TrainConfig, model: Model) -> str:
    """What the network learns from: its own loss, or the one that was chosen."""
    return model.loss if config.loss == "own" else config.loss


def precision(config: TrainConfig, device: torch.device) -> contextlib.AbstractContextManager[Any]:
    """Convolutions in bfloat16 or float32, as the configuration says or the device does best; routing in float32."""
    if config.precision == "bfloat16" or (config.precision == "auto" and device.type == "cuda"):
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return contextlib.nullcontext()
