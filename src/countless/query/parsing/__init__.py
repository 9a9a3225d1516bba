"""Reading of SQL: its text, the names in it, the filters that AND joins, and simple clauses without a parser."""
