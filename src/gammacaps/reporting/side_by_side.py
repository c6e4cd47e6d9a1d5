"""What a page tells of several networks, in columns. Free of torch."""

import itertools
import re
from html import escape

PARAGRAPH = re.compile(r"<p>.*?</p>", re.DOTALL)


def columns(parts: list[tuple[str, str]], *, heading: str = "h3") -> str:
    """Each network's name and HTML beside the others'; what all of them begin with stands above, once."""
    split = [_leading(html) for _, html in parts]
    first = zip(*(paragraphs for paragraphs, _ in split), strict=False)
    common = [each[0] for each in itertools.takewhile(lambda each: len(set(each)) == 1, first)]
    shown = ""
    for number, ((name, _), (paragraphs, rest)) in enumerate(zip(parts, split, strict=True), start=1):
        html = "".join(paragraphs[len(common) :]) + rest
        own = html.replace(' data-value="', f' data-value="{number} ')  # its figures are not the other's
        shown += f'<div class="network"><{heading} class="whose">{number} {escape(name)}</{heading}>{own}</div>'
    return f'{"".join(common)}<div class="networks">{shown}</div>'


def _leading(html: str) -> tuple[list[str], str]:
    """The plain paragraphs that it begins with, and the rest."""
    found, place = [], 0
    while match := PARAGRAPH.match(html, place):
        found.append(match.group())
        place = match.end()
    return found, html[place:]
