"""What the gamma-capsules of an audit are worth, and how hard it attacked them, in sentences."""

from typing import Any

from gammacaps.auditing.kinds import GAMMA
from gammacaps.data.group_names import listed
from gammacaps.radius import radius


def told(results: dict[str, Any]) -> list[str]:
    """All that can be said of an audit; older ones did not look at some of it."""
    return [*_apart(results), *_held_out(results), *_by_pattern(results), *_how_strong(results)]


def is_strong(results: dict[str, Any]) -> bool:
    """Whether the audit was made with more than the usual attack; older ones do not say so."""
    return bool(results["settings"].get("strong", False))


def _apart(results: dict[str, Any]) -> list[str]:
    gamma, sets, pairs = _gamma(results), results.get("class_sets"), results.get("pairs_told_apart")
    if not gamma or sets is None or pairs is None:
        return []
    classes = len(results["class_names"])
    of = f"{pairs} of {classes * (classes - 1) // 2} pairs of classes apart"
    if gamma == 1:
        return [f"The gamma-capsule tells {of}."]
    different = "one class set" if sets == 1 else f"{sets} different class sets"
    return [f"The {gamma} gamma-capsules have {different} and tell {of}."]


def _held_out(results: dict[str, Any]) -> list[str]:
    gamma, held = _gamma(results), results.get("held_out")
    if not gamma or held is None:
        return []
    return [
        f"{held} of {gamma} gamma-capsules {'remains' if held == 1 else 'remain'} so where the classes are found on "
        "one half of the images and tested on the other, both ways round."
    ]


def _by_pattern(results: dict[str, Any]) -> list[str]:
    found = results.get("pattern")
    if found is None:
        return []
    shares = ("clean", "attacked", "network_clean", "network_attacked")
    clean, attacked, own, own_attacked = (f"{100 * found[name]:.0f}%" for name in shares)
    return [
        f"From which of the {found['capsules']} capsules are active, and nothing else, the class is told in {clean} of "
        f"the images, and in {attacked} where the network's answer is attacked (PGD, eps {radius(found['eps'])}); on "
        f"the same {results['data']['images']:,} images the network itself is right in {own} and "
        f"{own_attacked}. By {found['method']}, fitted to clean images of one half and tested on the other."
    ]


def _how_strong(results: dict[str, Any]) -> list[str]:
    """What a strong audit did beyond the usual attack, and what that found."""
    tries = [one for layer in results["layers"] for one in layer.get("tries", ())]
    if not is_strong(results) or not tries:
        return []
    usual = tries[0]["steps"]
    more = [one for one in tries if one["steps"] > usual]
    starts = list(dict.fromkeys(_START.get(one["start"], one["start"]) for one in more))
    left = sum(one["pairs"] for one in more if one["start"] == "random" and one["loss"] == "length")
    crossed = sum(one["crossed"] for one in more)
    flat = sum(one["pairs"] for one in more if one["loss"] == "log-odds")
    words = (
        f"Strong audit: after the usual attack of {usual} steps, {more[0]['steps']} steps each from {listed(starts)}. "
        f"They switched {crossed:,} of the {left:,} pairs of an image and a capsule that the usual attack had left."
    )
    if flat:
        words += (
            f" In {flat:,} pairs the capsule was so long that squash is flat: there the log-odds were followed, too."
        )
    return [words]


_START = {
    "random": "a random point",
    "another random": "another",
    "the image itself": "the image itself",
    "the class attack's end": "where PGD on the class ends",
}


def _gamma(results: dict[str, Any]) -> int:
    return sum(layer["counts"][GAMMA] for layer in results["layers"])
