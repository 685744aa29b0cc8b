"""Topic filters as Spark expressions mean what they mean to the broker."""

from __future__ import annotations

import random
from functools import reduce
from typing import TYPE_CHECKING

import pytest

from brookmq.mqtt.topics import matches
from brookmq.spark.topic_filter import checked_filter, matcher, topic_matches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEVELS = [
    "",
    "a",
    "b",
    "aa",
    "A",
    "a.b",
    "$a",
    "$SYS",
    "a$",
    "(",
    "[x]",
    "\\",
    "\\d",
    "a\nb",
    "é",
    "𝄞",
    " ",
    "*",
    "|",
    "?",
]


def random_topics(dice: random.Random, count: int) -> list[str]:
    topics = {"/".join(dice.choices(LEVELS, k=dice.randint(1, 4))) for _ in range(count)}
    return sorted(topics - {""})


def random_filters(dice: random.Random, count: int) -> list[str]:
    filters = {"#", "+", "/#", "+/#", "/+", "a/#", "a/+/#", "$SYS/#", "$a/+", "a\nb/#", "+/+"}
    while len(filters) < count:
        levels = [dice.choice([*LEVELS[:6], "+", "+", dice.choice(LEVELS)]) for _ in range(dice.randint(1, 4))]
        if dice.random() < 0.4:
            levels.append("#")
        if "/".join(levels):
            filters.add("/".join(levels))
    return sorted(filters)


def test_a_column_says_what_the_broker_says(spark: SparkSession) -> None:
    dice = random.Random(4711)
    topics, filters = random_topics(dice, 1500), random_filters(dice, 250)
    messages = spark.createDataFrame([(topic,) for topic in topics], "topic string")
    answers = messages.select("topic", *(topic_matches("topic", one).alias(f"f{at}") for at, one in enumerate(filters)))
    hits = 0
    for row in answers.collect():
        for filter, answer in zip(filters, row[1:], strict=True):
            assert answer == matches(filter.encode(), row.topic.encode()), (filter, row.topic)
            hits += answer
    assert hits > 1000


def test_it_is_no_python_function(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    messages = spark.createDataFrame([("a/b",)], "topic string")
    either = reduce(lambda one, other: one | other, [topic_matches(messages.topic, f) for f in ("a/+/b", "+/b", "c/#")])
    messages.where(either).explain()
    plan = capsys.readouterr().out
    assert "RLIKE" in plan
    assert "Python" not in plan.replace("ExistingRDD", "")


def test_a_matcher_takes_what_one_of_its_filters_matches() -> None:
    dice = random.Random(7)
    for _ in range(100):
        filters = random_filters(dice, 15)[: dice.randint(1, 3)]
        accepts = matcher(filters)
        for topic in random_topics(dice, 50):
            assert accepts(topic.encode()) == any(matches(one.encode(), topic.encode()) for one in filters)
    everything = matcher(["#"])
    assert everything(b"a")
    assert everything(b"/a")
    assert not everything(b"$events/a")


@pytest.mark.parametrize("wrong", ["", "a#", "a/#/b", "a+/b", "a\0"])
def test_what_is_no_filter_is_said(wrong: str) -> None:
    with pytest.raises(ValueError, match="no topic filter"):
        checked_filter(wrong)
    with pytest.raises(ValueError, match="no topic filter"):
        topic_matches("topic", wrong)
