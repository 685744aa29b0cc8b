"""What a query does in Spark, whether it is a rule or a table: which messages, which rows, which actions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from brookmq.base.rule_documents import Rule, TableDocument
from brookmq.spark.actions.interface import NodeAccess
from brookmq.spark.pipeline.batches import Chain, OnActionFailed
from brookmq.spark.pipeline.statistics import OBSERVED, OBSERVED_ROWS
from brookmq.spark.pipeline.wanted import WantedQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

FILE_ACTIONS: Final = ("delta", "iceberg", "parquet")


@dataclass(frozen=True, slots=True)
class Plan:
    """``paced``: each batch makes files, so a batch comes every few seconds and not as soon as it can."""

    filters: tuple[str, ...]
    columns: tuple[str, ...]
    rows: Callable[[DataFrame], DataFrame]
    chains: Callable[[StructType], list[Chain]]
    output_mode: str
    on_action_failed: OnActionFailed
    paced: bool


def plan_of(query: WantedQuery, node: NodeAccess) -> Plan:
    """The plan of a query without a problem."""
    document = query.document
    if isinstance(document, Rule):
        return _rule_plan(query, document, node)
    assert isinstance(document, TableDocument)
    return _table_plan(query, document, node)


def _rule_plan(query: WantedQuery, rule: Rule, node: NodeAccess) -> Plan:
    compiled = query.compiled
    assert compiled is not None

    def rows(messages: DataFrame) -> DataFrame:
        from brookmq.spark.rules.applying import apply_rule

        return apply_rule(messages, compiled, OBSERVED)

    def chains(schema: StructType) -> list[Chain]:
        return [_chain([action, *action.fallbacks], query, node, schema, steady=steady) for action in rule.actions]

    steady = compiled.watermark is None and compiled.output_mode == "append"  # groups come in any order

    actions = [one for action in rule.actions for one in (action, *action.fallbacks)]
    return Plan(
        compiled.filters,
        compiled.source_columns,
        lambda messages: counted(rows(messages)),
        chains,
        compiled.output_mode,
        rule.on_action_failed,
        bool(actions) and all(action.type in FILE_ACTIONS for action in actions),
    )


def _table_plan(query: WantedQuery, table: TableDocument, node: NodeAccess) -> Plan:
    from brookmq.spark.pipeline.tables import columns_read, rows_of

    def chains(schema: StructType) -> list[Chain]:
        if table.kind == "gold_last":
            return [Chain(lambda: _last_values(query, table))]
        return [_chain([table_action(table)], query, node, schema, steady=table.kind != "gold_minute")]

    return Plan(
        tuple(table.filter),
        columns_read(table.kind),
        lambda messages: counted(rows_of(table.kind, messages, query.schema)),
        chains,
        "append",
        "retry",
        paced=True,
    )


def counted(rows: DataFrame) -> DataFrame:
    """The same rows; Spark counts those that come out."""
    from pyspark.sql import functions as f

    return rows.observe(OBSERVED_ROWS, f.count(f.lit(1)).alias("passed"))


def table_action(table: TableDocument) -> Any:
    """The action that writes a table which only grows."""
    from brookmq.base.rule_documents import DeltaAction, IcebergAction, ParquetAction

    if table.format == "delta":
        return DeltaAction(path=table.path)
    if table.format == "parquet":
        return ParquetAction(path=table.path)
    return IcebergAction(warehouse=table.path, table=f"brookmq.{iceberg_name(table.name)}")


def iceberg_name(table: str) -> str:
    """The name of a table with only such characters as SQL takes."""
    return "".join(character if character.isalnum() else "_" for character in table)


def _chain(
    documents: Sequence[Any], query: WantedQuery, node: NodeAccess, schema: StructType, *, steady: bool
) -> Chain:
    from brookmq.spark.actions import make_action

    def maker(document: Any) -> Callable[[], Any]:
        return lambda: make_action(document, query.resources, node, schema, steady=steady)

    return Chain(*map(maker, documents))


def _last_values(query: WantedQuery, table: TableDocument) -> Any:
    from brookmq.spark.pipeline.last_values import LastValues
    from brookmq.spark.pipeline.tables import DEVICE

    sparkplug = query.schema is not None and query.schema.kind == "sparkplug"
    return LastValues(table.path, (*DEVICE, "name") if sparkplug else DEVICE)
