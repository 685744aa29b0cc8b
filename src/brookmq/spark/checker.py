"""The rule checker: a program that a node starts to hear what SQL and Spark say of a rule. ``FOLDER`` is its argument.

A node needs nothing of Spark, and a rule may keep Spark busy for ever (a regular expression is enough): so this is a
process of its own, asked over its pipes and killed when it does not answer. A question is a line of JSON on stdin, its
answer a line on stdout; all else that anybody prints goes to stderr. It ends with its stdin.

| question | asks | answer |
|---|---|---|
| ``check`` | ``sql``, ``schema`` | ``columns``, ``filters`` |
| ``test`` | the same and ``messages`` | also ``rows``, ``matched``, ``failed`` |
| ``schema`` | ``schema``, ``rules`` (name, sql) that have it | nothing |

A schema is ``{"name", "kind", "definition"}`` or null. What is wrong with a rule is ``{"error": {"message", "line",
"column"}}``; what is wrong here ends the process, with a traceback for the node's log.

Rules are compiled without Spark, which starts with the first one that is right. It has one core and compiles little
(C1 only): it is for a few rows at a time.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from brookmq.base.errors import CallerError
from brookmq.base.sample_messages import decoded
from brookmq.spark import session
from brookmq.spark.rules import CompiledRule, RuleError, Schema, SchemaError, compile_rule

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_OPTIONS: Final = "-XX:TieredStopAtLevel=1"
DRIVER_MEMORY: Final = "512m"
RESULT_SIZE_MAX: Final = "16m"

WARMING_SQL: Final = 'SELECT payload.a + 1 AS a, topic FROM "a" WHERE payload.b > 0'

Fields = Mapping[str, Any]


class Checker:
    """Answers questions. ``folder`` is for what Spark writes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._is_warm = False
        self._kinds: dict[str, Callable[[Fields], dict[str, Any]]] = {
            "check": self._check,
            "test": self._test,
            "schema": self._check_schema,
        }

    def answer(self, question: Fields) -> dict[str, Any]:
        try:
            return self._kinds[question["kind"]](question)
        except RuleError as error:
            hint = f" ({error.hint})" if error.hint else ""
            return _error(error.message + hint, error.line, error.column)
        except (SchemaError, CallerError) as error:
            return _error(str(error))
        except RecursionError:
            return _error("what comes out is nested too deeply")

    def _check(self, question: Fields) -> dict[str, Any]:
        return self._analysed(_compiled(question))

    def _test(self, question: Fields) -> dict[str, Any]:
        from brookmq.spark.rules.testing import sample_messages, try_rule

        rule = _compiled(question)
        found = self._analysed(rule)
        messages = sample_messages([decoded(message) for message in question["messages"]])
        tried = try_rule(self._spark, rule, messages)
        return {**found, "rows": list(tried.rows), "matched": tried.matched, "failed": tried.failed}

    def _analysed(self, rule: CompiledRule) -> dict[str, Any]:
        from brookmq.spark.rules.analysing import analyse

        columns = analyse(self._spark, rule)
        return {
            "columns": [{"name": column.name, "type": column.type} for column in columns],
            "filters": list(rule.filters),
        }

    def warm_up(self) -> None:
        """Try a rule on a message, once Spark is there: the first time takes seconds that nobody waits for now."""
        if self._is_warm or "_spark" not in self.__dict__:
            return
        self._is_warm = True
        self._test({"sql": WARMING_SQL, "schema": None, "messages": [{"topic": "a", "payload": ""}]})

    def _check_schema(self, question: Fields) -> dict[str, Any]:
        schema = _schema(question["schema"])
        for rule in question["rules"]:
            try:
                compile_rule(rule["sql"], schema)
            except RuleError as error:
                return _error(f"the rule {rule['name']} would not work with it: {error}")
        return {}

    @cached_property
    def _spark(self) -> SparkSession:
        found = session(
            "local[1]",
            spark__app__name="brookmq-rule-checker",
            spark__local__dir=self._folder,
            spark__sql__warehouse__dir=self._folder / "warehouse",
            spark__sql__shuffle__partitions=1,
            spark__driver__memory=DRIVER_MEMORY,
            spark__driver__maxResultSize=RESULT_SIZE_MAX,
            spark__driver__extraJavaOptions=JAVA_OPTIONS,
        )
        found.sparkContext.setLogLevel("ERROR")
        return found

    def close(self) -> None:
        if "_spark" in self.__dict__:
            self._spark.stop()


def _compiled(question: Fields) -> CompiledRule:
    return compile_rule(question["sql"], _schema(question["schema"]))


def _schema(document: Fields | None) -> Schema | None:
    return None if document is None else Schema.checked(document["name"], document["kind"], document["definition"])


def _error(message: str, line: int = 0, column: int = 0) -> dict[str, Any]:
    return {"error": {"message": message, "line": line, "column": column}}


def serve(checker: Checker, questions: BinaryIO, answers: BinaryIO) -> None:
    """Until there are no more questions."""
    for line in questions:
        question = json.loads(line)
        answer = {"id": question["id"], **checker.answer(question)}
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()
        checker.warm_up()


def main(arguments: list[str]) -> None:
    """The pipe to the node is taken away from all others who could print: the JVM has stdout, too."""
    answers = os.fdopen(os.dup(1), "wb")
    os.set_inheritable(answers.fileno(), False)
    os.dup2(2, 1)
    checker = Checker(Path(arguments[0]))
    with contextlib.suppress(BrokenPipeError):  # the node is gone, or had enough
        serve(checker, sys.stdin.buffer, answers)
    checker.close()


if __name__ == "__main__":
    main(sys.argv[1:])
