"""Speed and growth, measured through the public interface: every claim of the docs can be run again."""
