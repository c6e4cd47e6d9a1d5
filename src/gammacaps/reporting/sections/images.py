"""Test images as they are and attacked, with the answers: the first thing to see."""

from dataclasses import dataclass
from html import escape

from gammacaps.explain.pictures import image_png
from gammacaps.radius import radius
from gammacaps.reporting.content import Picture
from gammacaps.reporting.markup import picture
from gammacaps.reporting.section import Section
from gammacaps.reporting.study import Study


@dataclass(frozen=True)
class ShownImage:
    """A test image and the same attacked, with what each is taken for."""

    label: str
    clean: Picture
    answer: str
    attacked: Picture
    attacked_answer: str


@dataclass(frozen=True)
class ShownImages:
    images: tuple[ShownImage, ...]
    eps: float


def collect(study: Study) -> ShownImages | None:
    pictured, names = study.pictured, study.test.class_names
    shown = []
    for place, label in enumerate(pictured.labels):
        name = names[label]
        clean, attacked = (image_png(x[place], side=1) for x in (pictured.clean, pictured.attacked))
        shown.append(
            ShownImage(
                name,
                Picture(clean, f"A test image: {name}"),
                names[pictured.answers[place]],
                Picture(attacked, f"The same image of {name}, attacked"),
                names[pictured.attacked_answers[place]],
            )
        )
    return ShownImages(tuple(shown), pictured.eps) if shown else None


def draw(shown: ShownImages) -> str:
    columns = "".join(
        f"<li>{picture(one.clean, 'pixels')}{answer(one.label, one.answer)}"
        f"{picture(one.attacked, 'pixels')}{answer(one.label, one.attacked_answer)}</li>"
        for one in shown.images
    )
    words = (
        "Above: test images, the first of each class that it answers rightly, if there are any. Below: the same "
        f"attacked by PGD, no pixel changed by more than {radius(shown.eps)}; stronger attacks may break more. Under "
        "each, the network’s answer."
    )
    return f'<ol class="answers">{columns}</ol><p class="note">{escape(words)}</p>'


def draw_beside(several: list[tuple[str, ShownImages]]) -> str:
    """The images once, and below them what an attack on each network makes of them."""
    columns = ""
    for place, first in enumerate(several[0][1].images):
        attacked = "".join(
            picture(shown.images[place].attacked, "pixels") + answer(first.label, shown.images[place].attacked_answer)
            for _, shown in several
        )
        columns += (
            f'<li>{picture(first.clean, "pixels")}<p class="answer true">{escape(first.label)}</p>{attacked}</li>'
        )
    rows = "; below, ".join(f"attacked to mislead {number} {name}" for number, (name, _) in enumerate(several, start=1))
    words = (
        "Above: test images, the first of each class that both answer rightly, if there are any. "
        f"Below, {rows}, each with the answer of that network. By PGD, no pixel changed by more than "
        f"{radius(several[0][1].eps)}."
    )
    return f'<ol class="answers">{columns}</ol><p class="note">{escape(words)}</p>'


def answer(label: str, given: str) -> str:
    """The class that was answered, marked by a sign and not by colour alone."""
    right = given == label
    kind, sign, word = ("right", "✓", "right") if right else ("wrong", "✗", "wrong")
    mark = f'<span aria-hidden="true">{sign}</span><span class="unseen">{word}: </span>'
    return f'<p class="answer {kind}">{mark}\N{NO-BREAK SPACE}{escape(given)}</p>'


IMAGES = Section("images", "Answers, clean and attacked", collect, draw, first=True, beside=draw_beside)
