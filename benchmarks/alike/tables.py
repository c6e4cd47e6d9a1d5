"""The tables in Markdown: what the gamma objective is worth, what capsules cost or gain, what else they withstand."""

from collections.abc import Iterator, Sequence

from benchmarks.alike.beyond_table import of_beyond
from benchmarks.alike.compare import (
    NONE,
    SHOWN,
    Row,
    accuracy,
    cell,
    count,
    difference,
    difference_cell,
    figure,
    grouped,
    markdown,
    percent,
    places,
    seconds,
)
from benchmarks.alike.measure import PGD
from benchmarks.alike.options import SHARED
from gammacaps.evaluation.by_image import WORST

CAPSULES = ("SDA", "RBA")
PAIRS = (("SDA", "RBA"), ("SDA", "CNN"), ("RBA", "CNN"))
ONE = ("data", "trained", "network", "gamma")  # what all seeds of a line share
SEEDS = "Means over seeds, each seed's own value in brackets where they differ."
INTERVALS = "Differences are in points, with paired 95% intervals over images; in brackets each seed's own."
ATTACKS = ("clean", "PGD-40", "worst case")


def tables(rows: Sequence[Row]) -> str:
    """All that the file holds; networks of other options have tables of their own."""
    blocks = [
        block
        for alike in grouped(rows, *SHARED).values()
        for block in (of_objective(alike), of_capsules(alike), of_beyond(alike))
    ]
    return "\n\n".join(block for block in blocks if block) or "There are no networks yet."


def about(rows: Sequence[Row]) -> str:
    """How these networks were trained and measured."""
    one, changed = rows[0], ""
    if one["attack_steps"] is not None:
        changed += f", {one['attack_steps']} attack steps in training"
    if one["eps_ramp"] is not None:
        changed += f", eps growing over {one['eps_ramp']:g} of it"
    return (
        f"Scale {one['scale']}, {one['steps']:,} steps of {one['batch']} images, rate {one['lr']:g}, precision "
        f"{one['precision']}{changed}; {one['images']:,} test images, worst case over {', '.join(one['attacks'])}."
    )


def of_objective(rows: Sequence[Row]) -> str:
    """What the gamma objective is worth: figures, gamma-capsules, and its differences."""
    own = [row for row in rows if row["network"] in CAPSULES]
    if not own:
        return ""
    groups = grouped(own, *ONE)
    heads = ("data, eps", "trained", "routing", "gamma")
    figures = [
        (
            *_names(key),
            *(cell(seeds, accuracy(attack)) for attack in SHOWN),
            _less_worst(seeds),
            *(cell(seeds, figure(name), places) for name in ("T", "D", "D0")),
        )
        for key, seeds in groups.items()
    ]
    blocks = [
        f"**What the gamma objective is worth.** {about(rows)} {SEEDS} D0 is D of class 0.",
        markdown((*heads, *ATTACKS, "PGD-40 less worst case", "T", "D", "D0"), figures),
    ]
    audits = {key: audited for key, seeds in groups.items() if (audited := [r for r in seeds if r["figures"]["audit"]])}
    if audits:
        blocks.append(_of_audits(audits, heads))
    told = list(_objective_differences(own))
    if told:
        blocks += [f"More with the gamma objective than without. {INTERVALS}", _differences_table(told)]
    return "\n\n".join(blocks)


def _of_audits(audits: dict[tuple[object, ...], list[Row]], heads: Sequence[str]) -> str:
    """Gamma-capsules and what they say together."""
    first = next(iter(audits.values()))[0]["figures"]["audit"]
    lines = []
    for key, seeds in audits.items():
        capsules, pairs = (seeds[0]["figures"]["audit"][name] for name in ("capsules", "pairs"))
        gammas = [cell(seeds, figure("audit", "gamma", k), count) for k in range(len(first["tau"]))]
        uncertain, held_out, sets, told_apart = (
            cell(seeds, figure("audit", name), count)
            for name in ("uncertain", "held_out", "class_sets", "pairs_told_apart")
        )
        pattern = [
            cell(seeds, figure("audit", "pattern", name))
            for name in ("clean", "attacked", "network_clean", "network_attacked")
        ]
        of_all = f"{'; '.join(gammas)} of {capsules}"
        lines.append((*_names(key), of_all, uncertain, held_out, sets, f"{told_apart} of {pairs}", *pattern))
    taus = ", ".join(f"{tau:g}" for tau in first["tau"])
    columns = (
        *(f"gamma-capsules at tau {taus}", "not certain", "on held-out halves", "class sets", "pairs told apart"),
        *("pattern, clean", "pattern, attacked", "network, clean", "network, attacked"),
    )
    words = (
        f"Gamma-capsules by a strong audit of {first['images']} images; what follows their number is at tau 0.5. "
        "Pattern: the class told from which hidden capsules are active, and nothing else."
    )
    return f"{words}\n\n{markdown((*heads, *columns), lines)}"


def _objective_differences(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    for (data, trained, network), own in grouped(rows, "data", "trained", "network").items():
        by_weight = {gamma: seeds for (gamma,), seeds in grouped(own, "gamma").items()}
        for gamma, seeds in by_weight.items():
            if gamma and 0 in by_weight:
                words = f"{network}, gamma {gamma:g} less gamma 0"
                yield data, trained, words, *_differences(seeds, by_weight[0])


def of_capsules(rows: Sequence[Row]) -> str:
    """SDA, RBA and the CNN beside each other, and their differences."""
    if len({row["network"] for row in rows}) < 2:
        return ""
    figures = [
        (
            *_names(key),
            *(f"{seeds[0][name]:,}" for name in ("weights", "weights_of_decoder")),
            cell(seeds, lambda row: row["seconds"]["training"], seconds),
            *(cell(seeds, accuracy(attack)) for attack in SHOWN),
        )
        for key, seeds in grouped(rows, *ONE).items()
    ]
    heads = ("data, eps", "trained", "network", "gamma", "weights", "of the decoder", "training, s", *ATTACKS)
    blocks = [
        f"**What capsules cost or gain.** {about(rows)} {SEEDS} All networks have the same convolutions.",
        markdown(heads, figures),
    ]
    told = list(_network_differences(rows))
    if told:
        blocks += [INTERVALS, _differences_table(told)]
    return "\n\n".join(blocks)


def _network_differences(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    """Capsules of each weight of the gamma objective less others of the same, and less the CNN, which has none."""
    for (data, trained), own in grouped(rows, "data", "trained").items():
        by = grouped(own, "network", "gamma")
        for first, second in PAIRS:
            for gamma in sorted(gamma for network, gamma in by if network == first):
                beside = by.get((second, 0.0 if second == "CNN" else gamma))
                if beside:
                    words = f"{first}, gamma {gamma:g}, less {second}"
                    yield data, trained, words, *_differences(by[first, gamma], beside)


def _differences(first: Sequence[Row], second: Sequence[Row]) -> list[str]:
    return [difference_cell(difference(first, second, attack)) for attack in SHOWN]


def _differences_table(told: Sequence[tuple[str, ...]]) -> str:
    return markdown(("data, eps", "trained", "difference", *ATTACKS), told)


def _less_worst(seeds: Sequence[Row]) -> str:
    """What other attacks break beyond PGD-40, of the same networks."""
    found = difference(seeds, seeds, PGD, WORST)
    return NONE if found is None else percent(found.value)


def _names(key: tuple[object, ...]) -> tuple[str, ...]:
    data, trained, network, gamma = key
    return str(data), str(trained), str(network), f"{gamma:g}"
