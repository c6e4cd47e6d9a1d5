"""The figure of generated inputs: what each class capsule looks for, early and late in training, and for RBA."""

from pathlib import Path

from gammacaps.explain.pictures import Row, grid_png
from gammacaps.files import write_whole
from gammacaps.paper.plan import LOOKED_AT
from gammacaps.paper.readings import Records
from gammacaps.paper.record import Record
from gammacaps.paper.sections.cells import as_images, missing


def section(measured: Records, folder: Path) -> str:
    sda, rba = (measured.get(name) for name in LOOKED_AT)
    records = [record for whole in (sda, rba) if whole is not None for record in (*whole.earlier, whole)]
    if not records:
        return missing("features", measured)
    names = records[0].figures["results"]["class_names"]
    rows = [Row(as_images(records[0].arrays["examples"]), names, "test image")]
    rows += [_row(record) for record in records]
    last = sda or records[-1]
    if "reconstructions" in last.arrays:
        rule = last.figures["rule"].upper()
        rows.append(Row(as_images(last.arrays["reconstructions"]), (), f"decoder, {rule}"))
    write_whole(folder / "features.png", grid_png(rows))
    made = records[-1].figures["generated"]
    words = (
        f"Images generated to activate each class capsule, from noise, by the paper's Algorithm 2 ({made['starts']} "
        f"starts, {made['steps']} steps, mean of the best {min(5, made['starts'])}, no price on brightness), with "
        "the length that each reaches; a small one may be the search's failure, for it starts from noise. The "
        "decoder's row is what the reconstruction network makes of the test images."
    )
    lines = [words, "![Generated inputs](features.png)"]
    lines += [f"After {r.steps:,} steps ({r.name}): {r.figures['nothing']['meaning']}" for r in records]
    return "\n\n".join(text for text in (*lines, missing("features", measured)) if text)


def _row(record: Record) -> Row:
    lengths = [f"{one['activation']:.2f}" for one in record.figures["generated"]["class"]]
    rule = record.figures["rule"].upper()
    return Row(as_images(record.arrays["generated_class"]), lengths, f"{rule}, {record.steps:,} steps")
