"""What the page and its HTML both say, in words."""

from pathlib import Path

from gammacaps.paper.claims.claim import Claim, Verdict
from gammacaps.paper.readings import Records, full_steps
from gammacaps.paper.recipes import RECIPE_RULE
from gammacaps.paper.trainings import PLATEAU_RULE

VERDICTS = {True: "held", False: "did not hold", None: "can't be told"}
LEANING = {True: "so far: yes", False: "so far: no", None: ""}
PAPER_SAYS = (
    "Capsules routed by SDA form a tree (T) and follow the image (D), where RBA's and EM's do not. Trained under "
    "attack, such a network keeps far more images under PGD than RBA and EM. And one can see what its capsules look "
    "for. But the paper trained only SDA under attack."
)
RULES_APPLY = (
    "Each claim has one rule. It is judged by 95% intervals over the test images, the two networks compared image by "
    "image, and by the seeds. A verdict needs networks of full length, two seeds, and answers kept image by image "
    "(bits). Where one of these is missing, an interval holds the rule's limit or the seeds disagree, the claim "
    "can't be told, and *so far* says what the networks that there are point to. A dash: the claim is not about this "
    "data set."
)
GLOSSARY = """\
- **RBA, EM, SDA**: rules by which capsules choose parents in the next layer: routing by agreement, by expectation
  maximisation, and the paper's, by scaled distance agreement.
- **T**: how near the chosen parents are to a tree, from 0 to 1. **D**: how much the length of the capsule that changes
  most deviates from image to image.
- **PGD-40, FGSM**: attacks of 40 steps and of one, that change no pixel by more than **eps**.
- **Worst case**: an image is right only if it stands under every attack of the strong suite."""
QUICK = (
    "This is the cut-down version (--quick): small networks, a few hundred steps, some dozens of test images. It shows "
    "that everything runs; its figures say nothing of the paper's networks."
)
ABOUT = (
    "Made by `gammacaps reproduce --page` from the figures in [{folder}/]({folder}), never by hand; all figures are in "
    "[the details]({details}). `gammacaps reproduce --dry-run` tells what each run costs. "
    f"{PLATEAU_RULE} {RECIPE_RULE} "
    'The paper: Peer, Stabinger and Rodríguez-Sánchez, "Increasing the adversarial robustness and explainability of '
    'capsule networks with γ-capsules".'
)
# Title, part of the details, and the plots or pictures that show it.
PICTURES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("All trained under the same attack", "fair", ("fair",)),
    ("FGSM", "fgsm", ("fgsm",)),
    ("How long class capsules become", "activations", ("activations",)),
    ("Confusion, early and late", "confusion", ("confusion",)),
    ("What hidden capsules look for", "hidden", ("hidden",)),
    ("Activation maps", "maps", ("maps",)),
    ("Filters of the first convolution", "filters", ("filters",)),
)

PICTURED = {
    "confusion": "Confusion matrix",
    "features": "Inputs generated for class capsules",
    "hidden": "Inputs generated for hidden capsules",
    "maps": "Activation maps",
    "filters": "Filters of the first convolution",
}
WHOSE = {"paper": "the paper's", "robust": "trained under attack", "standard": "trained on clean images"}


def pictured(folder: Path, name: str) -> dict[Path, str]:
    """The pictures that the details have drawn whose names begin so, each with what it shows."""
    paths = sorted(folder.glob(f"{name}*.png"), key=lambda path: (len(path.name), path.name))
    shown = {}
    for path in paths:
        _, _, which = path.stem.partition("-")
        whose = f"ours after {int(which):,} steps" if which.isdecimal() else WHOSE.get(which, which)
        shown[path] = f"{PICTURED[name]}{f', {whose}' if whose else ''}"
    return shown


def counted(judged: dict[Claim, Verdict]) -> str:
    """How many claims held, did not, and can't be told, with what these point to."""
    held = [verdict.held for verdict in judged.values()]
    yes, no = held.count(True), held.count(False)
    words = f"Of {len(judged)} claims {yes} held, {no} did not, {held.count(None)} can't be told"
    words = f"None of the {len(judged)} claims can be told yet" if held.count(None) == len(held) else words
    undecided = [verdict for verdict in judged.values() if verdict.held is None]
    if not undecided:
        return f"{words}."
    points = [verdict.leaning for verdict in undecided]
    reasons = [" ".join(why.split(" (")[0].split()) for verdict in undecided for why in verdict.why]
    common = sorted(dict.fromkeys(reasons), key=lambda why: -reasons.count(why))
    because = ", ".join(f"{why} ({sum(any(why in each for each in v.why) for v in undecided)})" for why in common)
    return (
        f"{words}. Of these {len(undecided)} the networks that there are speak for {points.count(True)} and against "
        f"{points.count(False)}. Why they can't be told, with the number of claims: {because}."
    )


def leaning(verdict: Verdict, data: str) -> str:
    """What the figures point to where the claim can't be told on a data set."""
    says = LEANING[verdict.says[data]] if verdict.on[data] is None else ""
    return f" ({says})" if says else ""


def lengths(records: Records) -> str:
    """A warning where plots hold trainings of different lengths, or shorter ones than the paper's."""
    runs = [record for record in records.values() if full_steps(record)]
    if not any(record.steps < full_steps(record) for record in runs):
        return ""
    steps = sorted({record.steps for record in runs})
    listed = ", ".join(f"{n:,}" for n in steps)
    return (
        f"**Lengths differ.** The trainings in these plots took {listed} steps; the paper's took 15,000. Each mark or "
        "line says its own. Do not read a difference between networks of different lengths as one between their rules."
    )
