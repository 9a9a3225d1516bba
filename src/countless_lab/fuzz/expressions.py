"""Templates of every SQL function and operator that a clause may have, by the kind of value that they give.

In a template ``{N}`` stands for a random expression of that kind, and ``{small}`` and the like for a literal of
``WORDS``. Kinds: B boolean, I integer, N number, S string, D date, T time, Z timestamp, V interval.
"""

from __future__ import annotations


def names(text: str) -> list[str]:
    """The words of a text."""
    return text.split()


KINDS = "BINSDTZV"
PARTS = names("""
    year month day quarter week weekday isodow dow doy decade century millennium era epoch hour minute second
    millisecond microsecond yearweek isoyear julian
""")
UNITS = names("year quarter month week day hour minute second decade century millennium microsecond")
REGEXES = [
    "a", "^a", "b$", "[0-9]+", "^[A-Z]", "o.d", "a|b", "(ab)+c?", r"\d{2,}", r"\w+ \w+", "", ".", "^$", "(?i)ORDER",
    r"\s", r"x*", r"[^a-z]", r"\.org$", r"\bof\b", "é", "a{0,3}", "(", "[z-a]", "*", r"\p{L}+", "^.{3,5}$", "((a*)*)*b",
]  # fmt: skip
PATTERNS = [
    "%", "_", "", "a%", "%a", "%a%", "%1%", "_a%", "%\\%", "Order%", "%of%1_", "__%", "%%", "é%", "%e_", "O'H%", "caf%",
    "%customer 1%", "[a-z]%", "%.", "%\x00%", "\\%", "a\\", "%" * 12 + "z",
]  # fmt: skip
GLOBS = ["*", "?", "a*", "*[0-9]", "[!a]*", "*o*", "", "[a-", "Order*1?"]
STRINGS = [
    "", " ", "a", "A", "x", "nan", "NULL", "1", "0", "-1", "1.5", "1e3", "true", "2020-01-31", "12:30:00", "Order 1",
    "é", "e\u0301", "O'Hara", "%", "_", "\\", "\x00", "ß", "İ", "🙂", "2021-02-30", "abc" * 40, "--", "/*", "$1", "?",
]  # fmt: skip
FORMATS = ["%Y", "%Y-%m", "%d/%m/%Y", "%H:%M", "%j", "%A", "%-d", "%%", "", "%Q", "%s", "%f"]
TYPES = {
    "B": ("BOOLEAN",),
    "I": ("INTEGER", "BIGINT", "SMALLINT", "TINYINT", "HUGEINT", "UBIGINT", "UTINYINT"),
    "N": ("DOUBLE", "FLOAT", "DECIMAL(9,2)", "DECIMAL(18,6)", "DECIMAL(38,10)"),
    "S": ("VARCHAR",),
    "D": ("DATE",),
    "T": ("TIME",),
    "Z": ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP_NS"),
    "V": ("INTERVAL",),
}
COMPARISONS = ["=", "<>", "!=", "<", "<=", ">", ">=", "==", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]

