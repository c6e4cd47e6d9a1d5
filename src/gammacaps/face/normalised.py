"""Whether a model seems to want normalised images: tried, not guessed."""

import torch
from torch import Tensor

from gammacaps.attacks.gradient import Classifier
from gammacaps.evaluation.interval import wilson
from gammacaps.models import Normalized

TRIED = 500  # images
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


@torch.no_grad()
def wants_normalised(model: Classifier, images: Tensor, labels: Tensor, batch: int) -> str | None:
    """A sentence where usual ways to normalise make the model right clearly more often; None where they do not."""
    if isinstance(model, Normalized):
        return None
    images, labels = images[:TRIED], labels[:TRIED]
    channels = images.shape[1]
    own = (images.mean((0, 2, 3)), images.std((0, 2, 3)).clamp_min(1e-3))
    ways = [own, (torch.full((channels,), 0.5), torch.full((channels,), 0.5))]
    if channels == 3:
        ways.append((torch.tensor(IMAGENET[0]), torch.tensor(IMAGENET[1])))
    plain = _right(model, images, labels, batch)
    best, (mean, std) = max(
        ((_right(model, _normalised(images, *way), labels, batch), way) for way in ways), key=lambda pair: pair[0]
    )
    if wilson(best, len(images))[0] <= wilson(plain, len(images))[1]:
        return None
    words = (
        f"{_percent(best, images)} of normalised images are right, and {_percent(plain, images)} of images in [0, 1]"
    )
    given = f"gammacaps.Normalized(model, mean={_tuple(mean)}, std={_tuple(std)})"
    return f"{words}: the model seems to want the former. Wrap it, with the numbers of its training, as {given}."


def _right(model: Classifier, images: Tensor, labels: Tensor, batch: int) -> int:
    return sum(
        int((model(part).argmax(1) == own).sum())
        for part, own in zip(images.split(batch), labels.split(batch), strict=True)
    )


def _normalised(images: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    return (images - mean.to(images).view(-1, 1, 1)) / std.to(images).view(-1, 1, 1)


def _percent(right: int, images: Tensor) -> str:
    return f"{100 * right / len(images):.1f}%"


def _tuple(numbers: Tensor) -> str:
    return f"({', '.join(f'{number:.3g}' for number in numbers.tolist())}{',' if len(numbers) == 1 else ''})"
