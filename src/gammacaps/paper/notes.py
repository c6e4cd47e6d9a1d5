"""What to read beside the figures of the reproduction: why they can differ, each with its number where there is one."""

from typing import Any

from gammacaps.paper.claims import bound
from gammacaps.paper.expected import EPS, TENTH, expected
from gammacaps.paper.parts.cells import Found
from gammacaps.paper.plan import DATA, name_of


def notes(found: Found, facts: dict[str, Any] | None) -> str:
    lines = [_bound(found), _units(found), *((_possible(facts), _em(facts)) if facts else ()), _dynamic(found)]
    lines += [_unequal(found), _attack(found), _data(found), _length(found)]
    return "\n\n".join(line for line in lines if line)


def _bound(found: Found) -> str:
    """What no network can keep at eps 0.5, and which of the paper's figures are above it."""
    names = {data: name_of(data, "sda", "robust") for data in DATA}
    shares = {data: bound(found[name].classes) for data, name in names.items() if name in found}
    if not shares:
        return ""
    above = [
        f"{rule.upper()} {row[2]:.2f}% on {DATA[data]} under {attack.upper()}"
        for attack in ("pgd", "fgsm")
        for data, share in shares.items()
        for rule, row in expected()[attack][data].items()
        if row[2] > 100 * share
    ]
    most = ", ".join(f"{DATA[data]} {share:.1%}" for data, share in shares.items())
    words = (
        "**The bound at eps 0.5.** Every image can there become the same grey one, so no deterministic classifier "
        f"keeps more than its most frequent class ({most} of the images measured)."
    )
    return words + (f" The paper's figures above it are attacks that fell short: {'; '.join(above)}." if above else "")


def _units(found: Found) -> str:
    """That the paper's figures on smallNORB do not fit its radii: those of a network trained on clean images."""
    record = found.get(name_of("smallnorb", "rba", "standard"))
    pgd = record.accuracy("pgd", 0.1) if record is not None else None
    if record is None or pgd is None:
        return ""
    told = expected()["pgd"]["smallnorb"]["rba"]
    words = (
        "**smallNORB's radii.** The paper scales pixels to [0, 1], and so do we. But smallNORB's images are pale: the "
        "pixels of one deviate by 0.1 from their mean, where MNIST's deviate by 0.3, so an eps of 0.1 weighs three "
        f"times as much. RBA trained on clean images keeps {told[0]:.2f}% under PGD at eps 0.1 in the paper, and "
        f"{100 * pgd['accuracy']:.1f}% here."
    )
    tenth = [row for eps in TENTH if (row := record.accuracy("pgd", eps)) is not None]
    if not tenth:
        return words
    ours = _listed([f"{100 * row['accuracy']:.1f}" for row in tenth])
    return words + (
        " If each image had been scaled to a deviation of 1, as Hinton, Sabour and Frosst (2018) do, the paper's radii "
        f"would be about a tenth in pixels: at {_listed(TENTH)} ours keeps {ours}%, where the paper has "
        f"{told[0]:.2f}, {told[1]:.2f} and {told[2]:.2f}% at ten times that. We do not know which scale the paper's "
        f"figures are on. Ours are trained under attack at {TENTH[1]:g}, since what is learned at 0.1 does not carry "
        "over to the toys of the test images, and measured at the paper's radii and at a tenth of them."
    )


def _possible(facts: dict[str, Any]) -> str:
    """What no classifier can keep, from pairs of images that can be turned into one another."""
    told = [
        f"{DATA[data]} {', '.join(f'{share:.1%} at {eps}' for eps, share in one['possible'].items())}"
        for data, one in facts["data"].items()
    ]
    images = ", ".join(sorted({f"{one['images']:,}" for one in facts["data"].values()}))
    return (
        "**What is possible.** Two images of different classes at most 2 eps apart can be turned into the same one, "
        "and a deterministic classifier is wrong on one of them. Pairing such images among so many test images of each "
        f"set ({images}) gives what no classifier can surpass on them, by eps in pixels: {'; '.join(told)}. More "
        "images would give more pairs: it is an upper bound, not what can be reached."
    )


def _em(facts: dict[str, Any]) -> str:
    """Why EM's T is high: it is so before any training."""
    iterations = ", ".join(f"{T:.2f} with {n}" for n, T in facts["em_T"].items())
    return (
        "**T of EM.** Ours comes from the routing more than from learning: its couplings are the likelihoods of 16 "
        "numbers under normal distributions that each iteration makes narrower. The mean T of the same network before "
        f"any training, by the number of its iterations: {iterations}; the networks of Table 1 take 3. That does not "
        "explain the paper's 0.24 to 0.31, which lie between 1 and 2 iterations."
    )


