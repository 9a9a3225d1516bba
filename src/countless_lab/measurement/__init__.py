"""Shared tools of the experiments: clocks, memory, properties of the machine, pictures, tables that users name."""
