"""One fit on many machines: a Ray cluster that is there already. Only this package imports Ray, and only when asked."""
