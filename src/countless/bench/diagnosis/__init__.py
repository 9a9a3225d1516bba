"""A diagnosis to be read: its findings in sentences, its tables, its picture."""
