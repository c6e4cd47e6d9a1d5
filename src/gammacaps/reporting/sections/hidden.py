"""What the hidden capsules stand for: a gallery of generated inputs for each layer."""

import json
from dataclasses import dataclass
from html import escape
from typing import Any

from gammacaps.auditing.capsule_names import rows_of
from gammacaps.auditing.kinds import GAMMA
from gammacaps.explain.pictures import image_png
from gammacaps.explain.without_each import accuracies_without_each, can_switch_off, sufferers
from gammacaps.models import has_capsules
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
WITHOUT = (
    " “Without it” tells which classes suffer most when the capsule is switched off: which share of their images is "
    "right, before and after, of {images:,} test images in all."
)
LEAST = 0.005  # a smaller loss of a class is not told


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
    images: int = 0  # of which it is told how many are right without a capsule; 0 where it is told of none


def collect(study: Study) -> Galleries | None:
    layers = tuple(gallery(study, name) for name in study.capsules if name != "class")
    told = any(card.suffers for each in layers for card in each.cards)
    return Galleries(layers, study.has("audit"), len(study.chosen[0]) if told else 0) if layers else None


def gallery(study: Study, layer: str) -> Gallery:
    suffering = suffers(study, layer)
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
            speaks=speaks_for(study, layer, shown.index),
            classes=classes_of(study.audit, layer, shown.index),
            suffers=suffering.get(shown.index, ()),
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


def speaks_for(study: Study, layer: str, capsule: int) -> str:
    """The name of a gamma-capsule's classes; without an audit, of those that it was trained for."""
    assert has_capsules(study.model)
    return study.names.get((study.model.layers.index(layer), capsule), "")


def classes_of(audit: dict[str, Any] | None, layer: str, capsule: int) -> str:
    """The classes of a gamma-capsule one by one; of any other capsule nothing."""
    row = _row(audit, layer, capsule)
    if audit is None or row is None or row["kind"] != GAMMA:
        return ""
    return ", ".join(audit["class_names"][k] for k in row["classes"])


def suffers(study: Study, layer: str) -> dict[int, tuple[str, ...]]:
    """For each gamma-capsule of a layer, the classes whose accuracy falls most when it is switched off, in words."""
    rows = [row["capsule"] for row in rows_of(study.audit, layer) if row["kind"] == GAMMA]
    shown = [one.index for one in study.capsules[layer] if one.index in rows]
    if not shown or not can_switch_off(study.model):
        return {}
    before, without = accuracies_without_each(study.model, layer, shown, *study.chosen)
    names = study.test.class_names
    return {
        capsule: tuple(
            f"{names[one.label]} {100 * one.before:.0f}% → {100 * one.without:.0f}%"
            for one in sufferers(before, own)
            if one.lost > LEAST
        )
        or ("no class suffers",)
        for capsule, own in zip(shown, without, strict=True)
    }


def _row(audit: dict[str, Any] | None, layer: str, capsule: int) -> dict[str, Any] | None:
    """What the audit says of a capsule, if it looked at it."""
    return next((row for row in rows_of(audit, layer) if row["capsule"] == capsule), None)


def draw(shown: Galleries) -> str:
    intro = paragraphs(
        "Between the image and the classes stand hidden capsules, which stand for parts that several classes may "
        "share. Their pictures are made in the same way, and the small ones are test images again.",
        "Below each are the classes that its picture activates most: the ones it serves."
        + (AUDITED if shown.audited else "")
        + (WITHOUT.format(images=shown.images) if shown.images else ""),
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
    named = f': <b title="{escape(card.classes)}">{escape(card.speaks)}</b>' if card.speaks else ""
    kind = f'<p class="kind">{escape(card.kind or "trained for")}{named}</p>' if card.kind or card.speaks else ""
    lost = f'<p class="kind">Without it: {escape(", ".join(card.suffers))}</p>' if card.suffers else ""
    names = json.dumps([name for name, _ in card.serves])
    return (
        f'<li class="card" data-serves="{escape(names)}"><h4>{escape(card.name)}</h4>'
        f"{picture(card.generated, 'pixels')}{real(card)}{length_bar(card)}{kind}{lost}{note(card)}{serves}</li>"
    )


HIDDEN = Section("hidden", "What the hidden capsules stand for", collect, draw, needs=("capsules",))
