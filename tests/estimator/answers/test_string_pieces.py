"""Beginnings and endings of strings: where strings are cut, what is split, and what the error bars hold."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import countless
from countless import Estimator, Network
from countless.errors import QueryTypeError, UnknownColumnError
from countless.estimator.answers.string_pieces import StringPiece, separator_of

TINY = Network(hidden=16, blocks=1, embedding=8)


def fitted(evidence: str = "all", **columns: list[Any]) -> Estimator:
    return countless.fit(pd.DataFrame(columns), epochs=1, network=TINY, evidence=evidence, no_text=next(iter(columns)))


def rows(pieces: tuple[StringPiece, ...]) -> dict[str, float]:
    return {piece.text: piece.rows for piece in pieces}


@pytest.mark.parametrize(
    ("values", "separator"),
    [
        (["/usr/bin", "/etc", "x"], "/"),
        (["C:\\a.b", "D:\\c"], "\\"),
        (["ann@example.org", "bob@host.net"], "@"),
        (["two words", "three more words"], " "),
        (["www.example.org", "host.net"], "."),
        (["libx-dev", "liby-doc", "plain"], "-"),
        (["a/b", "c-d", "e-f"], "-"),  # only one of three has a slash
        (["plain", "words"], None),
        ([], None),
    ],
)
def test_the_first_separator_that_half_of_the_strings_have(values: list[str], separator: str | None) -> None:
    assert separator_of(values) == separator


def test_urls_are_cut_after_all_slashes_and_end_with_a_file_type() -> None:
    urls = ["https://a.org/x/1.html"] * 3 + ["https://b.org/y.html"] * 2 + ["http://b.org/z"] * 3 + [None]
    pieces = fitted(url=urls).pieces("url")
    # https:// has 5 of 8 strings, so its continuations stand there.
    assert rows(pieces.starts) == {"https://a.org/": 3, "http://": 3, "https://b.org/": 2}
    assert rows(pieces.ends) == {".html": 5}


def test_mail_addresses_have_endings_only() -> None:
    pieces = fitted(mail=["ann@x.org", "bob@x.org", "eve@y.net"]).pieces("mail")
    assert pieces.starts == ()
    assert rows(pieces.ends) == {"@x.org": 2, "@y.net": 1}


def test_a_beginning_of_all_rows_is_split_and_one_of_scattered_strings_is_not() -> None:
    scattered = [f"/usr/doc/{row}/file" for row in range(30)]
    est = fitted(path=[*scattered, "/etc/a", "/etc/b"])
    assert rows(est.pieces("path").starts) == {"/usr/doc/": 30, "/etc/": 2}
    assert rows(est.pieces("path", "path LIKE '/usr/doc/%'", top=3).starts) == {
        "/usr/doc/0/": 1,
        "/usr/doc/1/": 1,
        "/usr/doc/10/": 1,
    }
    assert rows(est.pieces("path", "path = '/etc/a'").starts) == {"/etc/": 1}  # it does not go on


def test_few_hits_can_be_left_out_and_a_condition_may_match_nothing() -> None:
    est = fitted(path=["/a/x"] * 5 + ["/b/y"] * 4, kind=["u"] * 9)
    assert rows(est.pieces("path", least_hits=5).starts) == {"/a/": 5}
    nothing = est.pieces("path", "path = 'q'")
    assert (nothing.starts, nothing.ends, nothing.total.rows) == ((), (), 0)


def test_error_bars_hold_the_truth_if_the_evidence_is_a_sample() -> None:
    paths = [f"/{'abc'[row % 7 % 3]}/{row % 50}.{'gz' if row % 4 else 'py'}" for row in range(4_000)]
    est = fitted("500", path=paths)
    pieces = est.pieces("path")
    truth = {f"/{letter}/": sum(path.startswith(f"/{letter}/") for path in paths) for letter in "abc"}
    assert set(rows(pieces.starts)) == set(truth)
    for piece in pieces.starts:
        assert piece.low < piece.rows < piece.high
        assert piece.low <= truth[piece.text] <= piece.high
    assert sum(piece.rows for piece in pieces.starts) == pytest.approx(4_000, rel=1e-6)


def test_columns_that_have_no_pieces_are_errors_and_a_stripped_model_has_none() -> None:
    est = fitted(path=["/a/x", "/b/y"] * 5, n=list(range(10)))
    with pytest.raises(QueryTypeError, match="holds no strings"):
        est.pieces("n")
    with pytest.raises(UnknownColumnError, match="did you mean"):
        est.pieces("pathh")
    assert est.stripped().pieces("path").starts == ()
