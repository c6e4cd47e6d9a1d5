"""Files and folders are written whole or not at all, as the user's umask says; JSON is read without trusting it."""

import contextlib
import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gammacaps.errors import InputError
from gammacaps.files import new_folder, read_json, write_json, write_whole, writing
from gammacaps.models.folder import new_run


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o022, 0o077, 0o002])
def umask(request):
    old = os.umask(request.param)
    yield request.param
    os.umask(old)


def test_files_and_folders_have_the_permissions_that_the_umask_leaves(tmp_path, umask):
    write_whole(tmp_path / "file", b"1")
    with new_folder(tmp_path / "folder") as folder:
        write_whole(folder / "file", b"1")
    assert mode(tmp_path / "file") == mode(tmp_path / "folder" / "file") == 0o666 & ~umask
    assert mode(tmp_path / "folder") == 0o777 & ~umask


WRITE = """
import signal, sys
from pathlib import Path
from gammacaps.files import new_folder
with new_folder(Path(sys.argv[1])) as folder:
    (folder / "half").write_bytes(b"1")
    print("ready", flush=True)
    signal.pause()
"""


@pytest.fixture
def writer():
    """Starts a process that is within `new_folder`; it is killed in the end, if not before."""
    with contextlib.ExitStack() as stack:

        def start(path):
            process = stack.enter_context(
                subprocess.Popen([sys.executable, "-c", WRITE, str(path)], stdout=subprocess.PIPE)
            )
            stack.callback(process.kill)
            assert process.stdout.readline() == b"ready\n"
            return process

        yield start


def test_what_a_killed_process_left_of_a_folder_is_removed_when_it_is_written_again(tmp_path, writer):
    process = writer(tmp_path / "set")
    process.kill()
    process.wait()
    assert [path.name[:5] for path in tmp_path.iterdir()] == [".set."]
    with new_folder(tmp_path / "other"):
        assert len(list(tmp_path.glob(".set.*"))) == 1  # of another target
    with new_folder(tmp_path / "set") as folder:
        (folder / "whole").write_bytes(b"1")
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["whole"]
    assert not list(tmp_path.glob(".*"))


def test_what_a_living_process_writes_stays(tmp_path, writer):
    writer(tmp_path / "set")
    with new_folder(tmp_path / "set") as folder:
        assert len(list(tmp_path.glob(".set.*/new/half"))) == 1
        assert len(list(tmp_path.glob(".set.*"))) == 2
        (folder / "whole").write_bytes(b"1")
    assert len(list(tmp_path.glob(".set.*/new/half"))) == 1
    assert (tmp_path / "set" / "whole").exists()


