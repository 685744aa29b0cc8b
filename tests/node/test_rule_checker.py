"""The process that looks at rules: asked one question at a time, killed when it does not answer, never left behind."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from brookmq.base.errors import OperationError
from brookmq.node import rule_checker as rule_checker_module
from brookmq.node.rule_checker import RuleChecker, is_installed
from brookmq.ops.rule_view import CannotCheckError, RuleRefusedError
from tests.node.child_programs import CHECKER, DEADLINE_S, program, wait_until_gone


def run(folder: Path, test: Callable[[RuleChecker], Awaitable[None]], text: str = CHECKER, **options: Any) -> None:
    async def bounded() -> None:
        options.setdefault("idle_s", 600.0)
        checker = RuleChecker(folder / "checker", program=program(folder, text), installed=lambda: True, **options)
        async with asyncio.timeout(3 * DEADLINE_S):
            try:
                await test(checker)
            finally:
                await checker.close()
        assert checker.pid is None

    asyncio.run(bounded())


async def under_way(checker: RuleChecker, question: dict[str, Any]) -> asyncio.Task[dict[str, Any]]:
    """A question that the process has, or will have, and does not answer."""
    asked = asyncio.create_task(checker.ask(question))
    while checker._answer is None:  # noqa: ASYNC110 - it is asked in the task
        await asyncio.sleep(0)
    return asked


def test_it_is_started_with_the_first_question_and_stays(tmp_path: Path) -> None:
    pids: list[int] = []

    async def test(checker: RuleChecker) -> None:
        assert checker.pid is None
        for size in (1, 3_000_000):
            answer = await checker.ask({"do": "answer", "filler": "x" * size, "want": size})
            assert answer["size"] > size
            assert len(answer["text"]) == size
            assert answer["folder"] == str(tmp_path / "checker")
            pids.append(answer["pid"])
        assert checker.pid == pids[0] == pids[1]
        with pytest.raises(RuleRefusedError, match="no") as error:
            await checker.ask({"do": "refuse"})
        assert (error.value.line, error.value.column) == (1, 2)
        assert checker.pid == pids[0], "it did what it should"

    run(tmp_path, test)
    wait_until_gone(*pids)


def test_questions_wait_for_each_other_but_not_too_many(tmp_path: Path) -> None:
    async def test(checker: RuleChecker) -> None:
        most = rule_checker_module.WAITING_MAX
        answers = [asyncio.create_task(checker.ask({"do": "answer", "filler": "x" * at})) for at in range(most)]
        await asyncio.sleep(0)
        with pytest.raises(OperationError, match=f"busy: {most} questions wait"):
            await checker.ask({"do": "answer"})
        sizes = [(await answer)["size"] for answer in answers]
        assert sizes == sorted(sizes)
        await checker.ask({"do": "answer"})

    run(tmp_path, test)


@pytest.mark.parametrize(
    ("do", "message"),
    [
        ("die", r"ended in the middle of the question \(exit code 3\): what happened: this"),
        ("mumble", "can't be read"),
        ("wrong id", "can't be read"),
    ],
)
def test_one_that_fails_is_replaced(tmp_path: Path, do: str, message: str) -> None:
    async def test(checker: RuleChecker) -> None:
        before = (await checker.ask({"do": "answer"}))["pid"]
        with pytest.raises(OperationError, match=message):
            await checker.ask({"do": do})
        after = (await checker.ask({"do": "answer"}))["pid"]
        assert after != before
        wait_until_gone(before)

    run(tmp_path, test)


def test_one_that_is_killed_in_the_middle_is_replaced(tmp_path: Path) -> None:
    async def test(checker: RuleChecker) -> None:
        before = (await checker.ask({"do": "answer"}))["pid"]
        asked = await under_way(checker, {"do": "sleep"})
        os.kill(before, signal.SIGKILL)
        with pytest.raises(OperationError, match="signal SIGKILL"):
            await asked
        assert (await checker.ask({"do": "answer"}))["pid"] != before

    run(tmp_path, test)


def test_one_that_died_between_questions_is_replaced(tmp_path: Path) -> None:
    async def test(checker: RuleChecker) -> None:
        before = (await checker.ask({"do": "answer"}))["pid"]
        os.kill(before, signal.SIGKILL)
        while checker.pid == before:  # noqa: ASYNC110 - nobody is told
            await asyncio.sleep(0.01)
        assert (await checker.ask({"do": "answer"}))["pid"] != before

    run(tmp_path, test)


def test_one_that_does_not_answer_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    async def test(checker: RuleChecker) -> None:
        child = (await checker.ask({"do": "child"}))["pid"]
        pid = checker.pid
        assert pid is not None
        with pytest.raises(OperationError, match=r"did not answer within 0\.5 s"):
            await checker.ask({"do": "sleep"})
        wait_until_gone(pid, child)
        assert (await checker.ask({"do": "answer"}))["pid"] != pid

    run(tmp_path, test, answer_s=0.5)


def test_the_first_answer_may_take_longer(tmp_path: Path) -> None:
    slow = "import time; time.sleep(1)\n" + CHECKER

    async def test(checker: RuleChecker) -> None:
        await checker.ask({"do": "answer"})
        with pytest.raises(OperationError, match=r"within 0\.2 s"):
            await checker.ask({"do": "sleep"})
        await checker.ask({"do": "answer"})

    run(tmp_path, test, slow, answer_s=0.2)


def test_a_question_that_nobody_waits_for_any_more_is_not_answered_to_another(tmp_path: Path) -> None:
    async def test(checker: RuleChecker) -> None:
        before = (await checker.ask({"do": "answer"}))["pid"]
        asked = await under_way(checker, {"do": "sleep"})
        asked.cancel()
        await asyncio.wait([asked])
        assert (await checker.ask({"do": "answer"}))["pid"] != before
        wait_until_gone(before)

    run(tmp_path, test)


def test_it_ends_when_nobody_asks(tmp_path: Path) -> None:
    async def test(checker: RuleChecker) -> None:
        before = (await checker.ask({"do": "answer"}))["pid"]
        while checker.pid is not None:  # noqa: ASYNC110 - nobody is told
            await asyncio.sleep(0.01)
        assert (await checker.ask({"do": "answer"}))["pid"] != before

    run(tmp_path, test, idle_s=0.1)


def test_its_folder_is_empty_at_its_start(tmp_path: Path) -> None:
    left = tmp_path / "checker" / "blocks" / "1"
    left.mkdir(parents=True)

    async def test(checker: RuleChecker) -> None:
        await checker.ask({"do": "answer"})
        assert list((tmp_path / "checker").iterdir()) == []

    run(tmp_path, test)


def test_a_folder_that_cannot_be_had(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    async def test() -> None:
        checker = RuleChecker(tmp_path / "file" / "checker", 1.0, installed=lambda: True)
        with pytest.raises(OperationError, match="needs the folder"):
            await checker.ask({})

    asyncio.run(test())


def test_without_spark_there_is_an_answer(tmp_path: Path) -> None:
    async def test() -> None:
        checker = RuleChecker(tmp_path, 1.0, installed=lambda: False)
        with pytest.raises(CannotCheckError, match=r"brookmq\[spark\]"):
            await checker.ask({"kind": "check"})

    asyncio.run(test())


def test_whether_spark_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_installed()
    monkeypatch.setattr(rule_checker_module, "NEEDED", ("pyspark", "no_such_package"))
    assert not is_installed()


def test_a_stop_in_the_middle_of_a_question(tmp_path: Path) -> None:
    async def test(checker: RuleChecker) -> None:
        pid = (await checker.ask({"do": "answer"}))["pid"]
        asked = await under_way(checker, {"do": "sleep"})
        await checker.close()
        with pytest.raises(OperationError, match="the node is stopping"):
            await asked
        with pytest.raises(OperationError, match="the node is stopping"):
            await checker.ask({"do": "answer"})
        wait_until_gone(pid)

    run(tmp_path, test)
