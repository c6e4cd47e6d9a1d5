"""What the network is: one paragraph for whoever knows none of it, three words to know, and its facts."""

from dataclasses import dataclass

from gammacaps.radius import radius
from gammacaps.reporting.content import Fact, Value
from gammacaps.reporting.markup import facts as facts_list
from gammacaps.reporting.markup import paragraphs
from gammacaps.reporting.section import Section
from gammacaps.reporting.study import Study


@dataclass(frozen=True)
class About:
    """One plain paragraph: what the network is, on what and how it was trained; and its facts."""

    lead: str
    facts: tuple[Fact, ...] = ()


def collect(study: Study) -> About:
    return About(lead(study), facts(study))


def lead(study: Study) -> str:
    """What it is, on what and how it was trained: one paragraph for whoever knows none of it."""
    channels, height, width = study.model.image_shape
    shade = {1: "grey", 3: "colour"}.get(channels, f"{channels}-channel")
    names = study.test.class_names
    listed = ", ".join(names[:-1]) + f" and {names[-1]}" if 1 < len(names) <= 12 else f"{names[0]} to {names[-1]}"
    words = [
        f"This network looks at {shade} images of {height} × {width} pixels and says which of {len(names)} classes "
        f"each belongs to: {listed}."
    ]
    if study.model.depends_on_neighbours:
        option = study.model.neighbours_option
        why = "" if option is None else f"with {option[0]}, "
        words.append(
            f"Its capsules are not shown here: {why}what they say of an image depends on the images beside it."
        )
    training = study.about.train
    if training is None:
        return " ".join([*words, "How it was trained is not recorded."])
    steps = "" if study.last is None else f" for {study.last['step']:,} steps of {training.batch} images"
    if training.robust:
        most = f"{radius(training.eps)} {'a pixel' if training.norm == 'linf' else 'in all (L2)'}"
        words.append(
            f"It was trained under attack{steps}: each time, the images were first changed, by up to {most}, to where "
            "the network was most wrong, and it then learned from these."
        )
    else:
        words.append(
            f"It was trained on clean images{steps}, never under attack, so that small changes are likely to "
            "mislead it."
        )
    return " ".join(words)


def facts(study: Study) -> tuple[Fact, ...]:
    model, training = study.model, study.about.train
    shown = [Fact("Weights", f"{sum(p.numel() for p in model.parameters()):,}")]
    if study.totals:
        hidden = ", ".join(f"{n:,}" for name, n in study.totals.items() if name != "class")
        above = f"{study.totals['class']} of classes"
        shown.append(Fact("Capsules", f"{hidden} hidden, {above}" if hidden else above))
    if model.routing is not None:
        shown.append(Fact("Routing", model.routing.upper(), f"{model.routing_title}, {model.iterations} iterations"))
    shown.append(Fact("Data", study.test.name, f"{len(study.test.labels):,} test images"))
    count = study.about.data.train_images
    if count:
        shown.append(Fact("Trained on", f"{count - (training.held_back() if training else 0):,} images"))
    if training is not None:
        steps = training.attack_steps
        attack = f"PGD of {steps} steps" if steps > 1 else "a single step from a random start"
        shown.append(Fact("Trained", training.way(), attack if training.robust else ""))
    if study.last is not None:
        minutes = study.last["seconds"] / 60
        where = str(study.about.machine.get("device_name", ""))
        time = f"{minutes:,.0f} minutes" if minutes >= 2 else f"{60 * minutes:.0f} s"
        shown.append(Fact("Time to train", time, where))
    results = study.results
    if results is not None and results["T"] is not None:
        shown.append(Fact("T-score", Value("T", f"{results['T']['mean']:.2f}"), "0: all couplings equal, 1: a tree"))
        if results["D"]["mean"] is not None:
            alone = results["D"]["by_class"][0]["mean"]
            note = "how much hidden capsules follow the image"
            note += "" if alone is None else f"; {alone:.2f} within the class {results['class_names'][0]}"
            shown.append(Fact("D-score", Value("D", f"{results['D']['mean']:.2f}"), note))
    return tuple(shown)


WORDS = """<div class="aside"><h3>Three words to know</h3><dl>
<dt>Capsule</dt><dd>A small vector inside the network. Its length, from 0 to 1, says how sure the network is that
something is in the image; its direction says how it looks. There is one capsule a class at the top, and layers of
capsules for parts below.</dd>
<dt>Coupling</dt><dd>Every capsule votes for the capsules above it, and is coupled most with those it agrees with. Where
each settles on one parent, an image becomes a tree: parts, parts of parts, and a class.</dd>
<dt>Attack</dt><dd>A change of the image made to mislead the network. No pixel may change by more than <i>eps</i>, where
0 is black and 1 is white. A network trained under attack has to rely on what such a change can't erase.</dd>
</dl></div>"""


def draw(about: About) -> str:
    return paragraphs(about.lead) + WORDS + facts_list(about.facts)


NETWORK = Section("network", "What this network is", collect, draw)
