"""Phases that ask plain SQL: `ask` of a [[phase]] → Questions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone.errors import LoadstoneError
from loadstone.model import Draw, Question, Questions
from loadstone.scenario.schema import Problem, key_path
from loadstone.scenario.sql import placeholders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from loadstone.model import PhaseKind

CAUTIOUS_SECONDS = 1.0
"""How long one run of a question takes, for estimates: nobody knows before it was asked."""

_SAME = ("table", "cold", "warm_runs", "clients", "duration_s", "distinct", "timeout_s")
_IN_TURN = ("cold", "warm_runs")
_AS_A_LOAD = ("clients", "draws", "distinct")

Path = tuple[str | int, ...]


def questions_of(ask: Mapping[str, Any], statement: Callable[[str], str], seed: int, where: str) -> Questions:
    """Return what an `ask` table, filled in, asks for; `where` is its place, for errors.

    `statement` turns SQL, or the name of a file, into the one statement that it is. Raises LoadstoneError
    where the SQL and the draws do not fit together.
    """
    questions = tuple(Question(q["name"], statement(q["sql"])) for q in ask["questions"])
    draws = tuple(Draw(d["name"], d["least"], d["most"]) for d in ask.get("draws", ()))
    _check_names(questions, draws, where)
    given = {key: ask[key] for key in _SAME if key in ask}
    return Questions(questions=questions, draws=draws, seed=seed, **given)


def question_problems(table: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    """Yield keys that a phase of kind query lacks, or cannot have with the others."""
    if ("ask" in table) == ("queries" in table):
        words = "a query phase asks TSBS's `queries` or, in plain SQL, `ask`."
        yield Problem(key_path((*path, "ask")), words, "Give one of the two.")
    elif "queries" in table and "data" not in table:
        where = key_path((*path, "data"))
        yield Problem(where, "TSBS's queries are made for a data set.", "Add data = { use_case = … }.")
    elif "ask" in table:
        for key in ("data", "timeout_s"):
            if key in table:
                hint = "Remove it." if key == "data" else "Set ask.timeout_s."
                where = key_path((*path, key))
                yield Problem(where, "a phase that asks plain SQL has no such key.", hint)


def published_problems(table: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    """Yield published figures of questions that the phase does not ask."""
    names = [question["name"] for question in table.get("ask", {}).get("questions", ())]
    for place, figure in enumerate(table.get("published", ())):
        if "question" in figure and figure["question"] not in names:
            where = key_path((*path, "published", place, "question"))
            hint = f"Questions: {', '.join(names) or 'none, for the phase has no `ask`'}."
            yield Problem(where, f"the phase asks no question `{figure['question']}`.", hint)


def question_clashes(ask: Mapping[str, Any], kind: PhaseKind, path: Path) -> Iterator[Problem]:
    """Yield keys of `ask`, filled in, that cannot stand together."""
    yield from _mode_clashes(ask, kind, path)
    for key in ("questions", "draws"):
        seen: set[str] = set()
        for place, entry in enumerate(ask.get(key, ())):
            if entry["name"] in seen:
                where = key_path((*path, key, place, "name"))
                yield Problem(where, f"`{entry['name']}` is there already.", "Give another name.")
            seen.add(entry["name"])
    for place, draw in enumerate(ask.get("draws", ())):
        if draw["least"] > draw["most"]:
            where = key_path((*path, "draws", place, "most"))
            words = f"no number lies between {draw['least']} and {draw['most']}."
            yield Problem(where, words, "Let `most` be at least `least`.")


def seconds_of_questions(questions: Questions) -> float:
    """Return about how long questions are asked: their duration, or a cautious guess for each run."""
    if questions.duration_s is not None:
        return questions.duration_s
    return CAUTIOUS_SECONDS * len(questions.questions) * (questions.cold + questions.warm_runs)


def _mode_clashes(ask: Mapping[str, Any], kind: PhaseKind, path: Path) -> Iterator[Problem]:
    wrong: tuple[str, ...]
    if kind == "load":
        wrong = (*_IN_TURN, "duration_s")
        words, hint = "questions beside a load go round until it ends.", "Remove it."
    elif "duration_s" in ask:
        wrong = _IN_TURN
        words, hint = "with duration_s the questions are a load: none of them is cold or warm.", "Remove it."
    else:
        wrong = _AS_A_LOAD
        words, hint = "questions are asked one by one where nothing says for how long.", "Add duration_s."
    for key in wrong:
        if key in ask:
            yield Problem(key_path((*path, key)), words, hint)
    if "distinct" in ask and not ask.get("draws"):
        yield Problem(key_path((*path, "distinct")), "nothing is drawn.", "Add draws, or remove it.")
    if not ask.get("cold", True) and ask.get("warm_runs") == 0:
        where = key_path((*path, "warm_runs"))
        yield Problem(where, "neither cold nor warm: nothing would be asked.", "Ask for one of them.")


def _check_names(questions: tuple[Question, ...], draws: tuple[Draw, ...], where: str) -> None:
    """Refuse a `:name` that is not drawn, and a draw of which no question makes use."""
    drawn = {draw.name for draw in draws}
    used: set[str] = set()
    for question in questions:
        found = {name for _, _, name in placeholders(question.sql, question.name)}
        for name in sorted(found - drawn):
            raise LoadstoneError(
                f"{where}: `:{name}` in {question.name} is not drawn.",
                f"Add a draw of this name; drawn are: {', '.join(sorted(drawn)) or 'none'}.",
            )
        used |= found
    for name in sorted(drawn - used):
        raise LoadstoneError(
            f"{where}: no question makes use of the draw `{name}`.", f"Write :{name} in one, or remove it."
        )
