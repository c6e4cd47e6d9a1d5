"""Maps and other pictures, each with a caption that says what to see."""

from gammacaps.report.collect import Collected
from gammacaps.report.content import Figure, Picture


def maps_of(found: Collected) -> tuple[Figure, ...]:
    shown = []
    if found.confusion is not None:
        shown.append(
            Figure(
                "Which classes are mixed up",
                Picture(found.confusion.png(), f"Confusion matrix. {found.confusion.meaning}"),
                f"A row a true class, a column what its images were taken for. {found.confusion.meaning}",
            )
        )
    if found.strongest is not None:
        shown.append(
            Figure(
                "Which test images activate a capsule most",
                Picture(
                    found.strongest.png(), f"For each {found.strongest.layer} capsule the test images it is longest on"
                ),
                "A row a capsule: the images on which it is longest, with its length. Where they are all of a kind, "
                "the capsule stands for what they share.",
            )
        )
    if found.activation is not None:
        both = f"D is {found.activation.d_shuffled:.2f} over all classes and {found.activation.d_alone:.2f} within one."
        shown.append(
            Figure(
                "Do hidden capsules follow the image?",
                Picture(found.activation.png(), f"Activation map of the layer {found.activation.layer}. {both}"),
                "A row an image, a column a capsule, bright where it is active. Stripes that run through all "
                f"images of one class, and change between classes, are capsules that follow the image. {both}",
            )
        )
    if found.means is not None:
        shown.append(
            Figure(
                "Which capsules a class uses",
                Picture(found.means.png(), f"Mean activation of the {found.means.layer} capsules by class"),
                "The darker, the longer the capsule is on average over the test images of that class.",
            )
        )
    if found.couplings is not None:
        shown.append(
            Figure(
                "Where capsules lead",
                Picture(found.couplings.png(), f"Couplings from {found.couplings.layer} to {found.couplings.above}"),
                "How much of each capsule goes to each capsule above, over all test images. A column with one dark "
                "cell is a capsule that always has the same parent.",
            )
        )
    shown.append(
        Figure(
            "What it makes of nothing",
            Picture(found.nothing.png(), f"What noise and blank images are taken for. {found.nothing.meaning}"),
            found.nothing.meaning,
        )
    )
    if found.reconstruction is not None:
        shown.append(
            Figure(
                "What the decoder makes of it",
                Picture(found.reconstruction.png(), "Test images, their reconstructions and the generated inputs"),
                "A second network draws the image again from the class capsule alone. It shows what images of the "
                "class look like, not what activates the capsule: for that, trust the generated inputs in the last "
                "row.",
            )
        )
    shown.append(filters_of(found))
    return tuple(shown)


def filters_of(found: Collected) -> Figure:
    tints = "Vermillion is positive, blue negative."
    if found.filters.weights.shape[1] == 3:
        tints = "Each filter is shown as a colour image: grey is 0."
    return Figure(
        "The first filters",
        Picture(found.filters.png(), f"The {len(found.filters.weights)} filters of the first convolution"),
        f"{tints} {found.filters.meaning} The paper reports that training under attack concentrates them.",
    )
