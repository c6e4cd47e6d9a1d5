"""From the words of a command line to a verb and its options."""

import contextlib
import io
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import tyro
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from gammacaps.cli.options import TrainOptions
from gammacaps.errors import InputError, check_choice, no_such
from gammacaps.names import shipped_names
from gammacaps.options import as_number
from gammacaps.runs.train_config import TrainConfig, read_config_file

COLOURS = re.compile(r"\033\[[0-9;]*m")
NUMBERS = "numbers"
TYPES = {  # how tyro says that a value has another type
    NUMBERS: r"no type matching \S*\[(?:FLOAT|INT) .*\.\.\.\S* could be instantiated from|"
    r"Could not find valid parse for arguments:",
    "a number": r"could not convert string to float:|no type matching \S*FLOAT could be instantiated from",
    "a whole number": r"invalid literal for int\(\) with base 10:|no type matching \S*INT could be instantiated from",
}

KINDS = ConstructorRegistry()  # kinds of values that are read in our own way


@KINDS.primitive_rule
def fractions(kind: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[float] | None:
    """Wherever a number is taken, one may be written as people write a radius: 8/255."""
    if kind.type is not float:
        return None
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar="FLOAT",
        instance_from_str=lambda words: as_number(words[0]),
        is_instance=lambda value: type(value) in (int, float),
        str_from_instance=lambda value: [str(value)],
    )


def overview(verbs: Mapping[str, tuple[type[Any], Any]]) -> str:
    """What `gammacaps --help` says: a line a verb."""
    lines = ["gammacaps: capsule networks that are robust to attack and that people can look inside", ""]
    lines += [f"  gammacaps {verb:<12}{kind.__doc__}" for verb, (kind, _) in verbs.items()]
    names = ", ".join(shipped_names())
    lines += ["", f"Networks that come with gammacaps, for where a command takes a run: {names}."]
    return "\n".join([*lines, "gammacaps VERB --help shows a command's options."])


def split_verb(arguments: list[str], verbs: Iterable[str]) -> tuple[str, list[str]]:
    """The verb, of one word or two, and the words after it."""
    verb, *rest = arguments
    if rest and f"{verb} {rest[0]}" in verbs:
        verb, rest = f"{verb} {rest[0]}", rest[1:]
    check_choice("command", verb, verbs, also=", or see gammacaps --help")
    return verb, rest


def wants_help(arguments: list[str]) -> bool:
    return bool({"-h", "--help"} & set(arguments))


def options_of(kind: type[Any], verb: str, arguments: list[str]) -> Any:
    """A verb's options, as the dataclass that describes them; what is wrong with them is one sentence."""
    path = config_file(verb, arguments)
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed):
            options = tyro.cli(
                kind,
                prog=f"gammacaps {verb}",
                args=arguments,
                default=TrainOptions(train=read_config_file(path)) if path else tyro.MISSING_NONPROP,
                config=(tyro.conf.OmitArgPrefixes,),
                registry=KINDS,
            )
    except BrokenPipeError:  # of help
        sys.exit(0)
    except SystemExit as end:
        if not end.code:  # help
            raise
        raise InputError(sentence(printed.getvalue(), verb)) from None
    return with_given(options, arguments) if isinstance(options, TrainOptions) else options


def sentence(box: str, verb: str) -> str:
    """What tyro says in a box over several lines: its first part, and the option that was perhaps meant."""
    lines = [line.strip("│ ") for line in COLOURS.sub("", box).splitlines() if line[:1] not in ("╭", "╰")]
    parts = re.split(r"\n(?:[─-]{5,}|)\n", "\n".join(lines))
    if "╭" not in box and len(parts) > 1:  # where it can't draw a frame, the title is a part of its own
        parts = parts[1:]
    words = " ".join(parts[0].split()).rstrip(".")
    if own := re.match(r"Error parsing (?!-)\S+: (.+)", words):  # of one of our checks, which say what to do
        return f"{own[1]}."
    words = of_a_type(of_choices(what_is_missing(words))).replace(". Expected", ": expected")
    near = re.search(r"^Perhaps you meant:\s+(--\S+)", "\n".join(parts[1:]), re.MULTILINE)
    guess = f" (did you mean {near[1]}?)" if near else ""
    return f"{words[:1].upper()}{words[1:]}{guess}; see gammacaps {verb} --help."


def what_is_missing(words: str) -> str:
    """Where options are missing, each with its help in brackets; other words as they are."""
    missing = re.match(r"(Missing from gammacaps [a-z ]+: )(.+)", words)
    if missing is None:
        return words
    options = re.findall(r"(--\S+)? ?(\S+) (.+?) \(required\) ?", missing[2])  # flag, type, help
    named = [f"{flag or kind} ({text[:1].lower()}{text[1:].rstrip('.')})" for flag, kind, text in options]
    return missing[1] + (" and ".join(named) or missing[2])


def of_choices(words: str) -> str:
    """Where a word is none of those that an option takes, the nearest and all of them; other words as they are."""
    wrong = re.match(r"invalid choice '(.*)' for argument '(\S+)'\. Expected one of \((.+)\)$", words)
    if wrong is None:
        return words
    option = wrong[2]
    # What stands without a flag takes several and is named for all of them, as in parts.
    what = option[2:].replace("-", " ") if option.startswith("--") else option.removesuffix("s")
    return no_such(what, wrong[1], re.findall(r"'(.+?)'", wrong[3]))


def of_a_type(words: str) -> str:
    """Where a value has the wrong type, which one the option takes; other words as they are."""
    for kind, signs in TYPES.items():
        if wrong := re.match(rf"Error parsing (--\S+): (?:{signs}) \[?(.+?)\]?$", words):
            commas = kind == NUMBERS and re.search(r"\d,", wrong[2])
            way = f": separate them by spaces, as in {wrong[1]} 0.1 0.2" if commas else ""
            return f"{wrong[1]} takes {kind}, not {wrong[2]}{way}"
    return words


def with_given(options: TrainOptions, arguments: list[str]) -> TrainOptions:
    """With the names of the options that were given."""
    flags = [argument.partition("=")[0] for argument in arguments if argument.startswith("--")]
    words = {flag.replace("-", "_").removeprefix("__") for flag in flags}
    names = (one.name for one in fields(TrainConfig))
    return replace(options, given=tuple(name for name in names if {name, f"no_{name}"} & words))


def config_file(verb: str, arguments: list[str]) -> Path | None:
    """The file that `train --config` names, read before the other options so that these win over it."""
    if verb != "train":
        return None
    for place, argument in enumerate(arguments):
        if argument == "--config" and place + 1 < len(arguments):
            return Path(arguments[place + 1])
        if argument.startswith("--config="):
            return Path(argument.partition("=")[2])
    return None
