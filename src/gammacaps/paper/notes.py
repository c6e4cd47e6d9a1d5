"""What to read beside the figures of the reproduction: why they can differ, each with its number where there is one."""

from typing import Any

from gammacaps.paper.expected import EPS, expected, of_paper
from gammacaps.paper.plan import ALIKE, DATA, JUDGED, PALE, RULES, TENTH, name_of
from gammacaps.paper.readings import Records, lacking_attacks, most_frequent_share, unlike_steps


def notes(measured: Records, facts: dict[str, Any] | None) -> str:
    lines = [_bound(measured), _units(measured)]
    lines += [_possible(facts), _em(facts, measured)] if facts else []
    lines += [_dynamic(measured)]
    lines += [_unequal(measured), _attack(measured), _loss(measured), _training(measured), _data(measured)]
    return "\n\n".join(line for line in lines if line)


def _bound(measured: Records) -> str:
    """What no network can keep at eps 0.5, and which of the paper's figures are above it."""
    names = {data: name_of(data, "sda", "robust") for data in DATA}
    shares = {data: most_frequent_share(measured[name].classes) for data, name in names.items() if name in measured}
    if not shares:
        return ""
    above = [
        f"{rule.upper()} {row[2]:.2f}% on {DATA[data]} under {attack.upper()}{' (if in pixels)' * (data == PALE)}"
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


def _units(measured: Records) -> str:
    """That the paper's figures on smallNORB do not fit its radii: those of a network trained on clean images."""
    record = measured.get(name_of(PALE, "rba", "standard"))
    pgd = record.accuracy("pgd", 0.1) if record is not None else None
    if record is None or pgd is None:
        return ""
    paper = expected()["pgd"][PALE]["rba"]
    words = (
        "**smallNORB's radii.** The paper scales pixels to [0, 1], and so do we. But smallNORB's images are pale: the "
        "pixels of one deviate by 0.1 from their mean, where MNIST's deviate by 0.3, so an eps of 0.1 weighs three "
        f"times as much. RBA trained on clean images keeps {paper[0]:.2f}% under PGD at eps 0.1 in the paper, and "
        f"{100 * pgd['accuracy']:.1f}% here."
    )
    tenth = [row for eps in TENTH if (row := record.accuracy("pgd", eps)) is not None]
    if not tenth:
        return words
    ours = _listed([f"{100 * row['accuracy']:.1f}" for row in tenth])
    return words + (
        " If each image had been scaled to a deviation of 1, as Hinton, Sabour and Frosst (2018) do, the paper's radii "
        f"would be about a tenth in pixels: at {_listed(TENTH)} ours keeps {ours}% (40 steps of "
        f"{_listed(sorted({row['step'] for row in tenth}))}), where the paper has "
        f"{paper[0]:.2f}, {paper[1]:.2f} and {paper[2]:.2f}% at ten times that. We do not know which scale the paper's "
        f"figures are on. Ours are trained under attack at {TENTH[1]:g}, and measured at the paper's radii and at a "
        "tenth of them."
    )


def _possible(facts: dict[str, Any]) -> str:
    """What no classifier can keep, from pairs of images that can be turned into one another."""
    by_data = [
        f"{DATA[data]} {', '.join(f'{share:.1%} at {eps}' for eps, share in one['possible'].items())}"
        for data, one in facts["data"].items()
    ]
    images = ", ".join(sorted({f"{one['images']:,}" for one in facts["data"].values()}))
    return (
        "**What is possible.** Two images of different classes at most 2 eps apart can be turned into the same one, "
        "and a deterministic classifier is wrong on one of them. Pairing such images among so many test images of each "
        f"set ({images}) gives what no classifier can surpass on them, by eps in pixels: {'; '.join(by_data)}. More "
        f"images would give more pairs: it is an upper bound, not what can be reached.{_above(facts)}"
    )


def _above(facts: dict[str, Any]) -> str:
    """The paper's figures below eps 0.5 that are above what is possible."""
    above = [
        f"{rule.upper()} {paper:.2f}% on {DATA[data]} under {attack.upper()} at eps {eps:g}"
        for attack in ("pgd", "fgsm")
        for data, one in facts["data"].items()
        for rule, row in expected()[attack][data].items()
        for eps, paper in zip(EPS[:2], row, strict=False)
        if paper > 100 * one["possible"][f"{eps:g}"]
    ]
    return f" Of the paper's figures, if its radii are in pixels, above that: {'; '.join(above)}." if above else ""


def _em(facts: dict[str, Any], measured: Records) -> str:
    """Why EM's T is high: it is so before any training; and by layer after it, with each number of iterations."""
    iterations = ", ".join(f"{T:.2f} with {n}" for n, T in facts["em_T"].items())
    words = (
        "**T of EM.** Ours comes from the routing more than from learning: its couplings are the likelihoods of 16 "
        "numbers under normal distributions that each iteration makes narrower. The mean T of the same network before "
        f"any training, by the number of its iterations: {iterations}. The paper has 0.24 to 0.31, which lie between 1 "
        "and 2, and does not tell how many it took; Gritzman's default is 2."
    )
    cells: list[str] = []
    apart: dict[int, list[float]] = {}
    for rule, count in (("em2", 2), ("em", 3)):
        for data, title in DATA.items():
            record = measured.get(name_of(data, rule, "standard"))
            if record is not None:
                T = record.figures["results"]["T"]
                layers = ", ".join(f"{name} {value:.2f}" for name, value in T["layers"].items())
                cells.append(f"{title} with {count} {T['mean']:.2f}{f' ({layers})' if layers else ''}")
                apart.setdefault(count, []).append(abs(T["mean"] - of_paper("structure", data, rule)["T"]))
    if cells:
        words += f" After training, by layer: {'; '.join(cells)}."
    if len(apart) == 2:
        means = {count: sum(gaps) / len(gaps) for count, gaps in apart.items()}
        nearer = min(means, key=lambda count: means[count])
        words += f" {nearer} iterations are nearer to the paper's T ({means[nearer]:.2f} apart on average)."
    return words


def _dynamic(measured: Records) -> str:
    """What D leaves out: the deviation of the other capsules, from the images of the activation maps."""
    by_data = []
    for data, title in DATA.items():
        cells = []
        for rule, seed in (("rba", 0), ("em", 0), ("sda", 0), ("sda", 1)):
            record = measured.get(name_of(data, rule, "standard", seed))
            if record is not None:
                alone, every = ((record.arrays[key] / 255).std(axis=0).mean() for key in ("map_alone", "map_shuffled"))
                cells.append(f"{RULES[rule]} {alone:.3f} against {every:.3f}")
        if cells:
            by_data.append(f"{title}: {', '.join(cells)}")
    if not by_data:
        return ""
    return (
        "**D of one class.** D is the deviation of a single capsule, the one that changes most (equation 3), so one "
        "that changes within class 0 is enough for a large D there. The mean deviation over all hidden capsules (for "
        "EM over types), within class 0 against over all, on the 100 images of an activation map each (trained on "
        f"clean images, SDA by seed): {'; '.join(by_data)}."
    )


def _unequal(measured: Records) -> str:
    """The paper's rivals, with what becomes of them once they are trained as SDA is."""
    words = (
        "**Unequal training.** The paper says that SDA is trained under attack; its figures of RBA and EM look like "
        "those of networks trained on clean images. Table 2 and the table of FGSM repeat that; the fair table trains "
        "all alike."
    )
    for data, title in DATA.items():
        clean, attacked = (measured.get(name_of(data, "rba", kind)) for kind in ("standard", "robust"))
        if clean is None or attacked is None:
            continue
        eps = attacked.figures["train"]["eps"]
        rows = [row for record in (clean, attacked) if (row := record.accuracy("pgd", eps)) is not None]
        if len(rows) == 2:
            paper = f"{expected()['pgd'][data]['rba'][EPS.index(eps)]:.2f}% in the paper, here " if eps in EPS else ""
            words += (
                f" RBA on {title} under PGD-40 at eps {eps:g}: {paper}{100 * rows[0]['accuracy']:.1f}% trained on "
                f"clean images and {100 * rows[1]['accuracy']:.1f}% under attack{unlike_steps(rows)}."
            )
    return words


def _attack(measured: Records) -> str:
    """How the attack differs from the authors', and what that makes of the figures."""
    words = (
        "**The attack.** Ours starts at a random point and makes the margin between lengths large; the authors' code "
        "starts at the image and makes the cross-entropy of lengths large."
    )
    pairs = [
        (theirs, ours, f"`{record.name}` at eps {eps:g}")
        for record in measured.values()
        for eps in EPS
        if (theirs := record.by_authors(eps)) and (ours := record.accuracy("pgd", eps))
    ]
    if not pairs:
        return words
    fewer = sum(theirs["interval"][1] < ours["interval"][0] for theirs, ours, _ in pairs)
    more = sum(ours["interval"][1] < theirs["interval"][0] for theirs, ours, _ in pairs)
    theirs, ours, where = min(pairs, key=lambda pair: pair[0]["accuracy"] - pair[1]["accuracy"])
    return words + (
        f" On their loss, from a random start too, PGD-40 leaves clearly fewer images right than on ours in {fewer} of "
        f"{len(pairs)} cases, and clearly more in {more} (a case is a network at a radius, the second table under "
        f"Table 2; clearly: the 95% intervals do not meet). The largest difference: {where} keeps "
        f"{100 * theirs['accuracy']:.1f}% on theirs and {100 * ours['accuracy']:.1f}% on ours. The networks of Table 2 "
        "that were trained under attack know PGD on the margin; the worst case of the fair table has other losses too."
    )


def _loss(measured: Records) -> str:
    """What becomes of the fair table's networks where they learn from cross-entropy, and are attacked on it."""
    by_data, clearly, fewer = [], [], []
    for data in JUDGED:
        cells = []
        for rule in ALIKE:
            pair = [record for kind in ("robust", "entropy") if (record := measured.get(name_of(data, rule, kind)))]
            rows = [row for record in pair if (row := record.worst(record.figures["train"]["eps"])) is not None]
            if len(rows) < 2:
                continue
            before, after = rows
            fewer += [f"{RULES[rule]} on {DATA[data]}"] if any(lacking_attacks(record, pair) for record in pair) else []
            cells.append(f"{RULES[rule]} {100 * before['accuracy']:.1f} and {100 * after['accuracy']:.1f}%")
            if before["interval"][1] < after["interval"][0] or after["interval"][1] < before["interval"][0]:
                clearly.append(f"{RULES[rule]}'s on {DATA[data]}")
        by_data += [f"{DATA[data]}: {', '.join(cells)}"] if cells else []
    if not by_data:
        return ""
    return (
        "**The loss.** In the worst case at the radius of training, with each network's own loss under PGD on the "
        f"margin, and with cross-entropy under PGD on cross-entropy (one seed each): {'; '.join(by_data)}. Clearly "
        f"different (the 95% intervals do not meet): {', '.join(clearly) or 'none'}."
        f"{_fewer(fewer)}"
    )


def _fewer(names: list[str]) -> str:
    return f" Not over the same attacks (the fair table): {_listed(names)}." if names else ""


def _data(measured: Records) -> str:
    sources = {r.figures["results"]["data"]["source"] for r in measured.values() if r.figures["data"] == PALE}
    if not any(name.startswith("smallnorb48") for name in sources):
        return ""
    words = (
        "**Data.** smallNORB is here a copy of 48 x 48 pixels made from images that had been JPEG-compressed, "
        "scaled to 28 x 28; each camera's view is an image of its own."
    )
    if not all(record.has_bits for record in measured.values() if record.figures["data"] == PALE):
        words += (
            " This copy lists its test images toy by toy. Records without bits are of the first images: 1,000 or 2,000 "
            "show one of the five toys of each class, 10,000 two. Records with bits are of images drawn from all toys."
        )
    return words


def _training(measured: Records) -> str:
    """How the trainings differ from the paper's: their attack, rate and length."""
    lengths = [
        sorted({record.steps for record in measured.values() if record.figures["train"]["robust"] is robust})
        for robust in (False, True)
    ]
    if not all(lengths):
        return ""
    clean, attacked = (_listed([f"{n:,}" for n in one]) for one in lengths)
    words = (
        f"**Training.** On clean images ours were trained for {clean} steps, under attack for {attacked}; of the "
        "paper's lengths only the 15,000 steps of the network that it looks into are known. Under attack ours take 10 "
        "steps where the paper takes 40 of 0.01, eps grows from 0, the rate falls to 0, and the weights measured are "
        "their running mean (the table of runs, and docs/decisions.md)."
    )
    if any(record.figures["train"].get("standardize") for record in measured.values()):
        words += (
            " On smallNORB those under attack start standardized and those on clean images do not, so that they differ "
            "by more than the attack."
        )
    behind = []
    for data, title in DATA.items():
        record, paper = measured.get(name_of(data, "em", "standard")), expected()["structure"][data]["em"]["accuracy"]
        if record is not None and 100 * record.figures["results"]["clean"]["interval"][1] < paper:
            ours = 100 * record.figures["results"]["clean"]["accuracy"]
            behind.append(f"{title} {ours:.1f}% (paper {paper:.2f}%)")
    if behind:
        words += f" EM is less accurate than the paper's, so its figures are of a weaker network: {', '.join(behind)}."
    return words


def _listed(values: Any) -> str:
    """Some values in words: a, b and c."""
    *first, last = (f"{value:g}" if isinstance(value, float) else str(value) for value in values)
    return f"{', '.join(first)} and {last}" if first else last
