"""A run's folder is held by one training at a time, and by no dead one."""

import subprocess
import sys

import pytest

from gammacaps.errors import InputError
from gammacaps.locks import locked

HOLD = """
import sys, time
from pathlib import Path
from gammacaps.locks import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_holder_is_told_and_a_dead_one_holds_nothing(tmp_path):
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(InputError, match="Another training is at work"), locked(tmp_path):
            pass
    finally:
        holder.kill()
        holder.communicate()
    with locked(tmp_path):
        pass
    assert not list(tmp_path.iterdir())  # it leaves nothing behind


def test_a_folder_is_held_under_its_next_name_too(tmp_path):
    (tmp_path / "new").mkdir()
    with locked(tmp_path / "new"):
        (tmp_path / "new").rename(tmp_path / "run")
        with pytest.raises(InputError, match="Another training"), locked(tmp_path / "run"):
            pass
        (tmp_path / "new").mkdir()
        with locked(tmp_path / "new"):  # another folder, another lock
            pass


@pytest.mark.slow
def test_a_folder_that_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match="There is no folder"), locked(tmp_path / "gone"):
        pass


def test_who_holds_a_folder_sees_that_another_stands_in_its_place(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    with locked(run) as lock:
        lock.check(run)
        run.rename(tmp_path / "moved")
        with pytest.raises(InputError, match="removed, moved or replaced"):
            lock.check(run)
        run.mkdir()
        with pytest.raises(InputError, match="removed, moved or replaced"):
            lock.check(run)
        lock.check(tmp_path / "moved")


def test_a_disk_without_locks_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("gammacaps.locks.take", lambda handle, wait: None)
    with locked(tmp_path):
        pass
    assert "nothing keeps another training out" in capsys.readouterr().err
