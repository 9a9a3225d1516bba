"""Samples of strings from a text model, restricted to a language.

Prefixes walk from the start and branch into all their characters; past a budget they are thinned without bias, so that
each that is left stands for others too. Those that are nearer to a match are thinned apart from the others: however
rare a match is, the prefixes that have begun it are kept. Every end that a prefix may have is a whole string with the
mass that it stands for, and strings are drawn from these by mass.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from countless.arrays import BoolArray, FloatArray, IntArray
from countless.automata.dfa import distance, same_columns
from countless.automata.language import Automaton, Language, Letters
from countless.cancellation import check_cancelled
from countless.engine.columns.thinning import thin
from countless.engine.paper.text import draw
from countless.engine.text.automaton_steps import SymbolAutomaton
from countless.engine.text.density import text_density
from countless.engine.text.methods import PARTICLES
from countless.engine.text.runtime import TextRuntime
from countless.engine.text.walk import Prefixes, PrefixExtensions, Walk, start_of
from countless.errors import NoRowsError

AT_ONCE = 256  # strings that are drawn from one walk
LEAST, MOST = 128, 2048  # prefixes of a walk; between them the number grows fourfold
MOST_NODES = 200_000  # of a walk's tree, about
PER_STRING = 4  # prefixes at least for each string that is wanted
PER_LEVEL = 8  # prefixes at least that are equally far from a match
NOBODY = -1  # the node of NULL


@dataclass(frozen=True)
class Drawn:
    """A value and the logarithm of its probability; None is NULL. Of a text that was ``cut``, this is how it begins."""

    text: str | None
    log_probability: float
    cut: bool = False


def sample(
    runtime: TextRuntime, language: Language, count: int, rng: np.random.Generator, context: IntArray | None = None
) -> list[Drawn]:
    """``count`` values of ``language``, each drawn by the model's probability, in any order.

    Of a language so rare that even a large walk finds few of its strings, some of the values will begin alike.
    ``context`` (positions) is what is known of the row, as :mod:`countless.engine.text.conditional` has it.
    """
    if not language.any():
        raise NoRowsError("no string can match: there is nothing to draw")
    drawn: list[Drawn] = []
    while len(drawn) < count:
        drawn += _drawn(runtime, language, min(AT_ONCE, count - len(drawn)), rng, context)
    return drawn


def sample_each(runtime: TextRuntime, letters: Letters, contexts: IntArray, rng: np.random.Generator) -> list[Drawn]:
    """One value for each of the ``contexts`` (rows, positions), drawn by the model's probability, in their order.

    A model that was learned without a context draws as many.
    """
    drawn: list[Drawn] = []
    for first in range(0, len(contexts), AT_ONCE):
        drawn += _Ancestral(runtime, letters, contexts[first : first + AT_ONCE]).draw(rng)
    return drawn


class _Ancestral:
    """Strings that are drawn symbol by symbol, all at once; those of one context that begin alike share that."""

    def __init__(self, runtime: TextRuntime, letters: Letters, contexts: IntArray) -> None:
        self.spec, self.letters = runtime.spec, letters
        if self.spec.context:
            different, place = np.unique(contexts, axis=0, return_inverse=True)
            self.tree, place = runtime.tree(different), place.reshape(-1)
        else:
            self.tree, place = runtime.tree(), np.zeros(len(contexts), dtype=np.int64)
        self.nodes, self.following = place * (self.spec.length + 1), self.tree.starts[place]
        self.symbols = np.full((len(contexts), self.spec.length + 1), self.spec.end)
        self.logs = np.zeros(len(contexts))

    def draw(self, rng: np.random.Generator) -> list[Drawn]:
        """A value for each context."""
        spec, going = self.spec, np.arange(len(self.symbols))  # the strings that have not ended
        following, nodes = self.following, self.nodes
        for position in range(spec.length + 1):
            check_cancelled()
            chances = following * self._possible(position)
            symbols = draw(chances, rng)
            self.symbols[going, position] = symbols
            self.logs[going] += np.log(following[np.arange(len(going)), symbols].astype(np.float64))
            on = symbols <= spec.unknown
            going = going[on]
            if not len(going):
                break
            different, same = np.unique(nodes[on] * spec.symbols + symbols[on], return_inverse=True)
            nodes = self.tree.size + same
            following = self.tree.extend(different // spec.symbols, different % spec.symbols)[same]
        return [self._value(row, rng) for row in range(len(self.symbols))]

    def _possible(self, position: int) -> BoolArray:
        """Which symbols there may be at a position."""
        spec = self.spec
        possible = np.zeros(spec.symbols, dtype=bool)
        possible[spec.end], possible[spec.null] = True, position == 0
        possible[spec.cut] = position == spec.length and self.letters.stop > 0
        possible[self.letters.symbols] = position < spec.length
        return possible

    def _value(self, row: int, rng: np.random.Generator) -> Drawn:
        symbols = self.symbols[row]
        if symbols[0] == self.spec.null:
            return Drawn(None, float(self.logs[row]))
        written = symbols[: int(np.argmax(symbols > self.spec.unknown))]
        letters = [self._letter(int(symbol), rng) for symbol in written]
        log = float(self.logs[row] + np.log(self.letters.shares[letters]).sum())
        text = "".join(self.letters.characters[letter] for letter in letters)
        return Drawn(text, log, bool(symbols[len(written)] == self.spec.cut))

    def _letter(self, symbol: int, rng: np.random.Generator) -> int:
        """A letter that the symbol stands for, by its share."""
        choice = np.flatnonzero(self.letters.symbols == symbol)
        shares = self.letters.shares[choice]
        return int(choice[0] if len(choice) == 1 else rng.choice(choice, p=shares / shares.sum()))


def _drawn(
    runtime: TextRuntime, language: Language, count: int, rng: np.random.Generator, context: IntArray | None
) -> list[Drawn]:
    most = max(LEAST, min(MOST, MOST_NODES // runtime.spec.length))
    held = min(most, max(LEAST, PER_STRING * count))
    while True:
        strings = _Strings(runtime, language, context)
        strings.find(held, rng)
        if held == most or strings.suffice(count):
            break
        held = min(most, 4 * held)
    if not strings.total:
        density = text_density(runtime, language, PARTICLES, None, 0, context=context).density
        raise NoRowsError(
            f"no string that matches was found: the model gives the pattern a probability of about {density:.1g}"
        )
    return strings.draw(count, rng)


@dataclass(frozen=True, eq=False)
class _Ends:
    """Ends of prefixes: the last node and the symbol after it, the mass, and the logarithm of the probability."""

    nodes: IntArray
    symbols: IntArray
    masses: FloatArray
    logs: FloatArray


@dataclass
class _Strings:
    """The strings of a language that one walk finds."""

    runtime: TextRuntime
    language: Language
    context: IntArray | None = None
    ends: list[_Ends] = field(default_factory=list)
    parents: list[IntArray] = field(default_factory=list)  # of every node after the roots
    columns: list[IntArray] = field(default_factory=list)  # and how it was reached
    thinned: list[BoolArray] = field(default_factory=list)  # whether it stands for others too

    @property
    def automaton(self) -> Automaton:
        return self.language.strings

    @property
    def total(self) -> float:
        """The mass of all that was found."""
        return float(sum(ends.masses.sum() for ends in self.ends))

    def find(self, held: int, rng: np.random.Generator) -> None:
        """Walk with about ``held`` prefixes."""
        spec, levels = self.runtime.spec, distance(self.automaton.next, self.automaton.accepts)
        machine = SymbolAutomaton(self.automaton, spec)
        machine.full = np.zeros_like(machine.full)  # every string is read to its end
        walk = Walk(self.runtime.tree(None if self.context is None else self.context[None]), machine)
        null = walk.tree.starts[:1, spec.null].astype(np.float64)
        if self.language.null and null[0] > 0:
            self._end(np.array([NOBODY]), np.array([spec.null]), null, np.log(null))
        prefixes, logs = walk.begin(start_of(walk.tree, spec)), np.zeros(1)
        for position in range(spec.length + 1):
            check_cancelled()
            for symbol in (spec.end, spec.cut) if position == spec.length else (spec.end,):
                chances = prefixes.following[:, symbol].astype(np.float64)
                masses = prefixes.masses * chances * machine.ending[prefixes.states, symbol]
                here = np.flatnonzero(masses)
                logs_here = logs[here] + np.log(chances[here])
                self._end(prefixes.nodes[here], np.full(len(here), symbol), masses[here], logs_here)
            children, _ = walk.branch(prefixes)
            chosen, masses = _kept(levels[_states(machine, prefixes, children)], children.masses, held, rng)
            parents, columns = children.parents[chosen], children.columns[chosen]
            chances = prefixes.following[parents, machine.symbols[columns]].astype(np.float64)
            logs = logs[parents] + np.log(chances)
            self.parents.append(prefixes.nodes[parents])
            self.columns.append(columns)
            self.thinned.append(masses > children.masses[chosen])
            if not len(chosen):
                break
            prefixes = walk.grow(prefixes, children, chosen, masses)

    def suffice(self, count: int) -> bool:
        """Whether no prefix that stands for others is so heavy that it would be drawn for them twice."""
        roots = self.runtime.spec.length + 1
        below = np.zeros(roots + sum(map(len, self.parents)))  # the mass of the strings that begin with each node
        for ends in self.ends:
            below[ends.nodes[ends.nodes != NOBODY]] += ends.masses[ends.nodes != NOBODY]
        stop, heaviest = len(below), 0.0
        for parents, thinned in zip(reversed(self.parents), reversed(self.thinned), strict=True):
            here = below[stop - len(parents) : stop]
            heaviest = max(heaviest, float(here[thinned].max(initial=0.0)))
            np.add.at(below, parents, here)
            stop -= len(parents)
        return self.total > 0 and heaviest * count <= self.total

    def draw(self, count: int, rng: np.random.Generator) -> list[Drawn]:
        """Some of them by mass, systematically, and then shuffled."""
        nodes, symbols, masses, logs = (
            np.concatenate([getattr(ends, name) for ends in self.ends])
            for name in ("nodes", "symbols", "masses", "logs")
        )
        edges = np.cumsum(masses) / masses.sum() * count
        points = np.arange(count) + rng.random()
        chosen = rng.permutation(np.minimum(np.searchsorted(edges, points, side="right"), len(masses) - 1))
        reader = _Reader(self.automaton, self.runtime.spec.length + 1, self.parents, self.columns, rng)
        drawn = []
        for index in chosen.tolist():
            if nodes[index] == NOBODY:
                drawn.append(Drawn(None, float(logs[index])))
                continue
            text, share = reader.text(int(nodes[index]))
            drawn.append(Drawn(text, float(logs[index]) + share, bool(symbols[index] == self.runtime.spec.cut)))
        return drawn

    def _end(self, nodes: IntArray, symbols: IntArray, masses: FloatArray, logs: FloatArray) -> None:
        self.ends.append(_Ends(nodes, symbols, masses, logs))


class _Reader:
    """Spells the text of a node; of letters that nothing tells apart, any by its share."""

    def __init__(
        self,
        automaton: Automaton,
        roots: int,
        parents: list[IntArray],
        columns: list[IntArray],
        rng: np.random.Generator,
    ) -> None:
        first, kind = same_columns(automaton.letters.symbols[None], automaton.next)
        self._letters = [np.flatnonzero(kind == column) for column in range(len(first))]
        self._alphabet, self._roots, self._rng = automaton.letters, roots, rng
        self._parents, self._columns = np.concatenate(parents), np.concatenate(columns)

    def text(self, node: int) -> tuple[str, float]:
        """The text, and the logarithm of the share that its letters have of their symbols."""
        letters: list[int] = []
        while node >= self._roots:
            choice = self._letters[self._columns[node - self._roots]]
            shares = self._alphabet.shares[choice]
            letters.append(int(choice[0] if len(choice) == 1 else self._rng.choice(choice, p=shares / shares.sum())))
            node = int(self._parents[node - self._roots])
        text = "".join(self._alphabet.characters[letter] for letter in reversed(letters))
        return text, float(np.log(self._alphabet.shares[letters]).sum())


def _states(machine: SymbolAutomaton, prefixes: Prefixes, children: PrefixExtensions) -> IntArray:
    found: IntArray = machine.next[prefixes.states[children.parents], children.columns]
    return found


def _kept(levels: IntArray, masses: FloatArray, held: int, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
    """The children to go on with and their masses: about as many of each level."""
    present = np.unique(levels)
    keep = max(PER_LEVEL, held // max(1, len(present)))
    parts = [(np.empty(0, dtype=np.int64), np.empty(0))]
    for level in present:
        group = np.flatnonzero(levels == level)
        chosen, kept = thin(masses[group], keep, rng.random())
        parts.append((group[chosen], kept))
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
