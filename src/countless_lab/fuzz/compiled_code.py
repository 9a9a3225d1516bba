"""Random inputs for the compiled code, through its Python interface, compared with the answers of the slow twins."""

from __future__ import annotations

import contextlib
import functools
import random
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from countless import Estimator
from countless.arrays import Weights
from countless.automata.string_table import StringTable, like_pattern
from countless.data.columns.strings.characters import Characters
from countless.data.columns.strings.text import TextColumn
from countless.data.front_coding import front_coded, front_decoded, front_decoded_by_python
from countless.data.summaries.substring_growth import RowCounter, frequent, frequent_by_python
from countless.data.summaries.substring_text import SymbolTable
from countless.engine.columns.particle_budget import Population, fixed, offsets
from countless.engine.columns.particles import particles
from countless.engine.columns.resmade import ResMadeRuntime
from countless.engine.evidence import CodedRows, CodeSet
from countless.errors import CountlessError, ModelFileError
from countless.query.text.string_sets import like_pieces
from countless.region import Box, DigitSet, Filter, ValueSet
from countless.spec import ModelSpec
from countless_lab.fuzz.campaign import Campaign, Outcome, unexpected
from countless_lab.fuzz.child import Limits
from countless_lab.fuzz.mutations import spoiled_arrays
from countless_lab.fuzz.predicates import ColumnValues, PredicateMaker
from countless_lab.fuzz.small_models import questions

ROUNDS = 40  # of each case
SIZES = (1, 2, 5, 200, 256, 257, 3_000, 70_000)  # of columns: codes of one, two and four bytes
LETTERS = "ab/\0é中_"
BUDGETS = (1, 4, 60, 5_000)  # particles
UNTHINNED = 10_000
SCALES = (0.1, 1.0, 30.0)  # of weights; with the last one, rounding decides which symbol has all the mass
COLUMNS = (
    ColumnValues("day", "BIGINT", ("0", "3", "6")),
    ColumnValues("amount", "DOUBLE", ("40", "99.5", "0.01")),
    ColumnValues("age", "INTEGER", ("0", "20", "39")),
    ColumnValues("city", "VARCHAR", ("'Oslo'", "'Rome'")),
    ColumnValues("since", "DATE", ("DATE '2020-01-10'", "DATE '2020-03-01'")),
    ColumnValues("page", "VARCHAR", ("'p1.org'", "'p2'")),
    ColumnValues("seen", "TIMESTAMP", ("TIMESTAMP '2021-03-20 00:00:00'",)),
)
Random = np.random.Generator
Check = Callable[[Random], str | None]


def run_compiled_code(models: Path, seed: int, folder: str, rounds: int = ROUNDS) -> Outcome:
    """A case: check every part of the compiled code ``rounds`` times. ``models`` is a folder of model files."""
    originals = [path.read_bytes() for path in sorted(models.glob("*.countless"))]
    checks: list[Check] = [check_walk, check_rows, check_strings, check_substrings, check_front_coding]
    checks.append(functools.partial(check_models, originals, Path(folder) / "made.countless"))
    defects, count = [], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for number in range(rounds):
            for check_index, check in enumerate(checks):
                rng = np.random.default_rng([seed, number, check_index])
                try:
                    wrong = check(rng)
                except Exception as error:
                    wrong = unexpected(error)
                count += 1
                defects += [f"round {number}, check {check_index}: {wrong}"] if wrong else []
    return Outcome("checked", "", tuple(defects[:5]), count)


def random_spec(rng: Random) -> ModelSpec:
    """A network of any small shape: several orders, columns of several digits, wide positions."""
    groups = tuple(int(count) for count in rng.integers(1, 4, rng.integers(1, 6)))
    choices = {1: [1, 2, 3, 7, 16, 33, 300], 2: [2, 3, 5], 3: [2, 3, 5]}
    sizes = tuple(int(rng.choice(choices[count])) for count in groups for _ in range(count))
    hidden, blocks, width = int(rng.integers(1, 70)), int(rng.integers(0, 3)), int(rng.integers(1, 41))
    orders = tuple(dict.fromkeys(_order(groups, rng) for _ in range(int(rng.integers(1, 3)))))
    return ModelSpec(sizes, hidden=hidden, blocks=blocks, embedding=width, groups=groups, orders=orders)


def _order(groups: tuple[int, ...], rng: Random) -> tuple[int, ...]:
    starts = np.cumsum((0, *groups))
    return tuple(int(starts[group]) + digit for group in rng.permutation(len(groups)) for digit in range(groups[group]))


