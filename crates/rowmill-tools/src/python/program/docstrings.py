"""What a docstring tells: a description, and one for each argument."""

import inspect
import re

_HEADING = re.compile(r"(Args|Arguments|Parameters|Params):")
_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\(.*?\))?:\s*(.*)")
_FIELD = re.compile(r":(?:param|parameter|arg|argument|key)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)")


def read_docstring(function):
    """The first paragraph, and the texts of arguments by their names."""
    text = inspect.getdoc(function)
    if not text or (not inspect.isroutine(function) and text == inspect.getdoc(type(function))):
        return None, {}
    lines = text.splitlines()
    first = []
    for line in lines:
        stripped = line.strip()
        if not stripped or _HEADING.fullmatch(stripped) or stripped.startswith(":"):
            break
        first.append(stripped)
    return " ".join(first) or None, _arguments(lines)


def _arguments(lines):
    found = {}
    index = 0
    while index < len(lines):
        line = lines[index].strip()
        ruled = index + 1 < len(lines) and re.fullmatch(r"-{3,}", lines[index + 1].strip())
        field = _FIELD.match(line)
        if _HEADING.fullmatch(line):
            index = _google(lines, index + 1, _indent(lines[index]), found)
        elif line in ("Parameters", "Other Parameters") and ruled:
            index = _numpy(lines, index + 2, _indent(lines[index]), found)
        elif field:
            index = _sphinx(lines, index, field, found)
        else:
            index += 1
    return {name: " ".join(words).strip() for name, words in found.items() if " ".join(words).strip()}


def _google(lines, index, outer, found):
    """Entries such as `name (type): text`, deeper than their heading."""
    entries = None
    words = []
    while index < len(lines):
        line = lines[index]
        if line.strip():
            depth = _indent(line)
            if depth <= outer:
                break
            entries = depth if entries is None else entries
            entry = _ENTRY.match(line.strip()) if depth <= entries else None
            if entry:
                words = found.setdefault(entry.group(1), [])
                words.append(entry.group(2))
            else:
                words.append(line.strip())
        index += 1
    return index


def _numpy(lines, index, outer, found):
    """Entries such as `name : type`, with their texts below them and deeper."""
    texts = []
    while index < len(lines):
        line = lines[index]
        ruled = index + 1 < len(lines) and re.fullmatch(r"-{3,}", lines[index + 1].strip())
        if line.strip() and _indent(line) < outer or ruled:
            break
        if line.strip() and _indent(line) == outer:
            names = line.split(":")[0].split(",")
            texts = [found.setdefault(name.strip().lstrip("*"), []) for name in names]
        elif line.strip():
            for words in texts:
                words.append(line.strip())
        index += 1
    return index


def _sphinx(lines, index, field, found):
    """One field such as `:param name: text`, with the lines that go on with it."""
    words = found.setdefault(field.group(1), [])
    words.append(field.group(2))
    index += 1
    while index < len(lines) and lines[index].strip() and not lines[index].strip().startswith(":"):
        words.append(lines[index].strip())
        index += 1
    return index


def _indent(line):
    return len(line) - len(line.lstrip())


