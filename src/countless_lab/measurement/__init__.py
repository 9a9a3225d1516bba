"""What several experiments measure with: clocks, memory, facts of the machine, and the tables that users name."""