def random_weights(spec: ModelSpec, scale: float, rng: Random) -> dict[str, Weights]:
    """Weights of about this size that are autoregressive under every order of ``spec``."""
    hidden, inputs, count = spec.hidden, len(spec.sizes) * spec.embedding, len(spec.sizes)
    degrees = spec.degrees

    def drawn(*shape: int) -> Weights:
        return (scale * rng.standard_normal(shape)).astype(np.float32)

    many_orders = len(spec.orders) > 1
    ranks = np.repeat(spec.ranks(0), spec.embedding)
    input_mask = many_orders | (degrees[:, None] >= ranks[None, :])
    output_mask = many_orders | (degrees[None, :] < ranks[:, None])
    rows = sum(spec.sizes) + count
    weights = {
        "embedding": drawn(rows, spec.embedding),
        "bias": drawn(rows),
        "first.weight": drawn(hidden, inputs) * input_mask,
        "first.bias": drawn(hidden),
        "out.weight": drawn(inputs, hidden) * output_mask,
        "out.bias": drawn(inputs),
    }
    below = degrees[:, None] >= degrees[None, :]
    for block in range(spec.blocks):
        for half in ("inner", "outer"):
            weights[f"blocks.{block}.{half}.weight"] = drawn(hidden, hidden) * below / np.float32(hidden)
            weights[f"blocks.{block}.{half}.bias"] = drawn(hidden)
    if many_orders:
        weights |= {"first.signal": drawn(hidden, count), "out.signal": drawn(inputs, count - 1)}
    return {name: np.ascontiguousarray(array, dtype=np.float32) for name, array in weights.items()}


def random_box(spec: ModelSpec, rng: Random) -> Box:
    """Random filters on some columns: sets of codes, with fractions."""
    filters, start = [], 0
    for count in spec.groups:
        positions = tuple(range(start, start + count))
        start += count
        if rng.random() < 0.3:
            continue
        radices = tuple(spec.sizes[position] for position in positions)
        allowed = rng.choice([0.0, 0.5, 1.0], size=int(np.prod(radices)), p=rng.dirichlet([1, 0.3, 1]))
        filters.append(Filter(positions, DigitSet(allowed, radices) if count > 1 else ValueSet(allowed)))
    return Box(tuple(filters))


def check_walk(rng: Random) -> str | None:
    """The walk of particles, thinned and not, of several boxes at once."""
    spec = random_spec(rng)
    order = int(rng.integers(len(spec.orders)))
    scale = float(rng.choice(SCALES))
    runtime = ResMadeRuntime(spec, random_weights(spec, scale, rng), order)
    boxes = [random_box(spec, rng) for _ in range(int(rng.integers(1, 5)))]
    seed, budget = int(rng.integers(1000)), int(rng.choice(BUDGETS))
    answers = [*Population(runtime, boxes, seed).walk(budget), *fixed(runtime, boxes, budget, seed)]
    if not all(np.isfinite(answer.density) and answer.density >= 0 for answer in answers):
        return f"{spec}: densities {[answer.density for answer in answers]}"
    (answer,) = fixed(runtime, boxes[:1], UNTHINNED, seed)
    twin = particles(runtime, boxes[0], UNTHINNED, offsets(seed, 0, len(spec.sizes)))
    if twin.exact and scale < SCALES[-1] and not np.isclose(answer.density, twin.density, rtol=1e-3, atol=1e-6):
        return f"{spec}: {answer.density}, and its twin {twin.density}"
    return None


def check_rows(rng: Random) -> str | None:
    """The count of evidence rows."""
    sizes = [int(size) for size in rng.choice(SIZES, rng.integers(1, 6))]
    count = int(rng.choice([0, 1, 7, 63, 64, 65, 1_000, 5_001]))
    codes = [rng.integers(0, size, count).astype(np.min_scalar_type(size - 1)) for size in sizes]
    rows = CodedRows(codes, sizes, [(column,) for column in range(len(sizes))])
    filtered = [column for column in range(len(sizes)) if rng.random() < 0.8]
    sets: list[CodeSet] = [(column, rng.random(sizes[column]) < rng.random()) for column in filtered]
    expected = rows.marks_by_numpy(sets)
    if rows.marks(sets).tolist() != expected.tolist() or rows.count(sets) != np.count_nonzero(expected):
        return f"{count} rows of {sizes}: other marks than NumPy's"
    return None