def test_folders_of_others_stay(tmp_path):
    for name in (".set.0123abcd", ".set.mine", ".set.old.0123abcd"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(b"1")
    (tmp_path / ".set.ffffffff").mkdir()  # as of a process that was killed before it could lock it
    with new_folder(tmp_path / "set"):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {".set.0123abcd", ".set.mine", ".set.old.0123abcd", "set"}


def test_many_threads_make_folders_side_by_side(tmp_path):
    """None takes another's folder for a leftover, and one of them wins each name."""
    won, other = [], []

    def work(number):
        for k in range(10):
            try:
                with new_folder(tmp_path / f"set{k}") as folder:
                    (folder / "whole").write_text(str(number))
                won.append(k)
            except InputError:
                pass
            except BaseException as error:
                other.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not other
    assert sorted(won) == list(range(10))
    assert len(list(tmp_path.glob("set*/whole"))) == 10
    assert not list(tmp_path.glob(".*"))


def test_a_run_that_was_moved_aside_when_the_process_was_killed_comes_back(tmp_path):
    hidden = tmp_path / ".run.0123abcd"
    for part, word in (("old", "first"), ("new", "second")):
        (hidden / part).mkdir(parents=True)
        write_json(hidden / part / "config.json", {"gammacaps": word, "model": {}})
    (hidden / "lock").touch()
    with pytest.raises(InputError, match="exists already"), new_folder(tmp_path / "run"):
        pass
    assert json.loads((tmp_path / "run" / "config.json").read_text())["gammacaps"] == "first"
    with new_run(tmp_path / "run", overwrite=True) as folder:
        write_json(folder / "config.json", {"gammacaps": "third", "model": {}})
    assert json.loads((tmp_path / "run" / "config.json").read_text())["gammacaps"] == "third"
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_an_overwrite_that_fails_keeps_the_run(tmp_path):
    write_json(make(tmp_path / "run") / "config.json", {"gammacaps": "first", "model": {}})
    with pytest.raises(KeyboardInterrupt), new_run(tmp_path / "run", overwrite=True):
        raise KeyboardInterrupt
    assert read_json(tmp_path / "run" / "config.json")["gammacaps"] == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    with pytest.raises(InputError, match="not a run's folder"), new_run(make(tmp_path / "no"), overwrite=True):
        pass


def make(path):
    path.mkdir()
    return path


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"[" * 100_000, "nested too deeply"),
        (b"[" * 200 + b"]" * 200, "nested too deeply"),
        (b'{"a": ' * 150 + b"1" + b"}" * 150, "nested too deeply"),
        (b"9" * 5000, "a whole number that is too large"),
        (b'{"seed": -99999999999999999999}', "a whole number that is too large"),
        (b'{"rate": NaN}', "a number that is not finite"),
        (b"[-Infinity]", "a number that is not finite"),
        (b"[1e400]", "a number that is not finite"),
        (b'["\\ud800"]', "characters that can't be written"),
        (b'{"\\udfff": 1}', "characters that can't be written"),
        (b'["a\\u0000b"]', "characters that can't be written"),
        (b'{"a": 1}\0', "Extra data"),
        (b'["a\0b"]', "Invalid control character"),
        (b"\0", "Expecting value"),
        (b"\xef\xbb\xbf{}", "starts with a byte order mark: save it as UTF-8 without one"),
        (b"\xff\xfe{\0}\0", "can't decode byte 0xff"),
        (b"", "Expecting value"),
        (b"{'a': 1}", "Expecting property name"),
    ],
)
def test_json_that_can_t_be_used_is_one_sentence(tmp_path, content, words):
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with pytest.raises(InputError) as error:
        read_json(path)
    assert str(error.value).startswith(f"{path} can't be read as JSON (")
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_json_that_can_be_used_is_read(tmp_path):
    value = {"a": [1, -2.5, 1e300, 18446744073709551615, None, True, {"ä": "\N{GRINNING FACE}", "": []}]}
    write_json(tmp_path / "file.json", value)  # writes the face as two escapes that belong together
    assert read_json(tmp_path / "file.json") == value
    (tmp_path / "file.json").write_bytes(json.dumps(value, ensure_ascii=False).encode())
    assert read_json(tmp_path / "file.json") == value


def test_a_path_that_is_no_readable_file_is_one_sentence(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"There is no file .*none.json\.$"):
        read_json(tmp_path / "none.json")
    with pytest.raises(InputError, match=r"can't be read \(Is a directory\): check the path"):
        read_json(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"can't be read \(Not a directory\): check the path"):
        read_json(tmp_path / "file" / "config.json")

    def refused(_):  # chmod would not stop root
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refused)
    with pytest.raises(InputError, match=r"can't be read \(Permission denied\): check the path and its permissions"):
        read_json(tmp_path / "file")


@pytest.mark.parametrize("error", [OSError(), OSError("odd"), PermissionError(13, "Permission denied")])
def test_any_system_error_is_told_in_one_sentence(tmp_path, error):
    words = r"can't be written \((OSError|odd|Permission denied)\): free space or"
    with pytest.raises(InputError, match=words), writing(tmp_path):
        raise error


def test_a_folder_that_can_t_even_be_looked_at_is_one_sentence(tmp_path, monkeypatch):
    def refused(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "stat", refused)
    with pytest.raises(InputError, match=r"set can't be written \(Permission denied\)"), new_folder(tmp_path / "set"):
        pass


HALF = """
import os, signal, sys
from pathlib import Path
from gammacaps import files
files.os.fsync = lambda handle: (print("half", flush=True), signal.pause())
files.write_whole(Path(sys.argv[1]), b"new")
"""


def test_what_a_killed_process_left_of_a_file_is_removed_when_it_is_written_again(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    command = [sys.executable, "-c", HALF, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        try:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "half\n"
            write_whole(path, b"ours")  # beside one who is still at it
            assert len(list(tmp_path.iterdir())) == 2
            assert path.read_bytes() == b"ours"
        finally:
            writer.kill()
    assert len(list(tmp_path.iterdir())) == 2
    write_whole(path, b"ours again")
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == b"ours again"


def test_many_threads_write_the_same_file(tmp_path):
    path, failed = tmp_path / "file", []

    def write(content):
        try:
            for _ in range(30):
                write_whole(path, content)
        except InputError as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(bytes([65 + k]) * 1000,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert list(tmp_path.iterdir()) == [path]
    assert len(set(path.read_bytes())) == 1
