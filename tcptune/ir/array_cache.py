"""A cache of computed arrays that is bounded by their bytes: tables of whole tensors differ in size by five orders of magnitude."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import wraps
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Value = TypeVar("Value")


def array_cache(most_bytes: int, bytes_of: Callable[[Value], int]) -> Callable[[Callable[Arguments, Value]], Callable[Arguments, Value]]:
    """Remembers results by their (positional, hashable) arguments; the least recently used go once all together exceed `most_bytes`.

    The latest result stays, however large it is.
    """

    def decorate(compute: Callable[Arguments, Value]) -> Callable[Arguments, Value]:
        held: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        total_bytes = 0

        @wraps(compute)
        def remembered(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Value:
            nonlocal total_bytes
            if kwargs:
                raise TypeError(f"{compute.__name__} takes positional arguments")
            if args in held:
                held.move_to_end(args)
                return held[args][0]
            value = compute(*args, **kwargs)
            size = bytes_of(value)
            held[args] = (value, size)
            total_bytes += size
            while total_bytes > most_bytes and len(held) > 1:
                _, (_, gone) = held.popitem(last=False)
                total_bytes -= gone
            return value

        return remembered

    return decorate
