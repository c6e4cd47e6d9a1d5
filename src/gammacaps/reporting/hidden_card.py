"""A hidden capsule as a card: its name, its picture, real images, when it is on, and what holds of it under attack."""

import json
from dataclasses import dataclass
from html import escape

from gammacaps.auditing.kinds import GAMMA, NON_ROBUST
from gammacaps.reporting.cards import length_bar, note
from gammacaps.reporting.content import Picture, Value
from gammacaps.reporting.markup import picture, words

WIDTH, HIGH = 180, 30  # of the bars together
LETTER, NAMED = 8, 12  # a letter's width; of more classes there are no letters under the bars
SEEN_AS_CUT = 4  # letters of a name from which on there is room to say that it is cut


@dataclass(frozen=True)
class HiddenCard:
    """What is known of one hidden capsule. Its kind, name, classes and gamma are the audit's, where there is one."""

    number: int
    generated: Picture
    length: float  # that the capsule reached by the generated input, in [0, 1]
    rates: tuple[tuple[str, float], ...] = ()  # in what share of each class's images it is on
    kind: str = ""
    name: str = ""  # of the classes that it is active for
    classes: tuple[str, ...] = ()  # these one by one
    gamma: Value | None = None
    interval: str = ""  # of gamma
    active: Value | None = None  # in what share of all images it is on
    real: Picture | None = None  # the test images that make it longest, and where in them it looks
    note: str = ""
    certain: bool = True  # that it is of this kind: the interval of a gamma-capsule's gamma does not hold 0
    suffers: tuple[str, ...] = ()  # the classes that suffer most without it, with the points that they lose


def draw_hidden(card: HiddenCard) -> str:
    real = "" if card.real is None else picture(card.real, "pixels")
    name = escape(card.name or f"Capsule {card.number}")
    number = f'<span class="number">{card.number}</span>' if card.name else ""
    return (
        f'<li class="card" data-classes="{escape(json.dumps(card.classes))}"><h4>{name}{number}</h4>'
        f'<div class="looks">{picture(card.generated, "pixels")}{real}</div>{bars(card)}{judged(card)}{more(card)}</li>'
    )


def judged(card: HiddenCard) -> str:
    """Its kind and its gamma; of a capsule that has none, the kind alone."""
    kind = card.kind or ("trained for these" if card.name else "not audited")
    kind += "" if card.certain else ", not certain"
    tone = {GAMMA: "pass" if card.certain else "warn", NON_ROBUST: "warn"}.get(card.kind, "plain")
    gamma = ""
    if card.gamma is not None:
        between = f' title="95% interval {escape(card.interval)}"' if card.interval else ""
        sign = '<span aria-hidden="true">γ</span><span class="unseen">gamma</span>'
        gamma = f"<span{between}>{sign} {words(card.gamma)}</span>"
    return f'<p class="judged"><span class="tone {tone}">{escape(kind)}</span>{gamma}</p>'


def bars(card: HiddenCard) -> str:
    """In what share of each class's images it is on: a bar a class, strong for the classes that it stands for."""
    if not card.rates:
        return ""
    wide = WIDTH / len(card.rates)
    letters = int(wide / LETTER) if len(card.rates) <= NAMED else 0
    parts = []
    for place, (name, share) in enumerate(card.rates):
        across = f'x="{(place + 0.1) * wide:.1f}" width="{0.8 * wide:.1f}"'
        strong = " own" if name in card.classes else ""
        parts.append(f'<rect class="rail" {across} y="0" height="{HIGH}"/>')
        parts.append(
            f'<rect class="on{strong}" {across} y="{HIGH * (1 - share):.1f}" height="{HIGH * share:.1f}">'
            f"<title>{escape(name)}: on in {100 * share:.0f}%</title></rect>"
        )
        if letters:
            middle = (place + 0.5) * wide
            parts.append(
                f'<text x="{middle:.1f}" y="{HIGH + 11}" text-anchor="middle">{escape(cut(name, letters))}</text>'
            )
    told = "; ".join(f"{name} {100 * share:.0f}%" for name, share in card.rates)
    box = f"0 0 {WIDTH} {HIGH + (14 if letters else 0)}"
    label = escape(f"On in the images of each class: {told}")
    return f'<svg class="bars" viewBox="{box}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def cut(name: str, letters: int) -> str:
    """A name in so many letters, with a sign that it is cut; in a few its first ones, which then stand for it."""
    if len(name) <= letters or letters < SEEN_AS_CUT:
        return name[:letters]
    return f"{name[: letters - 1].rstrip()}…"


def more(card: HiddenCard) -> str:
    """What is told only to whoever asks."""
    lost = f"<p>Without it: {escape(', '.join(card.suffers))}.</p>" if card.suffers else ""
    stands = f"<p>{escape(', '.join(card.classes))}</p>" if card.classes else ""
    often = f"<p>On in {words(card.active)} of all images.</p>" if card.active is not None else ""
    between = f"<p>Gamma’s 95% interval: {escape(card.interval)}.</p>" if card.interval else ""
    generated = f"<p>Generated input:</p>{length_bar(card.length)}{note(card.note)}"
    return f"<details><summary>more</summary>{stands}{often}{between}{lost}{generated}</details>"
