"""The files that commands keep beside a model file."""
