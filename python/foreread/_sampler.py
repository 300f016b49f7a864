"""Samples in an order known beforehand: for data loaders.

The order comes from a sampler, which is asked ahead of time; where a sample lies, from a layout.
"""

from __future__ import annotations

from collections import deque
from operator import index as as_index
from typing import Any, Callable, Deque, Generic, Iterable, Iterator, Optional, Tuple, TypeVar

from ._layout import Extent
from ._native import Guard, prefetch, read
from ._types import Access

T = TypeVar("T")


def ordered_samples(
    indices: Iterable[int],
    layout: Callable[[int], Extent],
    *,
    budget: Optional[int] = None,
    window: Optional[int] = None,
) -> Iterator[Tuple[int, bytes]]:
    """Yield each index and the bytes of its sample, in the order of `indices`.

    `indices` is drawn from ahead of time, and never by more than `window` entries.
    """
    drawn: Deque[int] = deque()

    def accesses() -> Iterator[Access]:
        for number in indices:
            extent = layout(number)
            drawn.append(number)
            yield extent

    with read(accesses(), budget=budget, window=window) as reader:
        for data in reader:
            yield drawn.popleft(), data


class SamplerPrefetch(Generic[T]):
    """A sampler that prefetches what it is about to name.

    Wraps any iterable of indices, or of batches (lists) of them, as a data loader's samplers are;
    every iteration is one session, in the process that iterates. Whoever reads the samples, in this process
    or another, finds them in memory: the page cache is shared.

    With worker processes the loader takes indices from its sampler long before the samples are
    read: `lag` is by how many samples at most, number of workers x batches prefetched by each x samples of a
    batch. Samples handed out less than `lag` ago still count as unread, and stay within the budget.
    """

    def __init__(
        self,
        sampler: Iterable[T],
        layout: Callable[[int], Extent],
        *,
        lag: int = 0,
        budget: Optional[int] = None,
        window: Optional[int] = None,
    ) -> None:
        if lag < 0:
            raise ValueError(f"lag is {lag}, not a number of samples")
        if not callable(layout):
            raise TypeError(f"layout is {layout!r}, not callable")
        self.sampler = sampler
        self.layout = layout
        self.lag = lag
        self.budget = budget
        self.window = window

    def __len__(self) -> int:
        return len(self.sampler)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[T]:
        # Items drawn from the sampler and not handed out yet, with the number of samples up to their end.
        drawn: Deque[Tuple[T, int]] = deque()
        failures: list[Exception] = []

        def accesses() -> Iterator[Access]:
            end = 0
            try:
                for item in self.sampler:
                    extents = [self.layout(number) for number in indices_of(item)]
                    end += len(extents)
                    drawn.append((item, end))
                    yield from extents
            except Exception as failure:  # raised when the program gets to it, not when it is drawn
                failures.append(failure)

        source = accesses()
        start = 0
        with prefetch(source, budget=self.budget, window=self.window) as guard:
            while True:
                if start >= self.lag:
                    tell(guard, start - self.lag)
                if not drawn:
                    tell(guard, start)
                    # In a child that inherited this iterator the guard draws nothing.
                    if not drawn and next(source, None) is None and not drawn:
                        break
                item, start = drawn.popleft()
                yield item
        if failures:
            raise failures[0]

    def set_epoch(self, epoch: int) -> None:
        """Hand the epoch on to the sampler, as distributed samplers want it."""
        self.sampler.set_epoch(epoch)  # type: ignore[attr-defined]


def tell(guard: Guard, n: int) -> None:
    """The program is at entry `n`, unless there is none."""
    try:
        guard.at(n)
    except IndexError:
        pass


def indices_of(item: Any) -> list[int]:
    if isinstance(item, (list, tuple)):
        return [as_index(number) for number in item]
    return [as_index(item)]
