"""A property that is computed once for each object, without a lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Value = TypeVar("Value")


class cached_property(Generic[Value]):  # noqa: N801 - used as a decorator, like that of functools
    """A cached property like ``functools.cached_property`` of Python 3.12.

    That of Python 3.11 has one lock for all objects of a class. If a process is forked while another thread holds the
    lock, the child process waits for ever. Without a lock, two threads may compute the value at the same time; both get
    the value that was stored first.

    >>> class Circle:
    ...     radius = 2
    ...     @cached_property
    ...     def area(self):
    ...         return 3 * self.radius**2
    >>> circle = Circle()
    >>> circle.area, vars(circle)
    (12, {'area': 12})
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> cached_property[Value]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...
    def __get__(self, instance: object | None, owner: type) -> cached_property[Value] | Value:
        if instance is None:
            return self
        value: Value = vars(instance).setdefault(self._name, self._compute(instance))
        return value
