r"""Regular expressions as finite automata.

An expression becomes a *program*, a list of instructions. Each reads a character, tests the position between two
characters, or jumps to other instructions. A state of the automaton is the set of instructions that the text so far may
have led to, and the kind of the last character if ``\b`` or ``^`` depend on it: whether such a test holds is known only
once the next character is.
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
    """What stands on one side of a position."""

    NOTHING = "the text begins or ends"
    NEWLINE = "a line ends"
    WORD = "a word character"
    OTHER = "another character"


class RegexState(NamedTuple):
    """The next instructions, as the bits of a number, and what stands before the position."""

    instructions: int
    before: Side


MATCHED = RegexState(-1, Side.OTHER)  # whatever follows


def matching(script: Script, regex: Regex, members: Members) -> Automaton:
    """The strings that match ``regex``; ``members`` says which characters match its atoms."""
    program = Program.of(regex.root)
    letters = _RegexLetters(script.characters, program, members)
    explorer = _StateExplorer(program, letters, regex.whole)
    try:
        states, next_states = explore(explorer.start, explorer.after)
    except QueryTooLargeError:
        raise QueryTooLargeError(TOO_MANY) from None
    accepts = np.array([explorer.accepts(state) for state in states])
    return Automaton.of_kinds(script.letters, next_states, letters.kind, accepts)


@dataclass(frozen=True)
class Program:
    """Instructions: an atom to read, an assertion that must hold, or the indexes of instructions to jump to.

    After an atom or an assertion the next instruction follows. The last instruction is the end.
    """

    instructions: tuple[Atom | Assertion | tuple[int, ...], ...]

    @classmethod
    def of(cls, root: Node) -> Program:
        """The program of an expression."""
        instructions: list[Atom | Assertion | tuple[int, ...]] = []
        _write(root, instructions)
        return cls((*instructions, ()))

    @property
    def end(self) -> int:
        """The index of the last instruction, at which the expression has matched."""
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
    for index in optional:
        program[index] = (index + 1, len(program))


class _RegexLetters:
    """The characters of a script by kind; a program cannot distinguish the characters of a kind."""

    def __init__(self, characters: Sequence[str], program: Program, members: Members) -> None:
        atoms = list(
            dict.fromkeys(instruction for instruction in program.instructions if isinstance(instruction, Atom))
        )
        classes = [atom.text for atom in atoms if not atom.literal]
        members_of = dict(zip(classes, members(classes, characters) if classes else (), strict=True))
        matches = [
            [character == atom.text for character in characters] if atom.literal else members_of[atom.text]
            for atom in atoms
        ]
        sides = _distinguished_sides(program)
        side = [sides.get(_side(character), Side.OTHER) for character in characters]
        kinds: dict[tuple[object, ...], int] = {}
        columns = zip(side, *matches, strict=True)
        self.kind = [kinds.setdefault(column, len(kinds)) for column in columns]  # of each character
        self.sides: list[Side] = [column[0] for column in kinds]  # type: ignore[misc]
        self.begin = sides.get(Side.NOTHING, Side.OTHER)
        readers_of: dict[Atom, int] = dict.fromkeys(atoms, 0)
        for index, instruction in enumerate(program.instructions):
            if isinstance(instruction, Atom):
                readers_of[instruction] |= 1 << index
        # For each kind, the instructions that read it.
        self.readers = [
            sum(readers_of[atom] for atom, reads in zip(atoms, column[1:], strict=True) if reads) for column in kinds
        ]


def _side(character: str) -> Side:
    if character == "\n":
        return Side.NEWLINE
    return Side.WORD if character in WORD else Side.OTHER


def _distinguished_sides(program: Program) -> dict[Side, Side]:
    """The sides that assertions of the program distinguish from other characters."""
    used = {instruction for instruction in program.instructions if isinstance(instruction, Assertion)}
    sides = {}
    if used & {Assertion.BEGIN, Assertion.LINE_BEGIN}:
        sides[Side.NOTHING] = Side.NOTHING
    if used & {Assertion.LINE_BEGIN, Assertion.LINE_END}:
        sides[Side.NEWLINE] = Side.NEWLINE
    if used & {Assertion.BOUNDARY, Assertion.NO_BOUNDARY}:
        sides[Side.WORD] = Side.WORD
    return sides


class _StateExplorer:
    """Computes the states of the automaton of a program."""

    def __init__(self, program: Program, letters: _RegexLetters, is_full_match: bool) -> None:
        self._program = program
        self._letters = letters
        self._whole = is_full_match
        self._reached: dict[tuple[int, Side, Side], int] = {}
        self._steps = 0
        self.start = RegexState(1, letters.begin)

    def after(self, state: RegexState) -> list[RegexState]:
        """The states after each kind of letter."""
        if state is MATCHED:
            return [MATCHED] * len(self._letters.sides)
        next_states = []
        reached: dict[Side, int] = {}
        for side, readers in zip(self._letters.sides, self._letters.readers, strict=True):
            if side not in reached:
                reached[side] = self._reach(state, side)
            if not self._whole and self._has_matched(reached[side]):
                next_states.append(MATCHED)
            else:
                instructions = (reached[side] & readers) << 1 | (not self._whole)
                next_states.append(RegexState(instructions, side))
        return next_states

    def accepts(self, state: RegexState) -> bool:
        """Whether the text may end here."""
        return state is MATCHED or self._has_matched(self._reach(state, Side.NOTHING))

    def _has_matched(self, reached: int) -> bool:
        return bool(reached >> self._program.end & 1)

    def _reach(self, state: RegexState, side: Side) -> int:
        """The atoms, and perhaps the end, that the state leads to if ``side`` stands after the position."""
        reached, remaining = 0, state.instructions
        while remaining:
            lowest = remaining & -remaining
            remaining ^= lowest
            reached |= self._reached_from(lowest.bit_length() - 1, state.before, side)
        return reached

    def _reached_from(self, start: int, before: Side, after: Side) -> int:
        key = start, before, after
        self._count()
        if key not in self._reached:
            reached, pending, visited = 0, [start], {start}
            while pending:
                index = pending.pop()
                instruction = self._program.instructions[index]
                successors: tuple[int, ...] = ()
                if isinstance(instruction, Atom) or index == self._program.end:
                    reached |= 1 << index
                elif isinstance(instruction, Assertion):
                    successors = (index + 1,) if _holds(instruction, before, after) else ()
                else:
                    successors = instruction
                self._count()
                unvisited = [successor for successor in successors if successor not in visited]
                visited.update(unvisited)
                pending.extend(unvisited)
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
