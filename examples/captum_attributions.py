"""Which pixels speak for a class, by Captum's integrated gradients: python examples/captum_attributions.py [RUN]

RUN is a run's folder or a shipped network's name, trained on fashionMNIST; without it the small one that ships.

A network of gammacaps is a plain torch module, images (B, C, H, W) to scores (B, N), so Captum takes it as it is,
for pixels and for primary capsules.
"""

import sys

import torch
from captum.attr import IntegratedGradients, LayerGradientXActivation

import gammacaps


def main(run: str = "fashion-mini") -> None:
    model = gammacaps.load(run).eval()
    images, labels = gammacaps.load_data("fashion-mini")
    images, labels = images[:4], labels[:4]

    gradients = IntegratedGradients(model)
    pixels, error = gradients.attribute(images, target=labels, n_steps=1000, return_convergence_delta=True)
    # Integrated gradients share out the score: over all pixels they sum to score(image) - score(black).
    with torch.no_grad():
        gained = (model(images) - model(torch.zeros_like(images))).gather(1, labels[:, None]).squeeze(1)
    for label, shared, score, missed in zip(labels.tolist(), pixels.flatten(1).sum(1), gained, error, strict=True):
        print(f"class {label}: {score:+.4f} against a black image, {shared:+.4f} by pixels, {missed:+.1e} missing")

    capsules = LayerGradientXActivation(model, model.primary).attribute(images, target=labels).sum(-1)  # B I
    for label, parts in zip(labels.tolist(), capsules, strict=True):
        print(f"class {label}: most by primary capsule {int(parts.argmax())} of {len(parts)} ({parts.max():+.5f})")


if __name__ == "__main__":
    main(*sys.argv[1:2])
