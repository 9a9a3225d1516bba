r"""Regular expressions as finite automata.

An expression becomes a *program*: a list of instructions, each of which reads a character, asks something of the place
between two characters, or says where to go on. A state of the automaton is the set of instructions that the text so far
may have led to, and what the last character was, as far as ``\b`` or ``^`` ask for that: what holds at a place is known
only when the character after it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

from countless.automata.dfa import MOST_STATES, explore
from countless.automata.language import Automaton
from countless.errors import QueryTooLargeError
from countless.query.text import regex_syntax as regexes
from countless.query.text.regex_syntax import Assertion, Atom, Choice, Node, Regex, Repeat
from countless.query.text.string_sets import Script

MOST_CHARACTERS = 10_000
MOST_INSTRUCTIONS = 20_000
MOST_STEPS = 3_000_000  # from one instruction to another, in all states together: about two seconds
TOO_MANY = f"the pattern needs too many states (more than {MOST_STATES:,}, or too long to find them): simplify it"
WORD = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")  # of ASCII, as in RE2

Members = Callable[[Sequence[str], Sequence[str]], Sequence[Sequence[bool]]]
"""Expressions for one character each, and characters: for each expression, which of the characters match."""


class Side(Enum):
    """What is on one side of a place."""

    NOTHING = "the text begins or ends"
    NEWLINE = "a line ends"
    WORD = "a word character"
    OTHER = "another character"


class RegexState(NamedTuple):
    """The next instructions, as the bits of a number, and what is before the place."""

    instructions: int
    before: Side


MATCHED = RegexState(-1, Side.OTHER)  # whatever follows


def matching(script: Script, regex: Regex, members: Members) -> Automaton:
    """The strings that match ``regex``; ``members`` says which characters match its atoms."""
    program = Program.of(regex.root)
    letters = _RegexLetters(script.characters, program, members)
    walk = _Walk(program, letters, regex.whole)
    try:
        states, following = explore(walk.start, walk.after)
    except QueryTooLargeError:
        raise QueryTooLargeError(TOO_MANY) from None
    accepts = np.array([walk.accepts(state) for state in states])
    return Automaton.of_kinds(script.letters, following, letters.kind, accepts)


@dataclass(frozen=True)
class Program:
    """Instructions: an atom to read, an assertion that must hold, or the places to go on at. The last is the end.

    After an atom or an assertion the next instruction follows.
    """

    instructions: tuple[Atom | Assertion | tuple[int, ...], ...]

    @classmethod
    def of(cls, root: Node) -> Program:
        """The program of an expression."""
        written: list[Atom | Assertion | tuple[int, ...]] = []
        _write(root, written)
        return cls((*written, ()))

    @property
    def end(self) -> int:
        """The place of the last instruction, where the expression has matched."""
        return len(self.instructions) - 1


def _write(node: Node, program: list[Atom | Assertion | tuple[int, ...]]) -> None:
    if len(program) > MOST_INSTRUCTIONS:
        raise QueryTooLargeError(TOO_MANY)
    if isinstance(node, Atom | Assertion):
        program.append(node)
    elif isinstance(node, regexes.Sequence):
        for part in node.parts:
            _write(part, program)
    elif isinstance(node, Choice):
        _write_choice(node, program)
    else:
        _write_repeat(node, program)


def _write_choice(node: Choice, program: list[Atom | Assertion | tuple[int, ...]]) -> None:
    start, begins, ends = len(program), [], []
    program.append(())
    for part in node.parts:
        begins.append(len(program))
        _write(part, program)
        ends.append(len(program))
        program.append(())
    program[start] = tuple(begins)
    for end in ends:
        program[end] = (len(program),)


def _write_repeat(node: Repeat, program: list[Atom | Assertion | tuple[int, ...]]) -> None:
    for _ in range(node.low):
        _write(node.part, program)
    optional = []
    for _ in range(1 if node.high is None else node.high - node.low):
        optional.append(len(program))
        program.append(())
        _write(node.part, program)
    if node.high is None:
        program.append((optional[0],))
    for place in optional:
        program[place] = (place + 1, len(program))


class _RegexLetters:
    """The characters of a script, those that a program cannot distinguish being one kind."""

    def __init__(self, characters: Sequence[str], program: Program, members: Members) -> None:
        atoms = list(dict.fromkeys(item for item in program.instructions if isinstance(item, Atom)))
        classes = [atom.text for atom in atoms if not atom.literal]
        members_of = dict(zip(classes, members(classes, characters) if classes else (), strict=True))
        matches = [
            [character == atom.text for character in characters] if atom.literal else members_of[atom.text]
            for atom in atoms
        ]
        sides = _told_apart(program)
        side = [sides.get(_side(character), Side.OTHER) for character in characters]
        kinds: dict[tuple[object, ...], int] = {}
        columns = zip(side, *matches, strict=True)
        self.kind = [kinds.setdefault(column, len(kinds)) for column in columns]  # of each character
        self.sides: list[Side] = [column[0] for column in kinds]  # type: ignore[misc]
        self.begin = sides.get(Side.NOTHING, Side.OTHER)
        readers_of: dict[Atom, int] = dict.fromkeys(atoms, 0)
        for index, item in enumerate(program.instructions):
            if isinstance(item, Atom):
                readers_of[item] |= 1 << index
        # Of each kind, the instructions that read it.
        self.readers = [
            sum(readers_of[atom] for atom, reads in zip(atoms, column[1:], strict=True) if reads) for column in kinds
        ]


def _side(character: str) -> Side:
    if character == "\n":
        return Side.NEWLINE
    return Side.WORD if character in WORD else Side.OTHER


def _told_apart(program: Program) -> dict[Side, Side]:
    """What assertions of the program distinguish from any other character."""
    used = {item for item in program.instructions if isinstance(item, Assertion)}
    sides = {}
    if used & {Assertion.BEGIN, Assertion.LINE_BEGIN}:
        sides[Side.NOTHING] = Side.NOTHING
    if used & {Assertion.LINE_BEGIN, Assertion.LINE_END}:
        sides[Side.NEWLINE] = Side.NEWLINE
    if used & {Assertion.BOUNDARY, Assertion.NO_BOUNDARY}:
        sides[Side.WORD] = Side.WORD
    return sides


class _Walk:
    """From state to state."""

    def __init__(self, program: Program, letters: _RegexLetters, whole: bool) -> None:
        self._program = program
        self._letters = letters
        self._whole = whole
        self._reached: dict[tuple[int, Side, Side], int] = {}
        self._steps = 0
        self.start = RegexState(1, letters.begin)

    def after(self, state: RegexState) -> list[RegexState]:
        """The states after each kind of letter."""
        if state is MATCHED:
            return [MATCHED] * len(self._letters.sides)
        following = []
        reached: dict[Side, int] = {}
        for side, readers in zip(self._letters.sides, self._letters.readers, strict=True):
            if side not in reached:
                reached[side] = self._reach(state, side)
            if not self._whole and self._has_matched(reached[side]):
                following.append(MATCHED)
            else:
                instructions = (reached[side] & readers) << 1 | (not self._whole)
                following.append(RegexState(instructions, side))
        return following

    def accepts(self, state: RegexState) -> bool:
        """Whether the text may end here."""
        return state is MATCHED or self._has_matched(self._reach(state, Side.NOTHING))

    def _has_matched(self, reached: int) -> bool:
        return bool(reached >> self._program.end & 1)

    def _reach(self, state: RegexState, side: Side) -> int:
        """The atoms, and perhaps the end, that the state leads to if ``side`` comes after the place."""
        reached, rest = 0, state.instructions
        while rest:
            lowest = rest & -rest
            rest ^= lowest
            reached |= self._reached_from(lowest.bit_length() - 1, state.before, side)
        return reached

    def _reached_from(self, place: int, before: Side, after: Side) -> int:
        key = place, before, after
        self._count()
        if key not in self._reached:
            reached, todo, seen = 0, [place], {place}
            while todo:
                here = todo.pop()
                item = self._program.instructions[here]
                following: tuple[int, ...] = ()
                if isinstance(item, Atom) or here == self._program.end:
                    reached |= 1 << here
                elif isinstance(item, Assertion):
                    following = (here + 1,) if _holds(item, before, after) else ()
                else:
                    following = item
                self._count()
                new = [each for each in following if each not in seen]
                seen.update(new)
                todo.extend(new)
            self._reached[key] = reached
        return self._reached[key]

    def _count(self) -> None:
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise QueryTooLargeError(TOO_MANY)


def _holds(assertion: Assertion, before: Side, after: Side) -> bool:
    match assertion:
        case Assertion.BEGIN:
            return before is Side.NOTHING
        case Assertion.END:
            return after is Side.NOTHING
        case Assertion.LINE_BEGIN:
            return before in (Side.NOTHING, Side.NEWLINE)
        case Assertion.LINE_END:
            return after in (Side.NOTHING, Side.NEWLINE)
        case Assertion.BOUNDARY:
            return (before is Side.WORD) != (after is Side.WORD)
        case Assertion.NO_BOUNDARY:
            return (before is Side.WORD) == (after is Side.WORD)
