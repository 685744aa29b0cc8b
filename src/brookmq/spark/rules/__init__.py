"""Rules: SQL over messages and events, read strictly and compiled to Spark SQL.

text → `tokens` → `parsing` (sqlglot) → `checking` (allow lists, our own `nodes`) → `compiling` (types, Spark SQL)
     → `analysing` (Spark's opinion) → `testing` (on sample messages) or `applying` (on a batch or stream)

Nothing of the text reaches Spark: what is emitted is built from `nodes`, which have no place for anything else. Only
`analysing`, `testing`, `applying` and `decoding` need Spark, and they import it when they are called.
"""

from __future__ import annotations

from brookmq.spark.rules.compiling import CompiledRule, OutputColumn, compile_rule
from brookmq.spark.rules.errors import RuleError, SchemaError
from brookmq.spark.rules.schemas import Schema, SchemaRegistry

__all__ = ["CompiledRule", "OutputColumn", "RuleError", "Schema", "SchemaError", "SchemaRegistry", "compile_rule"]
