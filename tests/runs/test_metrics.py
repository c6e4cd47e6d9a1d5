"""metrics.jsonl: whole lines count, whatever else stands in the file."""

import pytest

from gammacaps.errors import InputError
from gammacaps.runs.metrics import METRICS, add_metrics, forget_metrics_after, read_metrics

ROWS = [{"step": step, "seconds": step / 2, "loss": 1.0 / step} for step in (1, 2, 3)]
BROKEN = [
    b'{"step": 4, "sec',  # half a line
    b'{"step": 4, "seconds": 1, "\xff": 2}',
    b'{"step": "4", "seconds": 1}',
    b'{"step": 4.5, "seconds": 1}',
    b'{"step": -4, "seconds": 1}',
    b'{"step": NaN, "seconds": 1}',
    b'{"step": 4, "seconds": Infinity}',
    b'{"step": 4, "seconds": 1e999}',
    b'{"step": 4, "seconds": 1, "loss": null}',
    b'{"step": ' + b"9" * 5000 + b', "seconds": 1}',
    b"[" * 100_000,
    b'{"seconds": 1}',
    b"12",
    b"null",
    b"",
]


@pytest.mark.parametrize("line", BROKEN)
def test_a_broken_line_counts_for_nothing(tmp_path, line):
    for row in ROWS:
        add_metrics(tmp_path, row)
    with (tmp_path / METRICS).open("ab") as file:
        file.write(line)
    assert read_metrics(tmp_path) == ROWS
    forget_metrics_after(tmp_path, 2)
    assert read_metrics(tmp_path) == ROWS[:2]
    assert len((tmp_path / METRICS).read_bytes().splitlines()) == 2


def test_no_file_is_no_metrics_and_a_folder_in_its_place_one_sentence(tmp_path):
    assert read_metrics(tmp_path) == []
    forget_metrics_after(tmp_path, 2)
    (tmp_path / METRICS).mkdir()
    with pytest.raises(InputError, match="can't be read"):
        read_metrics(tmp_path)


def test_lines_that_are_left_out_are_told(tmp_path, capsys):
    for row in ROWS:
        add_metrics(tmp_path, row)
    forget_metrics_after(tmp_path, 3)
    assert capsys.readouterr().err == ""
    content = (tmp_path / METRICS).read_bytes().splitlines(keepends=True)
    (tmp_path / METRICS).write_bytes(b"".join([content[0], b"\xf5garbage\n", content[2], b'{"st']))
    forget_metrics_after(tmp_path, 3)
    assert "Note: a line of" in capsys.readouterr().err
    assert read_metrics(tmp_path) == [ROWS[0], ROWS[2]]
