"""From what was collected of a run to what its page says: the parts of a `Report`, a file each."""

from gammacaps.report.collect import Collected
from gammacaps.report.content import Report
from gammacaps.report.fill.again import commands, versions
from gammacaps.report.fill.audited import audit
from gammacaps.report.fill.capsules import class_capsule, layer, other_name
from gammacaps.report.fill.figures import checks, curve, earlier, scores
from gammacaps.report.fill.maps import maps_of
from gammacaps.report.fill.trees import trees_of
from gammacaps.report.fill.words import facts, headline, lead, title

__all__ = ["report_of"]


def report_of(found: Collected) -> Report:
    """The page's content, in the page's order."""
    results = found.results
    return Report(
        title=title(found),
        run=str(found.run),
        lead=lead(found),
        headline=headline(found),
        facts=facts(found),
        scores=None if results is None else scores(found, results),
        checks=() if results is None else checks(results),
        curve=None if results is None else curve(found, results),
        class_capsules=tuple(class_capsule(found, shown) for shown in found.capsules.get("class", ())),
        other=other_name(found) if found.beside else "",
        hidden=tuple(layer(found, name) for name in found.capsules if name != "class"),
        trees=trees_of(found),
        audit=None if found.audit is None else audit(found.audit, earlier(found, found.audit)),
        maps=maps_of(found),
        commands=commands(found),
        versions=versions(found),
        has_capsules=bool(found.capsules),
        tau=found.config.tau,
    )
