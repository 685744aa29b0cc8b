"""What rules do with their rows, one module for each type of action.

A module, and with it the library that it needs, is loaded when a rule has such an action.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, assert_never

from brookmq.base import rule_documents as documents
from brookmq.spark.actions.interface import Action, ActionError, BatchKey, NodeAccess

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["Action", "ActionError", "BatchKey", "NodeAccess", "make_action"]


def make_action(
    document: documents.Action,
    resources: Mapping[str, documents.Resource],
    node: NodeAccess,
    schema: StructType,
    *,
    steady: bool = True,
) -> Action:
    """The action for rows of this schema. Nothing is opened yet; ActionError for what can be told already.

    ``steady``: a batch that comes again has its rows in the same order, as without groups it has.
    """
    match document:
        case documents.DeltaAction():
            from brookmq.spark.actions.delta import DeltaAppender

            return DeltaAppender(document, schema)
        case documents.IcebergAction():
            from brookmq.spark.actions.iceberg import IcebergAppender

            return IcebergAppender(document, schema)
        case documents.ParquetAction():
            from brookmq.spark.actions.parquet_folder import ParquetFolder

            return ParquetFolder(document, schema)
        case documents.PostgresqlAction():
            return _postgresql(document, resources, schema)
        case documents.WebhookAction():
            return _webhook(document, resources, schema, steady=steady)
        case documents.ConsoleAction():
            from brookmq.spark.actions.console import ConsolePrinter

            return ConsolePrinter(document, schema)
        case documents.RepublishAction():
            from brookmq.spark.actions.republish import Republisher

            return Republisher(document, node, schema, steady=steady)
        case _:
            assert_never(document)


def _postgresql(
    document: documents.PostgresqlAction, resources: Mapping[str, documents.Resource], schema: StructType
) -> Action:
    from brookmq.spark.actions.postgresql import PostgresqlInserter

    if document.uri is not None:
        return PostgresqlInserter(document, document.uri, None, schema)
    resource = resources.get(document.resource or "")
    if not isinstance(resource, documents.PostgresqlResource):
        raise ActionError(f"there is no resource {document.resource!r} of type postgresql")
    return PostgresqlInserter(document, resource.settings.uri, resource.settings.password, schema)


def _webhook(
    document: documents.WebhookAction,
    resources: Mapping[str, documents.Resource],
    schema: StructType,
    *,
    steady: bool,
) -> Action:
    from brookmq.spark.actions.webhook import WebhookPoster

    if document.url is not None:
        return WebhookPoster(document, document.url, {}, None, schema, steady=steady)
    resource = resources.get(document.resource or "")
    if not isinstance(resource, documents.WebhookResource):
        raise ActionError(f"there is no resource {document.resource!r} of type webhook")
    settings = resource.settings
    return WebhookPoster(document, settings.url, settings.headers, settings.token, schema, steady=steady)
