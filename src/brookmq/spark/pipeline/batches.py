"""The rows of a batch into the actions of a rule, once each.

Spark calls again with the same batch after a crash or a failure. Each action knows by the batch's key what it has
written, so those that succeeded the first time do nothing the second time.

What happens when an action does not take the rows, and none of its fallbacks does (``on_action_failed``):

- ``retry``: the query fails with this batch, and is started again after a pause; the data waits.
- ``continue``: the rows are not there for this action; it is counted, and the others and the next batches go on.
- ``stop``: the query ends until its rule is changed or enabled again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from brookmq.base.errors import OperationError
from brookmq.spark.actions.interface import Action, ActionError, BatchKey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OnActionFailed = Literal["retry", "continue", "stop"]
MakeAction = Callable[[], Action]


class BatchError(OperationError):
    """A batch was not written. ``for_good``: the rule says that this is its end."""

    def __init__(self, message: str, *, for_good: bool = False) -> None:
        super().__init__(message)
        self.for_good = for_good


class Chain:
    """An action and those that are tried in its place, each made when it is needed first: one that can't be made has
    not taken the rows, like one that can't write."""

    def __init__(self, *makes: MakeAction) -> None:
        self._makes = makes
        self._made: dict[int, Action] = {}

    def __len__(self) -> int:
        return len(self._makes)

    def write(self, frame: DataFrame, key: BatchKey) -> None:
        """Raises ActionError with what each of them said."""
        said: list[str] = []
        for number, make in enumerate(self._makes):
            try:
                if number not in self._made:
                    self._made[number] = make()
                self._made[number].write(frame, key)
            except ActionError as error:
                said.append(str(error))
            else:
                return
        raise ActionError("; and its fallback: ".join(said))

    def close(self) -> None:
        for action in list(self._made.values()):
            action.close()


class BatchWriter:
    """All actions of a query. ``failed`` is told when rows are given up."""

    def __init__(
        self, chains: Sequence[Chain], on_action_failed: OnActionFailed, failed: Callable[[str], None]
    ) -> None:
        self._chains = chains
        self._on_action_failed = on_action_failed
        self._failed = failed

    @property
    def reads_again(self) -> bool:
        """Whether the rows are needed several times: they are kept then, so that they are made and counted once."""
        return sum(map(len, self._chains)) > 1

    def write(self, frame: DataFrame, key: BatchKey) -> None:
        """Raises BatchError, and what Spark raises about the rows themselves."""
        if not self._chains:
            frame.write.format("noop").mode("overwrite").save()  # a rule that only counts
            return
        if not self.reads_again:
            self._write_all(frame, key)
            return
        kept = frame.persist()
        try:
            self._write_all(kept, key)
        finally:
            kept.unpersist()

    def _write_all(self, frame: DataFrame, key: BatchKey) -> None:
        for chain in self._chains:
            try:
                chain.write(frame, key)
            except ActionError as error:
                if self._on_action_failed != "continue":
                    raise BatchError(str(error), for_good=self._on_action_failed == "stop") from None
                self._failed(str(error))

    def close(self) -> None:
        for chain in self._chains:
            chain.close()
