"""The sections of the page, top to bottom, each with the words that a reader needs who has not read the paper."""

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from gammacaps.report.content import Capsule, Check, Report, Score, Tree, Verdict
from gammacaps.report.markup import badge, curve, facts, figure, missing, notes, paragraphs, picture, scrolling, table


@dataclass(frozen=True)
class Section:
    """A section: the anchor it is reached by, its title and its HTML."""

    anchor: str
    title: str
    body: str


def network(report: Report) -> Section:
    return Section("network", "What this network is", paragraphs(report.lead) + WORDS + facts(report.facts))


WORDS = """<div class="aside"><h3>Three words to know</h3><dl>
<dt>Capsule</dt><dd>A small vector inside the network. Its length, from 0 to 1, says how sure the network is that
something is in the image; its direction says how it looks. There is one capsule a class at the top, and layers of
capsules for parts below.</dd>
<dt>Coupling</dt><dd>Every capsule votes for the capsules above it, and is coupled most with those it agrees with. Where
each settles on one parent, an image becomes a tree: parts, parts of parts, and a class.</dd>
<dt>Attack</dt><dd>A change of the image made to mislead the network. No pixel may change by more than <i>eps</i>, where
0 is black and 1 is white. A network trained under attack has to rely on what such a change can't erase.</dd>
</dl></div>"""


def scores(report: Report) -> Section:
    title = "How often it is right"
    if report.scores is None:
        return Section("scores", title, missing(f"gammacaps evaluate {shlex.quote(report.run)}"))
    found = report.scores
    intro = paragraphs(
        f"The share of {found.images:,} test images, none of them seen in training, that are given their right "
        "class: left as they are, and changed by an attack. An image counts as right under attack only if it was "
        "right before, too.",
        "The 95% interval says how far a figure may be off because only so many images were tried. The worst case "
        "counts the images that stand under every attack: it is the figure to go by.",
    )
    rows = "".join(_score(row) for row in found.rows)
    head = '<th scope="col">Images</th><th scope="col">Right</th><th scope="col">95% interval</th>'
    content = (
        f'<table class="scores"><caption>Accuracy on test images</caption><thead><tr>{head}'
        f'<th scope="col" class="bar">0 to 100%</th></tr></thead><tbody>{rows}</tbody></table>'
    )
    return Section("scores", title, intro + scrolling(content, "Accuracy on test images") + notes(found.notes))


def _score(row: Score) -> str:
    low, high, middle = (200 * value for value in (row.low, row.high, row.accuracy))
    kind = ' class="worst"' if row.worst else ""
    line = f'<path class="range" d="M{low:.1f} 8H{max(high, low + 0.1):.1f}"/>'
    dot = f'<circle cx="{middle:.1f}" cy="8" r="4.2"/>'
    bar = f'<svg viewBox="-4 0 208 16" aria-hidden="true"><path class="track" d="M0 8H200"/>{line}{dot}</svg>'
    return (
        f'<tr{kind}><th scope="row">{escape(row.name)}</th><td class="figure">{100 * row.accuracy:.1f}%</td>'
        f'<td>{100 * row.low:.1f} to {100 * row.high:.1f}</td><td class="bar">{bar}</td></tr>'
    )


def checks(report: Report) -> Section | None:
    title = "Whether to believe it"
    if not report.checks:
        return (
            None
            if report.scores is None
            else Section("checks", title, missing(f"gammacaps evaluate {shlex.quote(report.run)}"))
        )
    judged = [check.verdict for check in report.checks if check.verdict != "skip"]
    said = f"{judged.count('pass')} of {len(judged)} checks pass"
    if "fail" in judged:
        said += (
            f", {judged.count('fail')} {'fails' if judged.count('fail') == 1 else 'fail'}: the figures under attack "
        )
        said += "are not to be taken at their word."
    elif "warn" in judged:
        said += ", the others call for care in reading the figures under attack."
    else:
        said += ": nothing speaks against the figures under attack."
    intro = paragraphs(
        "A network looks robust, too, when the attack on it was weak: when its gradient is hidden, say, or the attack "
        "had too few steps. Each check looks for one such way to be fooled.",
    )
    items = "".join(_check(check) for check in sorted(report.checks, key=lambda check: ORDER.index(check.verdict)))
    return Section("checks", title, f'{intro}<p class="sum">{said}</p><ul class="checks">{items}</ul>')


ORDER = ("fail", "warn", "pass", "skip")  # what a reader must know first


