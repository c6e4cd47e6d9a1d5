"""What the hidden capsules stand for: a gallery of generated inputs for each layer."""

import json
from dataclasses import dataclass
from html import escape
from typing import Any

from gammacaps.auditing.kinds import GAMMA
from gammacaps.explain.pictures import image_png
from gammacaps.reporting.cards import CapsuleCard, caveat, length_bar, note, real, real_strip, served
from gammacaps.reporting.content import Picture
from gammacaps.reporting.markup import paragraphs, picture
from gammacaps.reporting.section import Section
from gammacaps.reporting.study import Study

AUDITED = (
    " The audit's word below a picture tells what it found in test images: a gamma-capsule with the classes that it is "
    "active for, also under attack; dead means longer than tau in none of them, though a generated input may still "
    "activate it."
)


@dataclass(frozen=True)
class Gallery:
    """The capsules of one hidden layer, and the name the network gives it; a note says which, where not all."""

    layer: str
    cards: tuple[CapsuleCard, ...]
    note: str = ""


@dataclass(frozen=True)
class Galleries:
    layers: tuple[Gallery, ...]
    audited: bool  # an audit says of what kind each capsule is


def collect(study: Study) -> Galleries | None:
    layers = tuple(gallery(study, name) for name in study.capsules if name != "class")
    return Galleries(layers, study.has("audit")) if layers else None


def gallery(study: Study, layer: str) -> Gallery:
    cards = tuple(
        CapsuleCard(
            f"Capsule {shown.index}",
            Picture(
                image_png(shown.generated.image), f"The input generated for capsule {shown.index} of layer {layer}"
            ),
            shown.generated.activation,
            served(study, shown),
            note=caveat(study, shown),
            real=real_strip(shown, f"capsule {shown.index} of layer {layer}"),
            kind=kind_of(study.audit, layer, shown.index),
            speaks=speaks_for(study.audit, layer, shown.index),
        )
        for shown in study.capsules[layer]
    )
    total = study.totals[layer]
    some = "" if len(cards) == total else f"the {len(cards)} of {total:,} capsules that test images activate most"
    return Gallery(layer, cards, some)


def kind_of(audit: dict[str, Any] | None, layer: str, capsule: int) -> str:
    """What the audit calls a capsule; nothing where it did not look at it."""
    row = _row(audit, layer, capsule)
    return "" if row is None else row["kind"]


def speaks_for(audit: dict[str, Any] | None, layer: str, capsule: int) -> tuple[str, ...]:
    """The classes of a gamma-capsule, which are its name; of any other capsule none."""
    row = _row(audit, layer, capsule)
    if audit is None or row is None or row["kind"] != GAMMA:
        return ()
    return tuple(audit["class_names"][k] for k in row["classes"])


def _row(audit: dict[str, Any] | None, layer: str, capsule: int) -> dict[str, Any] | None:
    """What the audit says of a capsule, if it looked at it."""
    rows = (row for each in (audit["layers"] if audit else ()) if each["layer"] == layer for row in each["capsules"])
    return next((row for row in rows if row["capsule"] == capsule), None)


def draw(shown: Galleries) -> str:
    intro = paragraphs(
        "Between the image and the classes stand hidden capsules, which stand for parts that several classes may "
        "share. Their pictures are made in the same way, and the small ones are test images again.",
        "Below each are the classes that its picture activates most: the ones it serves."
        + (AUDITED if shown.audited else ""),
    )
    layers = "".join(
        f"<h3>{escape(heading(each.layer))}: {escape(each.note or f'{len(each.cards)} capsules')}</h3>"
        f'<ul class="cards small" data-gallery="{escape(heading(each.layer))}">'
        f"{''.join(draw_card(card) for card in each.cards)}</ul>"
        for each in shown.layers
    )
    return intro + layers


def heading(layer: str) -> str:
    return f"Layer {layer}"


def draw_card(card: CapsuleCard) -> str:
    items = "".join(f"<li>{escape(name)} <span>{score:.2f}</span></li>" for name, score in card.serves)
    serves = f'<ul class="serves">{items}</ul>' if items else ""
    classes = f": {escape(', '.join(card.speaks))}" if card.speaks else ""
    kind = f'<p class="kind">{escape(card.kind)}{classes}</p>' if card.kind else ""
    names = json.dumps([name for name, _ in card.serves])
    return (
        f'<li class="card" data-serves="{escape(names)}"><h4>{escape(card.name)}</h4>'
        f"{picture(card.generated, 'pixels')}{real(card)}{length_bar(card)}{kind}{note(card)}{serves}</li>"
    )


HIDDEN = Section("hidden", "What the hidden capsules stand for", collect, draw, needs=("capsules",))
