"""Answers from exact n-gram counts for short patterns, combined with the model's estimate.

An automaton is searched for *pieces*, a row of letters or of few alternatives each, that all its strings contain. Of
``LIKE '%abc%'`` the piece is all there is to say, and rows were counted: that is the answer, or corrects the model's.
Of any other automaton the rows of its pieces are an upper bound, and those of its complement make a lower one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from countless.arrays import BoolArray, IntArray
from countless.automata.dfa import same_columns
from countless.automata.language import Automaton, Letters
from countless.data.summaries.ngrams import LONGEST_GRAM, NGrams
from countless.engine.answer import Answer

MOST_ALTERNATIVES = 4  # letters at one place of a piece
MOST_COMBINATIONS = 64  # n-grams that such a piece may stand for
MOST_STATES = 1_000  # of an automaton that is searched
MOST_TARGETS = 16  # states that are asked whether all strings lead there
MOST_LETTERS = 256  # of a piece

Piece = list[IntArray]  # the letters that may be at each place


def refine(strings: Automaton, summary: NGrams, estimate: Callable[[Automaton], Answer]) -> Answer:
    """The share of rows whose string is in ``strings``: ``estimate`` of it, made exact or better by the summary.

    What contains a literal of up to 5 characters is counted. A longer literal is a part of its rarest 5 characters,
    which are counted; how large a part the model says. Where strings were cut, the counts are of what came before, and
    what comes after is estimated from the frequencies of letters; no bound relies on it.
    """
    there = 1.0 - summary.nulls / summary.rows if summary.rows else 0.0
    if len(strings.accepts) > MOST_STATES:
        return estimate(strings)
    literal = contained(strings)
    if literal is not None:
        return _containing(strings, literal, summary, estimate)
    literal = contained(~strings)
    if literal is not None:
        found = _containing(~strings, literal, summary, estimate)
        return replace(found, density=max(0.0, there - found.density))
    answer = estimate(strings)
    high = _most(required(strings), strings.letters, summary)
    low = there - _most(required(~strings), strings.letters, summary)
    return replace(answer, density=float(np.clip(answer.density, max(0.0, low), max(0.0, min(high, there)))))


def is_counted(strings: Automaton, summary: NGrams) -> bool:
    """Whether the summary alone tells the share of rows, because ``strings`` contain a short literal, or do not."""
    if len(strings.accepts) > MOST_STATES or summary.cut or not summary.rows:
        return False
    literal = contained(strings)
    literal = contained(~strings) if literal is None else literal
    return literal is not None and len(literal) <= LONGEST_GRAM


def contained(strings: Automaton) -> IntArray | None:
    """The letters of a text, if ``strings`` are all those that contain it; else None."""
    if strings.accepts[0] or not strings.full.any():
        return None
    search = _Search(strings)
    piece = search.before(strings.accepts, 1)
    if not piece:
        return None
    states = np.flatnonzero(search.reached(np.zeros(len(strings.accepts), dtype=bool)))
    for letters in piece:
        states = strings.next[states, letters[0]]
    return np.concatenate(piece) if strings.full[states].all() else None


def required(strings: Automaton) -> list[Piece]:
    """Pieces that each of the strings contains, though perhaps not all there are."""
    if strings.accepts[0] or strings.dead[0] or len(strings.accepts) > MOST_STATES:
        return []
    search = _Search(strings)
    path = search.shortest()
    pieces = [search.before(strings.accepts, MOST_ALTERNATIVES)]
    place = len(path) - 1 - max(1, len(pieces[0]))
    for _ in range(MOST_TARGETS):
        if place <= 0:
            break
        target = np.zeros(len(strings.accepts), dtype=bool)
        target[path[place]] = True
        if search.avoids(target):
            place -= 1
            continue
        pieces.append(search.before(target, MOST_ALTERNATIVES))
        place -= max(1, len(pieces[-1]))
    return [piece for piece in pieces if piece]


class _Search:
    """Ways through an automaton from its start, where letters that lead alike are one column."""

    def __init__(self, strings: Automaton) -> None:
        first, self.kind = same_columns(strings.next)
        self.strings = strings
        self.next: IntArray = strings.next[:, first]
        self.sizes = np.bincount(self.kind)

    def before(self, target: BoolArray, most: int) -> Piece:
        """What every string has read just before it first comes to a ``target``: up to ``most`` letters a place."""
        early = self.reached(target)
        goal: BoolArray = target
        piece: Piece = []
        while not goal[0] and len(piece) < MOST_LETTERS:
            arriving = early[:, None] & goal[self.next]
            columns = np.flatnonzero(arriving.any(axis=0))
            if not 1 <= self.sizes[columns].sum() <= most:
                break
            piece.append(np.flatnonzero(np.isin(self.kind, columns)))
            goal = np.asarray(arriving.any(axis=1))
        return piece[::-1]

    def avoids(self, target: BoolArray) -> bool:
        """Whether some string is accepted on a way that never comes to a ``target``."""
        return bool(self.strings.accepts[self.reached(target)].any())

    def reached(self, target: BoolArray) -> BoolArray:
        """The states to which a way leads that never comes to a ``target``."""
        found = np.zeros(len(target), dtype=bool)
        found[0] = not target[0]
        newest = np.flatnonzero(found)
        while len(newest):
            after = np.zeros(len(target), dtype=bool)
            after[self.next[newest]] = True
            after &= ~(found | target)
            found |= after
            newest = np.flatnonzero(after)
        return found

    def shortest(self) -> list[int]:
        """The states on a shortest way from the start to acceptance."""
        origin = {0: 0}
        todo = [0]
        for state in todo:
            if self.strings.accepts[state]:
                path = [state]
                while path[-1]:
                    path.append(origin[path[-1]])
                return path[::-1]
            for after in self.next[state].tolist():
                if after not in origin:
                    origin[after] = state
                    todo.append(after)
        return []


def containing(letters: Letters, text: IntArray) -> Automaton:
    """The strings that contain ``text``, given by its letters.

    >>> count = np.ones(3)
    >>> containing(Letters("abc", np.arange(3), count, count, 0.0), np.array([0, 1])).next.tolist()
    [[1, 0, 0], [1, 2, 0], [2, 2, 2]]
    """
    wanted = text.tolist()
    following = np.zeros((len(wanted) + 1, len(letters.characters)), dtype=np.int64)
    following[-1] = len(wanted)
    back = 0  # where the text so far leads without its first letter
    for place, letter in enumerate(wanted):
        following[place] = following[back] if place else 0
        following[place, letter] = place + 1
        back = int(following[back, letter]) if place else 0
    return Automaton(letters, following, np.arange(len(wanted) + 1) == len(wanted))


def _containing(strings: Automaton, text: IntArray, summary: NGrams, estimate: Callable[[Automaton], Answer]) -> Answer:
    """The share of strings that contain ``text``."""
    symbols = strings.letters.symbols[text]
    if len(text) <= LONGEST_GRAM and np.all(symbols < summary.characters):
        count = summary.count(symbols)
        if count is not None:
            counted = summary.is_exact and not summary.cut
            share = _share(strings, count, summary)
            return Answer(share, summary.is_exact, particles=1, visited=(), forward_rows=0, counted=counted)
    answer = estimate(strings)
    anchor = _anchor(text, symbols, summary)
    if anchor is not None:
        part, count = anchor
        whole = containing(strings.letters, part)
        other = estimate(whole)
        if other.density > 0:
            density = _share(whole, count, summary) * min(1.0, answer.density / other.density)
            rows, most = answer.forward_rows + other.forward_rows, max(answer.particles, other.particles)
            answer = Answer(density, answer.exact and other.exact, most, (), rows)
    high = _most([[np.array([letter]) for letter in text]], strings.letters, summary)
    return replace(answer, density=min(answer.density, high))


def _anchor(text: IntArray, symbols: IntArray, summary: NGrams) -> tuple[IntArray, int] | None:
    """The rarest 5 letters of a longer text and their rows; None if the summary does not have all of them."""
    if len(text) <= LONGEST_GRAM or np.any(symbols >= summary.characters):
        return None
    codes = np.zeros(len(text) - LONGEST_GRAM + 1, dtype=np.int64)
    for place in range(LONGEST_GRAM):
        codes = codes * summary.characters + symbols[place : place + len(codes)]
    counts, there = summary.find(LONGEST_GRAM, codes)
    rarest = int(np.argmin(counts))
    return (text[rarest : rarest + LONGEST_GRAM], int(counts[rarest])) if there.all() else None


def _share(strings: Automaton, count: int, summary: NGrams) -> float:
    """The share of ``count`` rows, and of those among the others that were cut and then come to match."""
    later = 0.0
    if summary.cut:
        others = 1.0 - count / (summary.rows - summary.nulls)
        later = summary.cut * others * float(strings.cut_weights()[0])
    return (count + later) / summary.rows


def _most(pieces: list[Piece], letters: Letters, summary: NGrams) -> float:
    """The largest share of rows that may contain all the pieces."""
    least = float(summary.rows - summary.nulls)
    for piece in pieces:
        for place in range(len(piece)):
            least = min(least, summary.most(_rows(piece[place:], letters, summary)))
    return min(1.0, (least + summary.cut) / summary.rows) if summary.rows else 0.0


def _rows(piece: Piece, letters: Letters, summary: NGrams) -> float:
    """The most rows that may contain the first letters of a piece, as many as tell most."""
    least = float("inf")
    codes = np.zeros(1, dtype=np.int64)
    for length, chosen in enumerate(piece[:LONGEST_GRAM], 1):
        symbols = letters.symbols[chosen]
        if np.any(symbols >= summary.characters):  # a rare letter has no more rows than it occurs
            counts, _ = summary.find(1, symbols)
            rare = symbols >= summary.characters
            return min(least, float(np.where(rare, letters.frequencies[chosen], counts).sum()))
        codes = (codes[:, None] * summary.characters + symbols).ravel()
        if len(codes) > MOST_COMBINATIONS:
            break
        if len(codes) == 1 and length < min(len(piece), LONGEST_GRAM):
            continue  # one n-gram more is never in more rows
        least = min(least, float(summary.find(length, codes)[0].sum()))
    return least
