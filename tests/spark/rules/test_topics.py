"""A topic filter in SQL means what it means in MQTT."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from brookmq.mqtt.errors import PacketError
from brookmq.mqtt.topics import check_filter, matches
from brookmq.spark.rules.topics import topic_condition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEVELS = ["", "a", "b", "$a", "a.b", "[x]", "a'b", "a\\b", "${x}", "(", "ä", " ", "a\nb", '"', "*", "%"]


def random_filters(chance: random.Random, count: int) -> list[str]:
    found: set[str] = {"#", "+", "+/+", "/#", "+/#", "a/#", "$a/#", "$a/+", "a", "/"}
    while len(found) < count:
        levels = [chance.choice(["+", "+", *LEVELS]) for _ in range(chance.randint(1, 4))]
        filter = "/".join([*levels, "#"] if chance.random() < 0.3 else levels)
        try:
            check_filter(filter)
        except PacketError:
            continue
        found.add(filter)
    return sorted(found)


def test_conditions_are_those_of_mqtt(spark: SparkSession) -> None:
    chance = random.Random(5)
    filters = random_filters(chance, 120)
    topics = {"/".join(chance.choice(LEVELS) for _ in range(chance.randint(1, 4))) for _ in range(600)} - {""}
    ordered = sorted(topics | {"a", "a/b", "/", "$a", "$a/b", "a\n", "a/b\n"})
    frame = spark.createDataFrame([(topic,) for topic in ordered], "topic string")
    for start in range(0, len(filters), 40):
        some = filters[start : start + 40]
        rows = frame.selectExpr("topic", *(f"{topic_condition(filter)} AS c{at}" for at, filter in enumerate(some)))
        for topic, *found in rows.collect():
            expected = [matches(filter.encode(), topic.encode()) for filter in some]
            assert found == expected, (topic, [f for f, x, y in zip(some, found, expected, strict=True) if x != y])
