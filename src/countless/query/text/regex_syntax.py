r"""A parser of regular expressions in DuckDB's syntax (RE2).

Only the structure is parsed here: groups, alternatives, repetitions, flags and assertions such as ``^`` and ``\b``. An
*atom*, an expression for one character (``a``, ``.``, ``[^a-z]``, ``\pL``), stays as it is written, and DuckDB itself
decides which letters match it. DuckDB has accepted the expression before, unless it is plain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from countless.errors import UnsupportedQueryError

MOST_PLAIN = 500  # characters of a plain expression: RE2 has limits of its own
MOST_REQUIRED = 8  # texts of which every match has one
ESCAPED = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
COUNT = re.compile(r"\{(\d+)(,(\d*))?\}", re.ASCII)
FLAGS = re.compile(r"\(\?([imsU]*)(?:-([imsU]+))?([:)])")
NAMED = re.compile(r"\(\?P?<\w+>")
POSIX = re.compile(r"\[:\^?[a-z]+:\]")
KINDS = re.compile(r"\\(?:[dDsSwW]|[pP](?:\{\^?\w+\}|\w))")
HEX = re.compile(r"\\x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]+)\})")
FOLDED = re.compile(r"\(\?i:\\x\{([0-9a-f]+)\}\)")  # a character that ignores case, as it is written here
ANY_LETTER = ""  # stands for a class, which may have any letter
PLAIN_TOKEN = re.compile(
    r"""[A-Za-z0-9 _/,:;=@\#%&"'<>~`!-]|\\[!-/:-@\[-^`{-~]|\.|\[\^?(?:a-z|A-Z|0-9|[A-Za-z0-9_/](?!-))+\]|[()|^$*+?]""",
    re.ASCII,
)
OCTAL = re.compile(r"\\(0[0-7]{0,2}|[1-7][0-7]{1,2})")


class Assertion(Enum):
    """A condition on the position between two characters."""

    BEGIN = "begin of the text"
    END = "end of the text"
    LINE_BEGIN = "begin of a line"
    LINE_END = "end of a line"
    BOUNDARY = "a word character on one side"
    NO_BOUNDARY = "word characters on both sides or on none"


@dataclass(frozen=True)
class Atom:
    """An expression for one character: the character itself if ``literal``, else an expression with its own flags."""

    text: str
    literal: bool


@dataclass(frozen=True)
class Sequence:
    """Parts one after the other; without parts, the empty text."""

    parts: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Choice:
    """One of the parts."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Repeat:
    """At least ``low`` times, and at most ``high`` times if that is not None."""

    part: Node
    low: int
    high: int | None


Node = Atom | Assertion | Sequence | Choice | Repeat


@dataclass(frozen=True)
class Regex:
    """An expression, and whether it is to match the whole text or somewhere in it."""

    root: Node
    whole: bool


def search(pattern: str, options: str = "") -> Regex:
    """The texts in which ``pattern`` matches somewhere; ``options`` are those of DuckDB's regexp_matches."""
    return Regex(_root(pattern, options), whole=False)


def full_match(pattern: str, options: str = "") -> Regex:
    """The texts that ``pattern`` matches from begin to end."""
    return Regex(_root(pattern, options), whole=True)


def is_plain(pattern: str) -> bool:
    """Whether ``pattern`` is so plain that RE2 surely accepts it, so that DuckDB need not check it.

    >>> [is_plain(text) for text in (r"^/usr/(lib|share)/.*\\.so$", "[a-z0-9]+x?", "(a", "*a", "a**", "[z-a]", "é")]
    [True, True, False, False, False, False, False]
    """
    tokens = PLAIN_TOKEN.findall(pattern)
    if len(pattern) > MOST_PLAIN or sum(map(len, tokens)) != len(pattern):
        return False
    open_groups, repeatable = 0, False
    for token in tokens:
        if token in ("*", "+", "?") and not repeatable:
            return False
        open_groups += (token == "(") - (token == ")")
        if open_groups < 0:
            return False
        repeatable = token not in ("*", "+", "?", "(", "|", "^", "$")
    return open_groups == 0


