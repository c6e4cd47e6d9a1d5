"""What the hidden capsules stand for: a gallery of cards for each layer, gamma-capsules first."""

from dataclasses import dataclass
from html import escape
from typing import Any

from gammacaps.auditing.capsule_names import rows_of
from gammacaps.auditing.kinds import GAMMA, KINDS
from gammacaps.auditing.table import uncertain
from gammacaps.explain.pictures import image_png
from gammacaps.explain.without_each import accuracies_without_each, can_switch_off, sufferers
from gammacaps.models import has_capsules
from gammacaps.radius import radius
from gammacaps.reporting.cards import caveat, real_tiles
from gammacaps.reporting.content import Picture, Value
from gammacaps.reporting.hidden_card import HiddenCard, draw_hidden
from gammacaps.reporting.section import Section
from gammacaps.reporting.study import Shown, Study

LEAST = 0.005  # a smaller loss of a class is not told
FEWEST, MOST = 6, 18  # cards that are not folded: a row at least, and as many as are gamma-capsules


@dataclass(frozen=True)
class Gallery:
    """The capsules of one hidden layer, and the name the network gives it; a note says which, where not all."""

    layer: str
    cards: tuple[HiddenCard, ...]
    note: str = ""


@dataclass(frozen=True)
class Galleries:
    layers: tuple[Gallery, ...]
    audited: bool  # an audit says of what kind each capsule is
    tau: float = 0.1  # a capsule is on when it is longer
    eps: float | None = None  # of gamma
    images: int = 0  # that the bars are of
    switched: int = 0  # images of which it is told how many are right without a capsule; 0 where it is told of none


def collect(study: Study) -> Galleries | None:
    names = [name for name in study.capsules if name != "class"]
    if not names:
        return None
    rates = {name: study.active_by_class(name) for name in names}
    layers = tuple(gallery(study, name, rates[name][0].tolist()) for name in names)
    told = any(card.suffers for each in layers for card in each.cards)
    _, tau, images = rates[names[0]]
    eps = None if study.audit is None else study.audit["eps"][-1]
    return Galleries(layers, study.has("audit"), tau, eps, images, len(study.chosen[0]) if told else 0)


def gallery(study: Study, layer: str, rates: list[list[float]]) -> Gallery:
    """`rates` are of all capsules of the layer, by class."""
    suffering = suffers(study, layer)
    names = study.test.class_names
    cards = [
        hidden_card(study, layer, one, tuple(zip(names, rates[one.index], strict=True)), suffering.get(one.index, ()))
        for one in study.capsules[layer]
    ]
    total = study.totals[layer]
    some = f"{total} capsules" if len(study.capsules) > 2 else ""  # where there are several layers
    if len(cards) < total:
        some = f"the {len(cards)} of {total:,} capsules that test images activate most"
    return Gallery(layer, tuple(sorted(cards, key=rank)), some)


def rank(card: HiddenCard) -> tuple[int, float, int]:
    """Gamma-capsules first, the largest gamma before; those that were not audited last."""
    kind = KINDS.index(card.kind) if card.kind else len(KINDS)
    return kind, 0.0 if card.gamma is None else -float(card.gamma.text), card.number


def hidden_card(
    study: Study, layer: str, shown: Shown, rates: tuple[tuple[str, float], ...], lost: tuple[str, ...]
) -> HiddenCard:
    row, name = _row(study.audit, layer, shown.index), f"capsule {shown.index} of layer {layer}"
    gamma = None if row is None or row["gamma"] is None else row["gamma"][-1]
    interval = None if row is None else row.get("gamma_interval")
    return HiddenCard(
        shown.index,
        Picture(image_png(shown.generated.image, side=1), f"The input generated for {name}"),
        shown.generated.activation,
        tuple((name, share) for name, share in rates if share == share),  # a class without images has none
        kind_of(study.audit, layer, shown.index),
        # Without the number that tells it from others of that name: it stands beside.
        speaks_for(study, layer, shown.index).removesuffix(f" ({shown.index})"),
        classes_of(study, layer, shown.index),
        None if gamma is None else gamma_of(layer, shown.index, gamma),
        "" if interval is None else f"{interval[0]:.2f} to {interval[1]:.2f}",
        None if row is None else active_in(layer, row),
        real_tiles(shown, name, 2),
        caveat(study, shown),
        row is None or not uncertain(row),
        lost,
    )


def gamma_of(layer: str, capsule: int, gamma: float) -> Value:
    """A capsule's gamma at the audit's largest radius, wherever it stands."""
    return Value(f"gamma {layer} {capsule}", f"{gamma:.2f}")


