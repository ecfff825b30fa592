"""How `--watch` is understood."""

import pytest

from loadstone.errors import LoadstoneError
from loadstone.results.redact import redact
from loadstone.target import parse_targets
from loadstone.watch.spec import Spec, specs_of

ONE = ["postgres://me@db1/app"]
TWO = ["postgres://me@db1/app", "pg18"]


def specs(texts: list[str], asked: list[str], **variables: str) -> list[Spec]:
    return specs_of(texts, asked, parse_targets(asked), variables)


def test_the_only_target_is_meant_and_metrics_are_the_path() -> None:
    (spec,) = specs(["http://db1:9100"], ONE)
    assert spec.url == "http://db1:9100/metrics"
    assert spec.database == "app"
    assert (spec.target, spec.user) == ("db1-app", None)


def test_one_of_several_targets_is_named_as_given_or_by_its_id() -> None:
    found = specs(["postgres://me@db1/app=ssh://root@db1:2222", "pg18=https://[::1]/x?collect[]=cpu"], TWO)
    assert [(s.target, s.scheme, s.host, s.port) for s in found] == [
        ("db1-app", "ssh", "db1", 2222),
        ("pg18", "https", "::1", None),
    ]
    assert found[1].url == "https://[::1]/x?collect[]=cpu"


def test_passwords_come_from_the_url_or_the_environment_and_are_not_shown() -> None:
    (spec,) = specs(["https://me:dirty-linen@db1"], ONE)
    assert (spec.password, spec.shown) == ("dirty-linen", "https://me@db1/metrics")
    assert "dirty-linen" not in redact("it was dirty-linen")
    (spec,) = specs(["https://me@db1"], ONE, LOADSTONE_WATCH_PASSWORD="other-linen")
    assert spec.password == "other-linen"


@pytest.mark.parametrize(
    ("texts", "asked", "words"),
    [
        (["db1:9100"], ONE, "cannot be understood"),
        (["http://"], ONE, "cannot be understood"),
        (["http://db1:99999"], ONE, "cannot be understood"),
        (["ssh://-oProxyCommand=x"], ONE, "cannot be understood"),
        (["ssh://-lroot@db1"], ONE, "cannot be understood"),
        (["ssh://db1/etc"], ONE, "cannot be understood"),
        (["ssh://me:secret-word@db1"], ONE, "takes no password"),
        (["http://db1", "http://db1/metrics"], ONE, "given twice"),
        (["http://db1"], TWO, "which target"),
        (["pg17=http://db1"], TWO, "not for a target"),
    ],
)
def test_what_is_no_watch_is_refused(texts: list[str], asked: list[str], words: str) -> None:
    with pytest.raises(LoadstoneError, match=words) as refused:
        specs(texts, asked)
    assert "secret-word" not in str(refused.value)