def required_texts(root: Node) -> tuple[str, ...]:
    """Texts of which every match contains at least one, the longest that are known; empty if none are known.

    >>> required_texts(search(r"^lib(ssl)+[0-9]*\\.so").root), required_texts(search("x(usr|share)").root)
    (('lib',), ('usr', 'share'))
    >>> required_texts(search("a|[0-9]").root)
    ()
    """
    runs = [""]
    choices: list[tuple[str, ...]] = []

    def read(node: Node) -> None:
        if isinstance(node, Atom) and node.literal:
            runs[-1] += node.text
        elif isinstance(node, Sequence):
            for part in node.parts:
                read(part)
        elif isinstance(node, Repeat) and node.low:
            runs.append("")
            read(node.part)
            runs.append("")
        elif not isinstance(node, Assertion):
            runs.append("")
            if isinstance(node, Choice):
                parts = [required_texts(part) for part in node.parts]
                choices.append(tuple(text for texts in parts for text in texts) if all(parts) else ())

    read(root)
    candidates = [(run,) for run in runs if run] + [texts for texts in choices if 0 < len(texts) <= MOST_REQUIRED]
    return max(candidates, key=lambda texts: min(map(len, texts)), default=())


def _root(pattern: str, options: str) -> Node:
    ignore_case, dot_all, literal = False, False, False
    for option in options:
        ignore_case = option == "i" or (ignore_case and option != "c")
        dot_all = option == "s" or (dot_all and option not in "mnp")
        literal |= option == "l"
    flags = frozenset("i" * ignore_case + "s" * dot_all)
    if literal:
        return Sequence(tuple(_character(character, flags) for character in pattern))
    root = _RegexReader(_without_quotes(pattern), flags).read()
    _refuse_mixed_case(root)
    return root


def _refuse_mixed_case(node: Node) -> None:
    """Refuse alternatives with the same letter once with its case and once without.

    RE2 merges alternatives that begin alike, and loses case folding on the way: it does not find ``a|(?i:a)`` in ``A``.
    """
    if isinstance(node, Choice):
        folded, plain = set(_letters(node, folded=True)), set(_letters(node, folded=False))
        if folded & plain or (ANY_LETTER in folded and plain) or (ANY_LETTER in plain and folded):
            raise UnsupportedQueryError(
                "alternatives of which some ignore case and others do not have no certain meaning: "
                "write conditions of their own, joined by OR"
            )
    for part in _parts(node):
        _refuse_mixed_case(part)


def _letters(node: Node, folded: bool) -> Iterator[str]:
    """The letters, in lower case, of the atoms that ignore case, or of those that do not."""
    if isinstance(node, Atom) and folded == node.text.startswith("(?i"):
        letter = FOLDED.fullmatch(node.text)
        if letter is not None or node.literal:
            yield chr(int(letter[1], 16)).lower() if letter else node.text.lower()
        elif "[" in node.text or "\\p" in node.text.lower():
            yield ANY_LETTER
    for part in _parts(node):
        yield from _letters(part, folded)


def _parts(node: Node) -> tuple[Node, ...]:
    if isinstance(node, Repeat):
        return (node.part,)
    return node.parts if isinstance(node, Sequence | Choice) else ()


def _without_quotes(pattern: str) -> str:
    r"""``pattern`` with the text of ``\Q...\E`` escaped.

    >>> print(_without_quotes(r"a\\Q\Q.*\Eb"))
    a\\Q\x{2e}\x{2a}b
    """
    unquoted: list[str] = []
    index = 0
    while index < len(pattern):
        if pattern.startswith("\\Q", index):
            quoted = pattern[index + 2 :].split("\\E", 1)[0]
            unquoted.extend(map(_escaped, quoted))
            index += len(quoted) + 4
            continue
        length = 2 if pattern[index] == "\\" else 1
        if not pattern.startswith("\\E", index):
            unquoted.append(pattern[index : index + length])
        index += length
    return "".join(unquoted)