def _dynamic(found: Found) -> str:
    """What D leaves out: the deviation of the other capsules, from the images of the activation maps."""
    told = []
    for data, title in DATA.items():
        runs = [found[name] for seed in (0, 1) if (name := name_of(data, "sda", "standard", seed)) in found]
        means = [[(run.arrays[key] / 255).std(axis=0).mean() for key in ("map_alone", "map_shuffled")] for run in runs]
        told += [f"{title} {' and '.join(f'{alone:.2f} against {every:.2f}' for alone, every in means)}"] * bool(means)
    if not told:
        return ""
    return (
        "**D of one class.** D is the deviation of one capsule, the one that changes most (equation 3). One that tells "
        "two ways of writing a 0 apart is enough for a large D within class 0, so that its difference from D over all "
        "hangs on the seed. The mean deviation over all hidden capsules of SDA trained on clean images, within class 0 "
        f"against over all, on the 100 images of an activation map each, by seed: {'; '.join(told)}."
    )


def _unequal(found: Found) -> str:
    """The paper's rivals, with what becomes of them once they are trained as SDA is."""
    words = (
        "**Unequal training.** The paper says that SDA is trained under attack; its figures of RBA and EM look like "
        "those of networks trained on clean images. Table 2 and the table of FGSM repeat that; the fair table trains "
        "all alike."
    )
    for data, title in DATA.items():
        names = [name_of(data, "rba", kind) for kind in ("standard", "robust")]
        rows = [found[name].accuracy("pgd", 0.3) for name in names if name in found]
        if len(rows) == 2 and rows[0] and rows[1]:
            told = expected()["pgd"][data]["rba"][1]
            clean, attacked = (100 * row["accuracy"] for row in rows if row)
            words += (
                f" RBA on {title} under PGD-40 at eps 0.3: {told:.2f}% in the paper, here {clean:.1f}% trained on "
                f"clean images and {attacked:.1f}% under attack."
            )
    return words


def _attack(found: Found) -> str:
    """How the attack differs from the authors', and what that makes of the figures."""
    words = (
        "**The attack.** Ours starts at a random point and makes the margin between lengths large; the authors' code "
        "starts at the image and makes the cross-entropy of lengths large."
    )
    pairs = [
        (100 * theirs["accuracy"], 100 * ours["accuracy"], eps, record.name)
        for record in found.values()
        for eps in EPS
        if (theirs := record.by_authors(eps)) and (ours := record.accuracy("pgd", eps))
    ]
    if not pairs:
        return words
    ordered = sorted(pairs, key=lambda pair: pair[0] - pair[1])
    told = [
        f"`{name}` at eps {eps:g} keeps {theirs:.1f}% on theirs and {ours:.1f}% on ours"
        for theirs, ours, eps, name in (ordered[0], ordered[-1])
    ]
    more, fewer = (sum(sign * (theirs - ours) > 0 for theirs, ours, *_ in pairs) for sign in (1, -1))
    return words + (
        f" On their loss, but from a random start too, PGD-40 leaves more images right than on ours in {more} of "
        f"{len(pairs)} cases (a network at a radius; the second table under Table 2) and fewer in {fewer}. The two "
        f"ends: {told[0]}; {told[1]}. So no single loss is to be trusted: the worst case of the fair table has both."
    )


def _data(found: Found) -> str:
    sources = {r.figures["results"]["data"]["source"] for r in found.values() if r.figures["data"] == "smallnorb"}
    if not any(name.startswith("smallnorb48") for name in sources):
        return ""
    return (
        "**Data.** smallNORB is here a copy of 48 x 48 pixels made from images that had been JPEG-compressed, "
        "scaled to 28 x 28; each camera's view is an image of its own."
    )


def _length(found: Found) -> str:
    lengths = sorted({record.steps for record in found.values() if record.figures["train"]["robust"]})
    if not lengths:
        return ""
    words = _listed([f"{n:,}" for n in lengths])
    return f"**Length.** Under attack these were trained for {words} steps; the paper's for up to 15,000."


def _listed(values: Any) -> str:
    """Some values in words: a, b and c."""
    *first, last = (f"{value:g}" if isinstance(value, float) else str(value) for value in values)
    return f"{', '.join(first)} and {last}" if first else last
