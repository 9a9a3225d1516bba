"""The scoreboard: every figure of the product as shipped, measured by one command."""