_ANY = [  # calls that take and give any one kind, {X}
    "coalesce({X}, {X})", "ifnull({X}, {X})", "nullif({X}, {X})", "greatest({X}, {X})", "least({X}, {X})",
    "CASE WHEN {B} THEN {X} ELSE {X} END", "CASE {I} WHEN {small} THEN {X} END", "if({B}, {X}, {X})", "({X})",
]  # fmt: skip
_NUMBERS = [
    *(f"{name}({{N}})" for name in names("abs ceil ceiling floor round trunc even")),
    *(f"{name}({{N}})" for name in names("sqrt cbrt ln log log2 log10 exp sin cos tan cot asin acos atan")),
    *("degrees({N})", "radians({N})", "pi()", "round({N}, {digits})", "trunc({N})", "pow({N}, {digits})"),
    *("power({I}, {digits})", "atan2({N}, {N})", "{N} + {N}", "{N} - {N}", "{N} * {N}", "{N} / {N}", "-{N}", "+{N}"),
    *("{N} % {N}", "mod({N}, {N})", "{I} / {I}", "{N} ** 2", "{N} ^ {digits}", "jaccard({S}, {S})"),
    *("jaro_similarity({S}, {S})", "jaro_winkler_similarity({S}, {S})", "epoch({Z})", "date_part('epoch', {Z})"),
    *("CAST({I} AS DOUBLE)", "julian({Z})"),
]
_INTEGERS = [
    *(
        "abs({I})",
        "{I} + {I}",
        "{I} - {I}",
        "{I} * {I}",
        "{I} // {I}",
        "{I} % {I}",
        "mod({I}, {small})",
        "-{I}",
        "~{I}",
    ),
    *("{I} & {I}", "{I} | {I}", "{I} << {small}", "{I} >> {small}", "xor({I}, {I})", "bit_count({I})"),
    *("gcd({I}, {I})", "lcm({I}, {small})", "@{I}"),
    *("sign({N})", "CAST({N} AS INTEGER)", "floor({N})::BIGINT", "CAST({B} AS INTEGER)"),
    *(f"{name}({{S}})" for name in names("length len strlen char_length character_length length_grapheme ascii")),
    *(f"{name}({{S}})" for name in names("unicode ord bit_length octet_length")),
    *("position({text} IN {S})", "strpos({S}, {text})", "instr({S}, {text})", "levenshtein({S}, {text})"),
    *("editdist3({S}, {text})", "damerau_levenshtein({S}, {text})", "hamming({S}, {S})", "mismatches({S}, {S})"),
    *("hash({S}) % {positive}", "hash({I}) % {positive}"),
    *(f"{name}({{Z}})" for name in names("year month day quarter week weekofyear yearweek isoyear isodow weekday")),
    *(f"{name}({{D}})" for name in names("dayofweek dayofmonth dayofyear decade century millennium era year month")),
    *(f"{name}({{Z}})" for name in names("hour minute second millisecond microsecond nanosecond")),
    *(f"{name}({{Z}})" for name in names("epoch_ms epoch_us epoch_ns")),
    *(
        "hour({T})",
        "minute({T})",
        "extract({part} FROM {Z})",
        "extract({part} FROM {D})",
        "date_part({part_text}, {Z})",
    ),
    *("datepart({part_text}, {D})", "date_diff({unit_text}, {Z}, {Z})", "datediff({unit_text}, {D}, {D})"),
    *("date_sub({unit_text}, {Z}, {Z})", "datesub({unit_text}, {D}, {D})", "{D} - {D}"),
]
_STRINGS = [
    *(f"{name}({{S}})" for name in names("lower lcase upper ucase trim ltrim rtrim reverse strip_accents")),
    *(f"{name}({{S}})" for name in names("nfc_normalize md5 sha1 sha256")),
    *("substring({S}, {small}, {small})", "substr({S}, {small})", "substring({S} FROM {small} FOR {small})"),
    *("left({S}, {small})", "right({S}, {small})", "{S}[{small}:{small}]", "{S}[{small}]"),
    *("left_grapheme({S}, {small})", "right_grapheme({S}, {small})", "substring_grapheme({S}, {small}, {small})"),
    *("replace({S}, {text}, {text})", "regexp_replace({S}, {regex}, {text})", "regexp_extract({S}, {regex})"),
    *("concat({S}, {S})", "{S} || {S}", "{S} || {text}", "chr({code})", "translate({S}, 'abc', 'xy')"),
    *("split_part({S}, {text}, {small})", "trim({S}, {text})", "ltrim({S}, {text})", "rtrim({S}, 'ab')"),
    *("CAST({I} AS VARCHAR)", "CAST({D} AS VARCHAR)", "{N}::VARCHAR", "CAST({B} AS TEXT)", "dayname({D})"),
    *("monthname({Z})", "strftime({Z}, {format})", "strftime({D}, {format})", "{S} COLLATE NOCASE"),
]
_DATES = [
    *("last_day({D})", "last_day({Z})", "make_date({year}, {small}, {small})", "CAST({Z} AS DATE)", "date({Z})"),
    *("today()", "current_date", "{D} + {small}", "{D} - {small}", "date_trunc({unit_text}, {D})"),
    *("TRY_CAST({S} AS DATE)", "{Z}::DATE"),
]
_TIMES = ["CAST({Z} AS TIME)", "make_time({small}, {small}, 1.5)", "{T} + {V}", "TRY_CAST({S} AS TIME)"]
_STAMPS = [
    *("date_trunc({unit_text}, {Z})", "datetrunc({unit_text}, {Z})", "{Z} + {V}", "{Z} - {V}", "{D} + {V}"),
    *("CAST({D} AS TIMESTAMP)", "make_timestamp({year}, {small}, {small}, {small}, {small}, 2.5)", "now()"),
    *("current_timestamp", "to_timestamp({seconds})", "strptime({S}, {format})", "try_strptime({S}, {format})"),
    *("time_bucket({V}, {Z})", "date_add({D}, {V})", "timezone('UTC', {Z})", "TRY_CAST({S} AS TIMESTAMP)"),
    *("{D} + {T}", "make_timestamp({seconds} * 1000000)"),
]
_INTERVALS = [
    *(f"to_{unit}s({{small}})" for unit in names("year month week day hour minute second millisecond microsecond")),
    *("INTERVAL {small} DAY", "INTERVAL {small} MONTH", "INTERVAL '1 day 2 hours'", "{Z} - {Z}", "age({Z}, {Z})"),
    *("INTERVAL {small} SECOND", "to_days({I} % {positive})"),
]
_BOOLEANS = [
    *("isnan({N})", "isinf({N})", "isfinite({N})", "signbit({N})", "contains({S}, {text})", "starts_with({S}, {text})"),
    *("prefix({S}, {text})", "ends_with({S}, {text})", "suffix({S}, {text})", "{S} ^@ {text}", "isfinite({D})"),
    *("regexp_matches({S}, {regex})", "regexp_full_match({S}, {regex})", "regexp_like({S}, {regex})", "isinf({Z})"),
    *("{S} ~ {regex}", "{S} !~ {regex}", "{S} SIMILAR TO {regex}", "{S} NOT SIMILAR TO {regex}", "{S} GLOB {glob}"),
    *("regexp_matches({S}, {regex}, 'i')", "{S} LIKE {pattern}", "{S} NOT LIKE {pattern}", "{S} ILIKE {pattern}"),
    *("{S} NOT ILIKE {pattern}", "{S} ~~ {pattern}", "{S} !~~* {pattern}", "{S} LIKE {pattern} ESCAPE '\\'"),
    *("{S} LIKE {pattern} ESCAPE '!'", "{S} LIKE {S}", "{S} LIKE {pattern}", "{S} LIKE {pattern}", "{B}"),
    *("{B} IS TRUE", "{B} IS NOT FALSE", "{B} IS NOT TRUE", "{B} IS UNKNOWN", "NOT {B}", "TRUE", "FALSE", "NULL"),
    *("({B}) = ({B})", "xor({I}, {I}) = {small}", "EXISTS (SELECT 1)", "{I} BETWEEN {I} AND {I}", "{I} IN ({I}, {I})"),
]
CALLS: dict[str, list[str]] = {
    "B": _BOOLEANS,
    "I": _INTEGERS,
    "N": _NUMBERS,
    "S": _STRINGS,
    "D": _DATES,
    "T": _TIMES,
    "Z": _STAMPS,
    "V": _INTERVALS,
}
for _kind, _calls in CALLS.items():
    _calls += [call.replace("{X}", f"{{{_kind}}}") for call in _ANY]
    _calls += [f"TRY_CAST({{S}} AS {name})" for name in TYPES[_kind] if _kind != "S"]
