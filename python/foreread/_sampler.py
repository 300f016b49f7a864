"""Samples in an order known beforehand: for data loaders.

A sampler, which is asked ahead of time, gives the order. A layout gives the place of each sample.
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

    Indices are taken from `indices` ahead of time, at most `window` of them.
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
    """A sampler that prefetches the samples before it yields their indices.

    Wraps any iterable of indices, or of batches (lists) of indices, such as a data loader's samplers. Each
    iteration is one session, in the process that iterates. The samples are in the page cache, which all
    processes share.

    With worker processes, a loader takes indices from its sampler long before the samples are read. `lag` is
    the largest number of such samples: workers x batches prefetched by each x samples of a batch. The last
    `lag` samples that were yielded count as unread, so that their pages are not dropped.
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
        # Items drawn from the sampler and not yielded yet, each with the number of samples up to its end.
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
            except Exception as failure:  # raised at its place in the order, not when the sampler is asked
                failures.append(failure)

        source = accesses()
        start = 0
        with prefetch(source, budget=self.budget, window=self.window) as guard:
            while True:
                if start >= self.lag:
                    tell(guard, start - self.lag)
                if not drawn:
                    tell(guard, start)
                    # In a child that inherited this iterator, the guard takes nothing from `source`.
                    if not drawn and next(source, None) is None and not drawn:
                        break
                item, start = drawn.popleft()
                yield item
        if failures:
            raise failures[0]

    def set_epoch(self, epoch: int) -> None:
        """Pass the epoch on to the sampler, for distributed samplers."""
        self.sampler.set_epoch(epoch)  # type: ignore[attr-defined]


def tell(guard: Guard, n: int) -> None:
    """Report that the program is at entry `n`, if the list has it."""
    try:
        guard.at(n)
    except IndexError:
        pass


def indices_of(item: Any) -> list[int]:
    if isinstance(item, (list, tuple)):
        return [as_index(number) for number in item]
    return [as_index(item)]