def _check(check: Check) -> str:
    return (
        f"<li>{badge(check.verdict)}<div><h3>{escape(check.name)}</h3><p>{escape(check.meaning)}</p></div>"
        f'<span class="figure">{escape(check.number)}</span></li>'
    )


def strength(report: Report) -> Section | None:
    if report.curve is None:
        return None
    intro = paragraphs(
        "As eps grows the attack may change more, and every network ends at or below guessing: from eps 0.5 on, "
        "any image can be turned into plain grey. What matters is how long the line stays up.",
    )
    return Section("strength", "Stronger and stronger attacks", intro + curve(report.curve))


def classes(report: Report) -> Section | None:
    if not report.has_capsules:
        return None
    title = "What each class looks like to it"
    if not report.class_capsules:
        return Section("classes", title, missing(f"gammacaps report {shlex.quote(report.run)}"))
    intro = paragraphs(
        "Each left picture began as noise and was changed, step by step, until the capsule of that class became as "
        "long as it would. Little else was asked of it: no training image, no rule of what a picture should look "
        "like, only a small price on every bright pixel, so that what does not matter stays dark.",
        "Where it resembles the training image beside it, the capsule goes by what people would go by. Where it "
        "looks like noise, so does what the network goes by, unless the search fell short of what real images reach: "
        "then its card says so.",
    )
    if report.other:
        intro += paragraphs(f"The third picture is what the network {report.other} needs for the same class.")
    cards = "".join(_class_card(capsule, report.other) for capsule in report.class_capsules)
    kind = "triples" if report.other else "pairs"
    return Section("classes", title, f'{intro}<ul class="cards {kind}">{cards}</ul>')


def _class_card(capsule: Capsule, other: str) -> str:
    pairs = ((capsule.beside, "training"), (capsule.other, other))
    shown = [(each, name) for each, name in pairs if each is not None]
    beside = "".join(f"<div>{picture(each, 'pixels')}<small>{escape(name)}</small></div>" for each, name in shown)
    return (
        f'<li class="card"><h3>{escape(capsule.name)}</h3><div class="pair"><div>{picture(capsule.generated, "pixels")}'
        f"<small>generated</small></div>{beside}</div>{_length(capsule)}{_note(capsule)}</li>"
    )


def _length(capsule: Capsule) -> str:
    share = 100 * min(1.0, max(0.0, capsule.length))
    return (
        f'<p class="length"><span>length <b>{capsule.length:.2f}</b></span>'
        f'<svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"><path class="track" d="M0 2H100"/>'
        f'<path class="range" d="M0 2H{share:.1f}"/></svg></p>'
    )


def _note(capsule: Capsule) -> str:
    return f'<p class="note">{escape(capsule.note)}</p>' if capsule.note else ""


def hidden(report: Report) -> Section | None:
    if not report.has_capsules or not report.hidden:
        return None
    found = report.audit
    intro = paragraphs(
        "Between the image and the classes stand hidden capsules, which stand for parts that several classes may "
        "share. Their pictures are made in the same way.",
        "Below each are the classes that its picture activates most: the ones it serves." + (AUDITED if found else ""),
    )
    layers = "".join(
        f"<h3>{escape(_layer(layer.name))}: {escape(layer.note or f'{len(layer.capsules)} capsules')}</h3>"
        f'<ul class="cards small" data-gallery="{escape(_layer(layer.name))}">'
        f"{''.join(_hidden_card(capsule) for capsule in layer.capsules)}</ul>"
        for layer in report.hidden
    )
    return Section("hidden", "What the hidden capsules stand for", intro + layers)


AUDITED = (
    " The audit's word below a picture tells what it found in test images: dead means longer than tau in none of them, "
    "though a generated input may still activate it."
)


def _layer(name: str) -> str:
    return f"Layer {name}"


def _hidden_card(capsule: Capsule) -> str:
    items = "".join(f"<li>{escape(name)} <span>{score:.2f}</span></li>" for name, score in capsule.serves)
    serves = f'<ul class="serves">{items}</ul>' if items else ""
    kind = f'<p class="kind">{escape(capsule.kind)}</p>' if capsule.kind else ""
    names = json.dumps([name for name, _ in capsule.serves])
    return (
        f'<li class="card" data-serves="{escape(names)}"><h4>{escape(capsule.name)}</h4>'
        f"{picture(capsule.generated, 'pixels')}{_length(capsule)}{kind}{_note(capsule)}{serves}</li>"
    )


