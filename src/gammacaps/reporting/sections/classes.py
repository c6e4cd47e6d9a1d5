"""What each class looks like to the network: inputs generated for the class capsules, beside training images."""

from dataclasses import dataclass
from html import escape
from pathlib import Path

from gammacaps.explain.pictures import image_png
from gammacaps.explain.search import SEARCHES
from gammacaps.reporting.cards import ClassCard, caveat, fell_short, length_bar, note, real_tiles
from gammacaps.reporting.content import Picture
from gammacaps.reporting.markup import paragraphs, picture
from gammacaps.reporting.section import Section
from gammacaps.reporting.study import Shown, Study, generate


@dataclass(frozen=True)
class ClassCards:
    """A card a class, the name of the network that is shown beside, and how their pictures were searched."""

    cards: tuple[ClassCard, ...]
    other: str = ""
    search: str = SEARCHES["improved"].words


def collect(study: Study) -> ClassCards:
    beside = [] if study.beside is None else generate(study, study.beside, "class")[0]
    cards = tuple(class_card(study, shown, beside) for shown in study.capsules["class"])
    return ClassCards(cards, other_name(study) if beside else "", SEARCHES[study.config.search].words)


def class_card(study: Study, shown: Shown, beside: list[Shown]) -> ClassCard:
    name = study.test.class_names[shown.index]
    best = int(shown.generated.scores.argmax())
    mistaken = best != shown.index and not fell_short(study, shown)
    other = None
    if beside:
        alt = f"The input that {other_name(study)} was given for the class {name}"
        other = Picture(image_png(beside[shown.index].generated.image), alt)
    return ClassCard(
        name,
        Picture(image_png(shown.generated.image), f"The input generated for the class {name}"),
        shown.generated.activation,
        Picture(image_png(study.examples[shown.index]), f"A training image of the class {name}"),
        note=f"taken for {study.test.class_names[best]}" if mistaken else caveat(study, shown),
        real=real_tiles(shown, f"the capsule of {name}", 4),
        other=other,
    )


def other_name(study: Study) -> str:
    """Of the network that is shown beside."""
    return Path(study.config.beside or "").name


def draw(shown: ClassCards) -> str:
    intro = paragraphs(
        f"For each left picture {shown.search}, until the capsule of that class became as long as it would. Little "
        "else was asked of it: no training image, no rule of what a picture should look like, only a small price on "
        "every bright pixel, so that what does not matter stays dark.",
        "Where it resembles the training image beside it, the capsule goes by what people would go by. Where it "
        "looks like noise, so does what the network goes by, unless the search fell short of what real images reach: "
        "then its card says so.",
        "Below are the four test images that make the capsule longest, orange where its length depends on them most.",
    )
    if shown.other:
        intro += paragraphs(f"The third picture is what the network {shown.other} needs for the same class.")
    cards = "".join(draw_card(card, shown.other) for card in shown.cards)
    kind = "triples" if shown.other else "pairs"
    return f'{intro}<ul class="cards {kind}">{cards}</ul>'


def draw_card(card: ClassCard, other: str) -> str:
    named = ((card.beside, "training"), (card.other, other))
    beside = "".join(
        f"<div>{picture(each, 'pixels')}<small>{escape(name)}</small></div>" for each, name in named if each is not None
    )
    real = "" if card.real is None else picture(card.real, "pixels real")
    return (
        f'<li class="card"><h3>{escape(card.name)}</h3><div class="pair"><div>{picture(card.generated, "pixels")}'
        f"<small>generated</small></div>{beside}</div>{real}{length_bar(card.length)}{note(card.note)}</li>"
    )


CLASSES = Section("classes", "What each class looks like to it", collect, draw, needs=("capsules",))
