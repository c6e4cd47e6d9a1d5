"""Standard streams that are closed, full, or whose reader goes away."""

import json
import os
import subprocess
import sys

import pytest

import gammacaps

TINY = ["--model", "filters=8", "primary_types=2", "hidden=[6]", "decoder=[16]", "--device", "cpu", "--batch", "16"]
TRAIN = ["train", *TINY, "--no-robust"]
GAMMACAPS = [sys.executable, "-m", "gammacaps"]


def shell(command, folder, **how):
    """A command line in a shell, where $GAMMACAPS and $TRAIN stand for the words above."""
    known = {"GAMMACAPS": " ".join(GAMMACAPS), "TRAIN": " ".join([*GAMMACAPS, *TRAIN])}
    environment = {**os.environ, **known, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False, **how
    )


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["2>&-", "<&- >&- 2>&-"])
def test_a_run_with_closed_streams_is_trained_and_no_file_takes_what_is_printed(tmp_path, closed):
    done = shell(f"$TRAIN --steps 3 --log-every 1 --out run {closed}", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 3]
    json.loads((tmp_path / "run" / "config.json").read_text())
    gammacaps.load(tmp_path / "run")
    assert shell(f"$GAMMACAPS trian {closed}", tmp_path).returncode == 2


@pytest.mark.slow
def test_training_whose_reader_goes_away_is_saved_and_not_reported_as_done(tmp_path):
    command = "$TRAIN --steps 2000 --log-every 1 --json --out run | head -2; exit ${PIPESTATUS[0]}"
    done = shell(command, tmp_path, timeout=60)
    assert done.returncode == 130
    assert [json.loads(line)["step"] for line in done.stdout.splitlines()] == [1, 2]
    assert "since its output can't be written any more, and saved" in done.stderr
    assert "gammacaps train --resume run" in done.stderr
    assert "Traceback" not in done.stderr
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    stopped = json.loads(lines[-1])["step"]
    assert f"Stopped at step {stopped}" in done.stderr
    assert stopped < 2000
    done = shell(f"$GAMMACAPS train --resume run --steps {stopped + 1} --json", tmp_path)
    assert (done.returncode, json.loads(done.stdout.splitlines()[0])["step"]) == (0, stopped + 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "status", "words"),
    [
        ("$GAMMACAPS train --help | head -1; exit ${PIPESTATUS[0]}", 0, ""),
        ("$GAMMACAPS data fashion-mini --json | true; exit ${PIPESTATUS[0]}", 0, ""),
        ("$GAMMACAPS trian 2>&1 | true; exit ${PIPESTATUS[0]}", 2, ""),
        ("$GAMMACAPS data fashion-mini > /dev/full", 2, "The output can't be written (No space left on device)"),
        ("$GAMMACAPS trian 2> /dev/full", 2, ""),
    ],
)
def test_output_that_nobody_reads_or_that_has_no_place(tmp_path, command, status, words):
    done = shell(command, tmp_path)
    assert done.returncode == status
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_name_that_no_encoding_can_say_is_printed_as_an_escape():
    code = "import sys; from gammacaps.cli.streams import open_streams, show; open_streams(); show(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", code, b"run\xff"], capture_output=True, text=True, check=True)
    assert done.stdout == "run\\udcff\n"