class _RegexReader:
    """A recursive-descent parser of one expression."""

    def __init__(self, pattern: str, flags: frozenset[str]) -> None:
        self.pattern = pattern
        self.flags = flags
        self.index = 0

    def read(self) -> Node:
        """Alternatives up to the end of the group, or of the expression."""
        parts = [self._sequence()]
        while self._next("|"):
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _next(self, character: str) -> bool:
        is_next = self.pattern.startswith(character, self.index)
        self.index += is_next
        return is_next

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while self.index < len(self.pattern) and self.pattern[self.index] not in "|)":
            part = self._part()
            if part is not None:
                parts.append(part)
            if parts:  # flags are no part: in a(?i)* the a is repeated
                parts.append(self._repeated(parts.pop()))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _repeated(self, part: Node) -> Node:
        while True:
            count = COUNT.match(self.pattern, self.index)
            if count is not None:
                self.index += len(count[0])
                low = int(count[1])
                part = Repeat(part, low, low if count[2] is None else int(count[3]) if count[3] else None)
            elif self._next("*"):
                part = Repeat(part, 0, None)
            elif self._next("+"):
                part = Repeat(part, 1, None)
            elif self._next("?"):
                part = Repeat(part, 0, 1)
            else:
                return part
            self._next("?")  # lazy or not, it matches the same texts

    def _part(self) -> Node | None:
        """The next part; None if it only sets flags."""
        character = self.pattern[self.index]
        if character == "(":
            return self._group()
        if character == "\\":
            return self._escape()
        if character == "[":
            return self._class()
        self.index += 1
        if character == "^":
            return Assertion.LINE_BEGIN if "m" in self.flags else Assertion.BEGIN
        if character == "$":
            return Assertion.LINE_END if "m" in self.flags else Assertion.END
        return self._kind(".") if character == "." else _character(character, self.flags)

    def _group(self) -> Node | None:
        flags, named_group = FLAGS.match(self.pattern, self.index), NAMED.match(self.pattern, self.index)
        outer_flags = self.flags
        if flags is not None:
            self.flags = (self.flags | set(flags[1])) - set(flags[2] or "")
            self.index += len(flags[0])
            if flags[3] == ")":
                return None
        elif named_group is None and self.pattern.startswith("(?", self.index):
            raise UnsupportedQueryError(
                "look-ahead and look-behind are not regular: write two conditions, joined by AND or AND NOT"
            )
        else:
            self.index += len(named_group[0]) if named_group else 1
        inner = self.read()
        self.index += 1
        self.flags = outer_flags
        return inner

    def _escape(self) -> Node:
        kind = self.pattern[self.index + 1 : self.index + 2]
        if kind in ASSERTIONS:
            self.index += 2
            return ASSERTIONS[kind]
        if kind == "C":
            raise UnsupportedQueryError(r"\C is a byte, but text is matched by characters: write . instead")
        for form, base in ((HEX, 16), (OCTAL, 8)):
            number = form.match(self.pattern, self.index)
            if number is not None:
                self.index += len(number[0])
                return _character(chr(int(next(filter(None, number.groups())), base)), self.flags)
        kinds = KINDS.match(self.pattern, self.index)
        if kinds is not None:
            self.index += len(kinds[0])
            return self._kind(kinds[0])
        if kind.isdigit():
            raise UnsupportedQueryError("back-references are not supported: write out what may repeat")
        self.index += 2
        return _character(ESCAPED.get(kind, kind), self.flags)

    def _class(self) -> Node:
        """A class in brackets, whose first character may be a bracket too."""
        start = self.index
        self.index += 1
        self._next("^")
        first = self.index
        while self.pattern[self.index] != "]" or self.index == first:
            posix = POSIX.match(self.pattern, self.index)
            self.index += len(posix[0]) if posix else 2 if self.pattern[self.index] == "\\" else 1
        self.index += 1
        return self._kind(self.pattern[start : self.index])

    def _kind(self, text: str) -> Atom:
        flags = "".join(sorted(self.flags & {"i", "s"}))
        return Atom(f"(?{flags}:{text})" if flags else text, literal=False)


ASSERTIONS = {
    "A": Assertion.BEGIN,
    "z": Assertion.END,
    "b": Assertion.BOUNDARY,
    "B": Assertion.NO_BOUNDARY,
}


def _character(character: str, flags: frozenset[str]) -> Atom:
    return Atom(f"(?i:{_escaped(character)})", literal=False) if "i" in flags else Atom(character, literal=True)


def _escaped(character: str) -> str:
    return rf"\x{{{ord(character):x}}}"
