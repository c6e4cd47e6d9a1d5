"""The picture at the top of the README: an attack that breaks a plain network and fails on a gamma-capsule network.

    python scripts/readme_picture.py                 # docs/images/attack-fails.png, by the shipped fashion-mini

Shown are images that make the point. The line below them says how often it holds on all test images.
"""

import argparse
import textwrap
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

import gammacaps
from gammacaps.attacks import pgd
from gammacaps.auditing.capsule_names import capsule_names, rows_of
from gammacaps.auditing.kinds import GAMMA
from gammacaps.explain import looks_at, tinted
from gammacaps.files import write_figure
from gammacaps.models import CapsuleModel
from gammacaps.runs.run import Run

EPS, TAU, ROWS, CAPSULES = 0.1, 0.5, 3, 3
DATA = "fashion-mini"
HIDDEN = 1  # the layer's index


@dataclass(frozen=True)
class Example:
    """One test image, what the attack made of it for both networks, and the capsules that were active nevertheless."""

    image: Tensor
    broken: Tensor
    held: Tensor
    truth: str
    wrong: str
    capsules: list[tuple[int, str]]


def plain_network(images: Tensor, labels: Tensor) -> nn.Module:
    """A small CNN, trained on clean images."""
    torch.manual_seed(0)
    net = nn.Sequential(
        *(nn.Conv2d(1, 16, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(32 * 7 * 7, 10)),
    )
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(10):
        for batch in torch.randperm(len(images)).split(100):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(images[batch]), labels[batch]).backward()
            optimizer.step()
    return net.eval()


def answers(net: nn.Module, images: Tensor) -> Tensor:
    with torch.no_grad():
        return torch.cat([net(part).argmax(1) for part in images.split(100)])


@dataclass(frozen=True)
class Attacked:
    """What became of all test images of one network."""

    images: Tensor  # after the attack
    right: Tensor  # before it
    answers: Tensor  # after it
    held: Tensor  # right before and after
    figures: str


def attack(name: str, net: nn.Module, images: Tensor, labels: Tensor) -> Attacked:
    torch.manual_seed(0)
    batches = zip(images.split(100), labels.split(100), strict=True)
    changed = torch.cat([pgd(net, some, of_class, eps=EPS) for some, of_class in batches])
    right, after = answers(net, images) == labels, answers(net, changed)
    held = right & (after == labels)
    clean, kept = (100 * float(share.float().mean()) for share in (right, held))
    return Attacked(changed, right, after, held, f"{name}: {clean:.0f}% right clean, {kept:.0f}% attacked")


def choose(run: Run, net: CapsuleModel, plain: nn.Module, images: Tensor, labels: Tensor) -> tuple[list[Example], str]:
    """Images that the attack breaks for the plain network alone, of different classes; and all figures."""
    names = gammacaps.data.load_set(DATA).class_names
    audit = run.audit()
    called = capsule_names(net.layers, audit, run.config.class_sets, names, DATA)
    sets = {row["capsule"]: row["classes"] for row in rows_of(audit, net.layers[HIDDEN]) if row["kind"] == GAMMA}
    broken, ours = attack("plain CNN", plain, images, labels), attack(run.folder.name, net, images, labels)
    with torch.no_grad():
        lengths = torch.cat([net.parse(part).activations[HIDDEN] for part in ours.images.split(100)])
    found: dict[int, Example] = {}  # of each class the first image with the most named capsules
    for k in (broken.right & ~broken.held & ours.held).nonzero().flatten().tolist():
        label = int(labels[k])
        active = [j for j, own in sets.items() if label in own and lengths[k, j] > TAU]
        active.sort(key=lambda j: len(sets[j]))  # those that say most come first
        one_a_name = list({called[HIDDEN, j]: j for j in reversed(active)}.values())[::-1]
        shown = [(j, called[HIDDEN, j]) for j in one_a_name[:CAPSULES]]
        if len(shown) > len(found[label].capsules if label in found else ()):
            wrong = names[int(broken.answers[k])]
            found[label] = Example(images[k], broken.images[k], ours.images[k], names[label], wrong, shown)
    rows: list[Example] = []
    while found and len(rows) < ROWS:
        rows.append(found.pop(max(found, key=lambda label: newly_named(found[label], rows))))
    both = f"{broken.figures}; {ours.figures}"
    return rows, f"All {len(images)} test images, PGD of 40 steps at eps {EPS}: {both}."


def newly_named(example: Example, rows: list[Example]) -> int:
    """How many of its capsules' names no row has yet."""
    return len({name for _, name in example.capsules} - {name for row in rows for _, name in row.capsules})


def draw(rows: list[Example], net: CapsuleModel, below: str, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    columns = 3 + CAPSULES
    figure, axes = plt.subplots(len(rows), columns, figsize=(1.75 * columns, 2.2 * len(rows) + 0.9), squeeze=False)
    heads = [
        "image",
        "attacked:\na plain CNN breaks",
        "attacked:\nthe capsules hold",
        "active capsules, and where they look",
    ]
    for place, head in enumerate(heads):
        axes[0, place].set_title(head, fontsize=11, pad=8, loc="left" if place == 3 else "center", fontweight="bold")
    for line, row in zip(axes, rows, strict=True):
        looks = looks_at(net, row.held.repeat(len(row.capsules), 1, 1, 1), HIDDEN, [j for j, _ in row.capsules])
        seen = tinted(row.held.repeat(len(row.capsules), 1, 1, 1), looks)
        said = [(row.truth, "black"), (f"✗ {row.wrong}", "#b3261e"), (f"✓ {row.truth}", "#1b6e2e")]
        said += [(textwrap.fill(f"“{name}”", 19), "black") for _, name in row.capsules]
        pictures = [*(image.expand(3, -1, -1) for image in (row.image, row.broken, row.held)), *seen]
        for axis in line:
            axis.set_axis_off()
        for axis, picture, (words, colour) in zip(line, pictures, said, strict=False):
            axis.imshow(picture.permute(1, 2, 0).numpy(), interpolation="nearest")
            axis.text(0.5, -0.06, words, transform=axis.transAxes, ha="center", va="top", fontsize=12, color=colour)
    figure.text(0.5, 0.012, below, ha="center", fontsize=11, color="#444444")
    figure.subplots_adjust(
        left=0.01, right=0.99, top=1 - 0.55 / figure.get_figheight(), bottom=0.11, wspace=0.06, hspace=0.3
    )
    write_figure(path, figure)
    plt.close(figure)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument(
        "network", nargs="?", default="fashion-mini", help="a shipped network's name or a run's folder"
    )
    options.add_argument("--out", type=Path, default=Path("docs/images/attack-fails.png"))
    options.add_argument("--limit", type=int, default=500, help="how many test images are looked at")
    given = options.parse_args()
    run = Run(given.network)
    net = gammacaps.load(given.network)
    assert isinstance(net, CapsuleModel)
    plain = plain_network(*gammacaps.load_data(DATA, split="train"))
    images, labels = gammacaps.load_data(DATA)
    rows, below = choose(run, net, plain, images[: given.limit], labels[: given.limit])
    if not rows:
        raise SystemExit(f"No image shows it for {given.network}: does it have gamma-capsules (gammacaps audit)?")
    draw(rows, net, below, given.out)
    print(below)


if __name__ == "__main__":
    main()
