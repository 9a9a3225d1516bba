"""The model of the columns: its runtime, the particle walk and its definition by enumeration."""
