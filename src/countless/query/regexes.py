"""Regular expressions as DuckDB reads them (RE2), rewritten for the automata of Rust's regex library.

Automata know no anchors, so a text is read in a frame: LEAD, BEGIN (once or more), the text, END (once or more), LEAD.
``^`` and ``$`` are then characters of the frame, which nothing else in an expression may match.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from countless.errors import UnsupportedQueryError

LEAD, BEGIN, END, ELSE = FRAME = "\ufdd0\ufdd1\ufdd2\ufdd3"  # no characters, says Unicode
FRAME_CLASS = r"[\x{fdd0}-\x{fdd3}]"
TEXT = r"[^\x{fdd0}-\x{fdd3}]*"
ASSERTIONS = re.compile(r"(?:\^|\$|\\[AzbB])+(?![*+?{])")
ONE_ASSERTION = re.compile(r"\^|\$|\\[AzbB]")
SPARE = 4  # times that ^ or $ may hold beyond those written, as in (?:^a|b)+
ESCAPED = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
CLASSES = {"d": "0-9", "s": r"\t\n\f\r ", "w": "0-9A-Za-z_"}  # of ASCII, as in RE2
COUNT = re.compile(r"\{(\d+)(,(\d*))?\}")
FLAGS = re.compile(r"\(\?([imsU]*)(?:-([imsU]+))?([:)])")
NAMED = re.compile(r"\(\?P?<\w+>")
POSIX = re.compile(r"\[:\^?[a-z]+:\]")
UNICODE = re.compile(r"\\[pP](?:\{\^?\w+\}|\w)")
HEX = re.compile(r"\\x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]+)\})")
OCTAL = re.compile(r"\\(0[0-7]{0,2}|[1-7][0-7]{1,2})")


@dataclass(frozen=True)
class Regex:
    """An expression for a text in its frame; ``weight`` says how many states it may need, as a power of two."""

    text: str
    begins: int
    ends: int
    weight: int


def search(pattern: str, flags: str = "") -> Regex:
    """The texts in which ``pattern`` matches somewhere."""
    return _framed(pattern, flags, TEXT, TEXT)


def full_match(pattern: str, flags: str = "") -> Regex:
    """The texts that ``pattern`` matches from begin to end."""
    return _framed(pattern, flags, "", "")


def _framed(pattern: str, flags: str, before: str, after: str) -> Regex:
    ignore_case, dot_all, literal = False, False, False
    for flag in flags:
        ignore_case = flag == "i" or (ignore_case and flag != "c")
        dot_all = flag == "s" or (dot_all and flag not in "mnp")
        literal |= flag == "l"
    writer = _Rewriter(pattern, dot_all)
    written = "".join(map(_character, pattern)) if literal else writer.rewrite()
    body = f"(?i:{written})" if ignore_case else f"(?:{written})"
    # The second branch gives every state somewhere to go: the library refuses expressions with dead ends.
    text = f"{LEAD}{BEGIN}*{before}{body}{after}{END}*{LEAD}|(?s:.*){ELSE}"
    return Regex(text, writer.begins, writer.ends, writer.levels[0].weight)


@dataclass
class _Level:
    """An open group: the dot's meaning in it, the weight of what is complete, and of the last atom."""

    dot_all: bool
    complete: int = 0
    last: int = 0

    @property
    def weight(self) -> int:
        return self.complete + self.last

    def atom(self, weight: int) -> None:
        self.complete, self.last = self.weight, weight


