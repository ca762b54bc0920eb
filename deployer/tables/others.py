"""Appends that other processes wait to commit, committed to Lance along with one's own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deployer.errors import Conflict, OutcomeUnknown
from deployer.state.failpoints import reached
from deployer.state.model import TableState
from deployer.state.offers import Offer
from deployer.tables.lance_append import append_to_lance, has_fields, has_files
from deployer.tables.pending import Pending

if TYPE_CHECKING:
    import lance

ALONE = b"alone"  #: the answer to an offer that was not committed: who made it is told why when it commits by itself
LOOK = b"look"  #: the answer to an offer of which only the log and Lance can tell what became


@dataclass(frozen=True, slots=True)
class Other:
    """An append that another process waits to commit."""

    offer: Offer
    pending: Pending


def alike(offers: Sequence[Offer], own: Pending) -> Iterator[Other]:
    """The appends of others that can be committed with this one: what the table must be for it is the same."""
    jobs = {own.job_id}
    for offer in offers:
        pending = Pending.from_bytes(offer.body)
        if pending is None or pending.job_id in jobs:
            continue
        if (pending.schema, pending.dataset) == (own.schema, own.dataset):
            jobs.add(pending.job_id)
            yield Other(offer, pending)


def append_others(
    location: str, begun: TableState, made: lance.LanceDataset | None, others: Sequence[Other], taken: list[Other]
) -> lance.LanceDataset | None:
    """Commits to Lance each of the others that has not withdrawn; `taken` gets those that are, or may be, committed."""
    for each in others:
        if made is None or made.version != begun.lance_version + 1 + len(taken):
            break  # somebody committed who does not wait for turns: one is recorded with what is there
        if not has_fields(made, each.pending) or not has_files(location, each.pending) or not each.offer.take():
            continue
        taken.append(each)
        reached("tables.commit.before-lance-of-other")
        try:
            made = append_to_lance(location, made, each.pending)
        except Conflict:
            taken.pop().offer.answer(ALONE)
        except OutcomeUnknown:
            made = None
        reached("tables.commit.after-lance-of-other")
    return made


@contextlib.contextmanager
def answered(others: Sequence[Other]) -> Iterator[list[Other]]:
    """Whoever was taken, which is to be put into the list, is answered in the end, whatever happens."""
    taken: list[Other] = []
    try:
        yield taken
    finally:
        for each in taken:
            each.offer.answer(LOOK)  # unless it was answered
