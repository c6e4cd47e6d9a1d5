"""The commands in README and docs, and those that programs print: each is one that the command line knows."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gammacaps import __version__
from gammacaps.cli.parse import options_of, split_verb
from gammacaps.cli.verbs import VERBS
from gammacaps.program import as_typed, command, program

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES += sorted((ROOT / "src" / "gammacaps" / "models" / "weights").glob("*/README.md"))
PAGES += sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))
# Quick, and of nothing that another command must have made before.
QUICK = ("gammacaps data", "gammacaps reproduce --dry-run", "gammacaps --help")


# Not those with GAMMACAPS_PLUGINS: they name what a module of the reader's own adds.
COMMAND = r"(?:torchrun (?:--?\S+ (?:[^-]\S* )?)+?-m )?gammacaps (.+)"


def text_of(page: Path) -> str:
    """A page's Markdown; of a notebook that of its cells of text."""
    if page.suffix != ".ipynb":
        return page.read_text()
    cells = json.loads(page.read_text())["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


def lines_of(page: Path) -> list[str]:
    """The commands of a page: lines of its indented blocks, and what stands in backticks in its text."""
    text = text_of(page).replace("\\\n", " ")
    blocks = [line.strip() for line in text.splitlines() if line.startswith("    ")]
    inline = [" ".join(code.split()) for code in re.findall(r"(?<!`)`([^`]+)`(?!`)", text)]
    return [*blocks, *inline]


def gammacaps_commands() -> list[tuple[str, str]]:
    """Page and arguments of each command of gammacaps."""
    found = []
    for page in PAGES:
        for line in lines_of(page):
            start = re.match(COMMAND, line)
            if start and not re.search(r"\.\.\.|VERB", line):
                found.append((str(page.relative_to(ROOT)), start[1]))
    return found


COMMANDS = gammacaps_commands()


def test_commands_are_found():
    assert len(COMMANDS) > 60
    assert [words for page, words in COMMANDS if page == "README.md" and words.startswith("report fashion-mini ")]
    assert [
        words for page, words in COMMANDS if page.endswith("3-own-pictures.ipynb") and words.startswith("data check")
    ]
    assert any("--nnodes" not in words and page == "docs/distributed.md" for page, words in COMMANDS)


@pytest.mark.parametrize(("page", "words"), sorted(set(COMMANDS)))
def test_the_command_line_knows_every_command_of_the_pages(page, words):
    arguments = shlex.split(words, comments=True)
    if arguments[0].startswith("--"):
        assert arguments in (["--help"], ["--version"])
        return
    verb, rest = split_verb(arguments, VERBS)
    kind, _ = VERBS[verb]
    if "--help" in rest or (not rest and verb in ("evaluate", "audit", "report", "explain", "export", "data check")):
        return  # a verb named in a sentence
    if verb == "train" and "--config" in rest:
        return  # of a file that is not there
    options_of(kind, verb, rest)


@pytest.mark.slow
def test_quick_commands_run_in_a_new_shell(tmp_path):
    for line in QUICK:
        done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (line, done.stderr)


def test_make_knows_every_target_of_the_pages():
    targets = set(re.findall(r"^([a-z]+)(?: [a-z]+)*:", (ROOT / "Makefile").read_text(), re.MULTILINE))
    targets |= set(re.search(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split())
    named = {m[1] for page in PAGES for line in lines_of(page) if (m := re.match(r"make ([a-z]+)", line))}
    assert {"demo", "test"} <= named <= targets


def test_the_readme_says_how_the_command_comes_into_the_shell():
    before, _, after = (ROOT / "README.md").read_text().partition(". .venv/bin/activate")
    assert "make demo" in before
    assert "gammacaps explore" in after
    assert not re.search(r"^    gammacaps", before, re.MULTILINE)


def test_a_printed_command_names_the_program_as_this_shell_knows_it(tmp_path, monkeypatch):
    assert command("explore") == "gammacaps explore"  # the tests' shell knows it
    bin_folder = tmp_path / "my project" / ".venv" / "bin"
    bin_folder.mkdir(parents=True)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(bin_folder / "python"))
    assert program() == f"'{bin_folder}/python' -m gammacaps"
    (bin_folder / "gammacaps").write_text("")
    monkeypatch.chdir(tmp_path / "my project")
    assert command("train --resume run") == ".venv/bin/gammacaps train --resume run"
    said = as_typed("A gammacaps network: see gammacaps data check --help, or x/gammacaps train.", VERBS)
    assert said == "A gammacaps network: see .venv/bin/gammacaps data check --help, or x/gammacaps train."


@pytest.mark.slow
def test_what_a_shell_without_the_command_is_told_runs_as_printed(tmp_path):
    """The folder that holds Python also holds the program; neither is on the path."""
    system = os.pathsep.join(folder for folder in ("/usr/bin", "/bin") if not shutil.which("gammacaps", path=folder))
    program_of = [sys.executable, "-m", "gammacaps"]
    given = {"cwd": tmp_path, "capture_output": True, "text": True, "check": False}
    done = subprocess.run([*program_of, "train", "--stpes", "3"], env={**os.environ, "PATH": system}, **given)
    printed = re.search(r"see (.+ train --help)\.$", done.stderr.strip())[1]
    assert not printed.startswith("gammacaps")
    again = subprocess.run(["bash", "-c", printed], env={**os.environ, "PATH": system}, **given)
    assert again.returncode == 0, again.stderr
    assert "--attack-steps" in again.stdout


def test_the_citation_is_of_this_version():
    about = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {__version__}\n" in about
    assert "γ-capsules" in about


def test_links_between_pages_lead_somewhere():
    pages = [*PAGES, ROOT / "CHANGELOG.md", ROOT / "SECURITY.md", *sorted((ROOT / ".github").rglob("*.md"))]
    for page in pages:
        for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text_of(page)):
            assert "://" in link or (page.parent / link).exists(), (page.name, link)