@dataclass
class _Rewriter:
    """One walk along one expression, which DuckDB has found to be well-formed."""

    pattern: str
    dot_all: bool
    begins: int = SPARE
    ends: int = SPARE
    place: int = 0
    levels: list[_Level] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.levels.append(_Level(self.dot_all))

    def rewrite(self) -> str:
        written = []
        while self.place < len(self.pattern):
            written.append(self._token())
        return "".join(written)

    def _take(self, length: int) -> str:
        self.place += length
        return self.pattern[self.place - length : self.place]

    def _token(self) -> str:
        run = ASSERTIONS.match(self.pattern, self.place)
        if run is not None:
            return self._assertions(run[0])
        character, level = self.pattern[self.place], self.levels[-1]
        if character == "(":
            return self._open()
        if character == ")" and len(self.levels) > 1:
            inner = self.levels.pop()
            self.levels[-1].atom(inner.weight)
            return self._take(1)
        count = COUNT.match(self.pattern, self.place)
        if count is not None:
            level.last *= max(1, int(count[3] or count[1]))
            return self._take(len(count[0]))
        if character in "|*+?":
            if character != "?" or self.pattern[self.place - 1] not in "*+?}":  # lazy or not, it matches the same
                level.last += 1
            return self._take(1)
        one = ONE_ASSERTION.match(self.pattern, self.place)
        if one is not None:
            return f"(?:{self._assertions(one[0])})"
        if character == "\\":
            return self._escape()
        if character == "[":
            level.atom(1)
            return self._class()
        if character == ".":
            level.atom(1)
            self.place += 1
            return _without_frame("[^]" if level.dot_all else r"[^\n]")
        level.atom(0)
        self.place += 1
        return _character(character)

    def _assertions(self, run: str) -> str:
        """Assertions about one place, whose order does not matter: ``^`` first and ``$`` last, as the frame is."""
        self.place += len(run)
        self.levels[-1].atom(0)
        found = {{"A": "^", "z": "$"}.get(one[-1], one) for one in ONE_ASSERTION.findall(run)}
        begin, end = BEGIN * ("^" in found), END * ("$" in found)
        self.begins += len(begin)
        self.ends += len(end)
        return begin + "".join(f"(?-u:{one})" for one in sorted(found - {"^", "$"})) + end

    def _open(self) -> str:
        level = self.levels[-1]
        flags, named = FLAGS.match(self.pattern, self.place), NAMED.match(self.pattern, self.place)
        if flags is not None:
            on, off, closing = flags[1], flags[2] or "", flags[3]
            if "m" in on:
                raise UnsupportedQueryError(
                    "(?m), by which ^ and $ match at every line, is not supported: leave it out"
                )
            dot_all = ("s" in on or level.dot_all) and "s" not in off
            if closing == ")":
                level.dot_all = dot_all
            else:
                self.levels.append(_Level(dot_all))
            self.place += len(flags[0])
            case = "i" if "i" in on else "-i" if "i" in off else ""
            return f"(?{case}{closing}" if case or closing == ":" else ""
        if named is None and self.pattern.startswith("(?", self.place):
            raise UnsupportedQueryError(
                "look-ahead and look-behind are not regular: write two conditions, joined by AND or AND NOT"
            )
        self.levels.append(_Level(level.dot_all))
        self.place += len(named[0]) if named else 1
        return "("

    def _escape(self) -> str:
        kind = self.pattern[self.place + 1 : self.place + 2]
        if kind == "Q":
            quoted = self.pattern[self.place + 2 :].split(r"\E", 1)[0]
            self.place += len(quoted) + 4
            self.levels[-1].atom(0)
            return "".join(map(_character, quoted))
        if kind == "E":
            self.place += 2
            return ""
        self.levels[-1].atom(int(kind.lower() in CLASSES or kind in ("p", "P")))
        if kind == "C":
            raise UnsupportedQueryError(r"\C is a byte, and texts are read by characters: write . instead")
        return _without_frame(f"[{self._member()}]") if self.levels[-1].last else self._member()

    def _class(self) -> str:
        """A class in brackets."""
        self.place += 1
        negated = self.pattern.startswith("^", self.place)
        self.place += negated
        members: list[str] = []
        while self.place < len(self.pattern) and (self.pattern[self.place] != "]" or not members):
            posix = POSIX.match(self.pattern, self.place)
            if posix is not None:
                members.append(self._take(len(posix[0])))
                continue
            member = self._member()
            rest = self.pattern[self.place : self.place + 2]
            if rest[:1] == "-" and rest[1:] not in ("", "]"):
                self.place += 1
                member += f"-{self._member()}"
            members.append(member)
        self.place += 1
        return _without_frame(f"[{'^' * negated}{''.join(members)}]")

    def _member(self) -> str:
        """A character or an escaped class, as it is written in a class."""
        if self.pattern[self.place] != "\\":
            return _character(self._take(1))
        for form, base in ((HEX, 16), (OCTAL, 8)):
            number = form.match(self.pattern, self.place)
            if number is not None:
                self.place += len(number[0])
                return _character(chr(int(next(filter(None, number.groups())), base)))
        unicode = UNICODE.match(self.pattern, self.place)
        if unicode is not None:
            return self._take(len(unicode[0]))
        kind = self._take(2)[1:]
        if kind.lower() in CLASSES:
            return f"[{'^' * kind.isupper()}{CLASSES[kind.lower()]}]"
        if kind.isdigit():
            raise UnsupportedQueryError("back-references are not regular: write out what may be repeated")
        return _character(ESCAPED.get(kind, kind))


def _character(character: str) -> str:
    return rf"\x{{{ord(character):x}}}"


def _without_frame(written: str) -> str:
    return f"[{written}--{FRAME_CLASS}]" if written != "[^]" else rf"[^{FRAME_CLASS[1:-1]}]"