def active_in(layer: str, row: dict[str, Any]) -> Value:
    """In what share of the audit's images a capsule is active, wherever it stands."""
    return Value(f"active {layer} {row['capsule']}", f"{100 * row['active']:.0f}%")


def kind_of(audit: dict[str, Any] | None, layer: str, capsule: int) -> str:
    """What the audit calls a capsule; nothing where it did not look at it."""
    row = _row(audit, layer, capsule)
    return "" if row is None else row["kind"]


def speaks_for(study: Study, layer: str, capsule: int) -> str:
    """The name of a gamma-capsule's classes; without an audit, of those that it was trained for."""
    assert has_capsules(study.model)
    return study.names.get((study.model.layers.index(layer), capsule), "")


def classes_of(study: Study, layer: str, capsule: int) -> tuple[str, ...]:
    """The classes of a gamma-capsule; without an audit, those that it was trained for. Of any other capsule none."""
    row = _row(study.audit, layer, capsule)
    if row is None:
        given = study.about.class_sets.get(layer, ())
        own = given[capsule] if capsule < len(given) else ()
    else:
        own = row["classes"] if row["kind"] == GAMMA else ()
    return tuple(study.test.class_names[k] for k in own)


def suffers(study: Study, layer: str) -> dict[int, tuple[str, ...]]:
    """For each gamma-capsule of a layer, the classes whose accuracy falls most when it is off, and by how much."""
    rows = [row["capsule"] for row in rows_of(study.audit, layer) if row["kind"] == GAMMA]
    shown = [one.index for one in study.capsules[layer] if one.index in rows]
    if not shown or not can_switch_off(study.model):
        return {}
    before, without = accuracies_without_each(study.model, layer, shown, *study.chosen)
    names = study.test.class_names
    return {
        capsule: tuple(
            f"{names[one.label]} −{100 * one.lost:.0f} points" for one in sufferers(before, own) if one.lost > LEAST
        )
        or ("no class suffers",)
        for capsule, own in zip(shown, without, strict=True)
    }


def _row(audit: dict[str, Any] | None, layer: str, capsule: int) -> dict[str, Any] | None:
    """What the audit says of a capsule, if it looked at it."""
    return next((row for row in rows_of(audit, layer) if row["capsule"] == capsule), None)


def draw(shown: Galleries) -> str:
    return "".join(draw_gallery(each) for each in shown.layers) + f'<p class="note">{escape(explained(shown))}</p>'


def explained(shown: Galleries) -> str:
    words = (
        "Hidden capsules stand for parts that several classes may share. Left, an input generated for the capsule; "
        "right, the test images that make it longest, orange where it looks. The bars tell in what share of each "
        f"class’s images it is on, longer than {shown.tau:g} ({shown.images:,} test images)."
    )
    if shown.audited:
        assert shown.eps is not None
        words += (
            " The name is of the classes that it is on for and, by the audit, stays on for under attack "
            f"(eps {radius(shown.eps)}): then gamma, γ, is above 0, and it is a gamma-capsule. Dead means on in none "
            "of the images."
        )
    else:
        words += " The name is of the classes that it was trained for; whether that holds, gammacaps audit tells."
    if shown.switched:
        words += f" “Without it” is of {shown.switched:,} test images."
    return words


def draw_gallery(shown: Gallery) -> str:
    """Gamma-capsules and at least a row of cards are there to see, the others folded."""
    gamma = sum(card.kind == GAMMA for card in shown.cards)
    count = max(FEWEST, min(MOST, gamma)) if any(card.kind for card in shown.cards) else 2 * FEWEST
    count = len(shown.cards) if len(shown.cards) - count == 1 else count
    first, rest = shown.cards[:count], shown.cards[count:]
    seen, words = ("", f": {shown.note}") if shown.note else (' class="unseen"', "")  # of one layer there is no need
    title = f"<h3{seen}>{escape(f'Layer {shown.layer}{words}')}</h3>"
    folded = (
        f'<details class="rest"><summary>{escape(others(rest))}</summary>{card_list(rest)}</details>' if rest else ""
    )
    return f'<div data-gallery="{escape(shown.layer)}">{title}{card_list(first)}{folded}</div>'


def others(cards: tuple[HiddenCard, ...]) -> str:
    """As in: 10 more: 4 non-robust, 5 not useful, 1 dead."""
    counts = {kind: sum(card.kind == kind for card in cards) for kind in KINDS}
    kinds = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    return f"{len(cards)} more{f': {kinds}' if kinds else ''}"


def card_list(cards: tuple[HiddenCard, ...]) -> str:
    return f'<ul class="cards capsules">{"".join(draw_hidden(card) for card in cards)}</ul>'


HIDDEN = Section("hidden", "What the hidden capsules stand for", collect, draw, needs=("capsules",), first=True)