def random_texts(rng: Random, max_texts: int = 30) -> list[str]:
    """Strings of few letters, which have much in common."""
    lengths = rng.choice([0, 1, 7, 8, 9, 40, 300], rng.integers(1, max_texts))
    return ["".join(rng.choice(list(LETTERS), int(length))) for length in lengths]


def check_strings(rng: Random) -> str | None:
    """Patterns, substrings and automata, searched in many strings."""
    texts = random_texts(rng)
    table = StringTable(texts)
    pattern = "%".join("".join(rng.choice(list(LETTERS), rng.integers(0, 4))) for _ in range(int(rng.integers(1, 5))))
    like = like_pattern(like_pieces(pattern))
    if table.like(like).tolist() != table.like_by_python(like).tolist():
        return f"LIKE {pattern!r} on {texts}"
    needle = "".join(rng.choice(list(LETTERS), rng.integers(1, 12)))
    if table.find(needle.encode()).tolist() != [needle in text for text in texts]:
        return f"find {needle!r} in {texts}"
    letters = table.letters
    if letters is not None:
        states = int(rng.integers(1, 300))
        narrow, accepts = rng.integers(0, states, (states, 4)), rng.random(states) < 0.5
        kind = np.array([ord(letter) % 4 for letter in letters], dtype=np.int64)
        candidates = rng.random(len(texts)) < 0.5 if rng.random() < 0.5 else None
        expected = table.run_by_numpy(narrow, kind, accepts, candidates)
        if table.run(narrow[:, kind], accepts, candidates).tolist() != expected.tolist():
            return f"an automaton of {states} states on {texts}"
    return None


def check_substrings(rng: Random) -> str | None:
    """The count of frequent substrings."""
    column = TextColumn("t", "VARCHAR", "/ab", 6, True, 9, (("é", 2),), (5, 5, 5))
    texts: list[str | None] = [text[:60].replace("\0", "") for text in random_texts(rng)]
    rows = SymbolTable(column).rows(Characters.of_texts([text if rng.random() < 0.9 else None for text in texts]))
    threshold, longest, max_count = int(rng.integers(1, 5)), int(rng.integers(1, 9)), int(rng.integers(1, 200))
    (_, needed), (slow, expected) = (
        find(rows, threshold, longest, max_count) for find in (frequent, frequent_by_python)
    )
    counter, counts, twin = RowCounter(slow), *np.zeros((2, len(slow.parents)), dtype=np.int64)
    counter.add(rows, counts)
    counter.add_by_python(rows, twin)
    return None if needed <= expected and counts.tolist() == twin.tolist() else f"substrings of {texts}"


def check_front_coding(rng: Random) -> str | None:
    """The decoder of strings in a model file, with valid and with damaged bytes."""
    rests, shared = front_coded(sorted(random_texts(rng)))
    if rng.random() < 0.6:
        rests = rng.permutation(rests) if rng.random() < 0.5 else rests[: int(rng.integers(len(rests) + 1))].copy()
    if rng.random() < 0.3:
        shared = rng.integers(0, 256, len(shared)).astype(np.uint8)
    outcomes = []
    for decode in (front_decoded, front_decoded_by_python):
        try:
            outcomes.append(decode(rests, shared))
        except ValueError:
            outcomes.append(())
    return None if outcomes[0] == outcomes[1] else f"other strings than Python's: {rests.tobytes()!r} {shared.tolist()}"


def check_models(originals: list[bytes], path: Path, rng: Random) -> str | None:
    """A model, often with damaged arrays, that is asked random predicates and questions of every kind."""
    data = originals[int(rng.integers(len(originals)))]
    path.write_bytes(spoiled_arrays(data, rng) if rng.random() < 0.5 else data)
    try:
        model = Estimator.load(path)
    except ModelFileError:
        return None
    maker = PredicateMaker(COLUMNS, random.Random(int(rng.integers(2**31))))
    calls = [functools.partial(model.estimate, maker.draw().clause) for _ in range(6)]
    other_questions = list(questions().values())
    calls += [functools.partial(other_questions[index], model) for index in rng.integers(0, len(other_questions), 4)]
    for ask in calls:
        with contextlib.suppress(CountlessError):
            ask()
    return None


def kernel_campaign(models: Path, compiler: str) -> Campaign:
    """The campaign. It has no limit of memory, since the address sanitizer reserves terabytes."""
    return Campaign(
        f"fuzz kernel --compiler {compiler}",
        "case",
        "check",
        functools.partial(run_compiled_code, models),
        limits=Limits(seconds=1_200, memory=None),
        preload=("countless_lab.fuzz.compiled_code", "sqlglot", "duckdb"),
    )