def trees(report: Report) -> Section | None:
    if not report.has_capsules or not report.trees:
        return None
    intro = paragraphs(
        "For each image the network couples capsules with those above them. Here are the capsules that are active, "
        f"longer than {report.tau:g}, and the parents that they chose, from the image on the left to the classes on "
        "the right: the network's own account of why it answered so. Below it is the same image after an attack, each "
        "capsule in the same spot. A robust network takes both apart in much the same way.",
        "A line is as wide as the coupling; one from the primary layer, as the couplings of all capsules of a place "
        "together. It has the colour of the class that it leads to in the end; grey is any further class, or none. "
        "Faint grey lines are weaker couplings. The fainter a capsule, the shorter it is; the bar under a picture is "
        "its length, too. Parents that are not active have a dashed frame.",
        "In the attacked tree a capsule that changed its parent has a second frame, or as a dot an outline, and a "
        "dashed line leads to its former parent. One that appeared is marked “new”, or as a dot is a square. "
        "A cross is one that vanished. T, from 0 to 1, says how decidedly the capsules of a layer chose.",
    )
    panels = "".join(_tree(tree) for tree in report.trees)
    return Section("trees", "How it takes an image apart", f'{intro}<div data-tabs="Images">{panels}</div>')


def _tree(tree: Tree) -> str:
    sides = [(tree.clean, tree.clean_caption)]
    if tree.attacked is not None:
        sides.append((tree.attacked, tree.attacked_caption))
    figures = "".join(
        f"<figure>{scrolling(picture(shown, 'paper'), caption)}<figcaption>{escape(caption)}</figcaption></figure>"
        for shown, caption in sides
    )
    return f'<div class="panel"><h3>{escape(tree.title)}</h3>{figures}</div>'


def audit(report: Report) -> Section | None:
    if not report.has_capsules:
        return None
    title = "Is it a gamma-capsule network?"
    if report.audit is None:
        return Section("audit", title, missing(f"gammacaps audit {shlex.quote(report.run)}"))
    found = report.audit
    intro = paragraphs(
        "The definition asks three things. Each capsule stands for a useful feature, one that goes with some classes "
        "and not with others: its rho is above what chance would give. It stays useful under attack: its gamma, the "
        "same figure with every image changed for the worst, is above 0. And each active capsule chooses a single "
        f"parent. Here a capsule counts as active when it is longer than tau = {found.tau:g}.",
    )
    sign = badge(found.verdict, ANSWERS[found.verdict])
    verdict = f'<p class="verdict">{sign} <strong>{escape(found.sentence)}</strong></p>'
    parts = "".join(table(shown) for shown in found.tables)
    curves = f'<div class="sides">{"".join(curve(shown) for shown in found.curves)}</div>' if found.curves else ""
    return Section("audit", title, intro + verdict + KINDS + parts + curves + notes(found.notes))


KINDS = """<div class="aside"><h3>The four kinds</h3><dl>
<dt>Gamma-capsule</dt><dd>Useful, and still so under attack: rho is above chance, and gamma above 0.</dd>
<dt>Non-robust</dt><dd>Useful, but an attack can undo it: rho is above chance, gamma is not above 0.</dd>
<dt>Not useful</dt><dd>Active, but rho is not above chance. Mostly these are active in every image: their length says
nothing, their direction may.</dd>
<dt>Dead</dt><dd>Active in none of the test images.</dd>
</dl></div>"""


ANSWERS: dict[Verdict, str] = {"pass": "Yes", "warn": "In part", "fail": "No", "skip": "Unknown"}


def maps(report: Report) -> Section | None:
    if not report.maps:
        return None
    return Section("maps", "Further maps", "".join(figure(shown) for shown in report.maps))


def rerun(report: Report) -> Section:
    lines = "".join(
        f'<li><p>{escape(command.does)}</p><pre tabindex="0"><code>{escape(command.line)}</code></pre></li>'
        for command in report.commands
    )
    intro = paragraphs(
        "Everything on this page was made by these commands. With the same versions, the same seeds and the same "
        "kind of device the figures come out the same, unless a line says otherwise."
    )
    body = f'{intro}<ol class="commands">{lines}</ol>' if lines else ""
    return Section("rerun", "Do it again", body + facts(report.versions))


SECTIONS: tuple[Callable[[Report], Section | None], ...] = (
    network,
    scores,
    checks,
    strength,
    classes,
    hidden,
    trees,
    audit,
    maps,
    rerun,
)
