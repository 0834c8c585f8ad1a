"""A link's unusable values are named, with their replacements."""

from __future__ import annotations

import pytest

from ragfilter.ui.session import link


@pytest.mark.parametrize(
    ("params", "environ", "profile", "refused"),
    [
        ({}, {}, "full", ()),
        ({"profile": "adaptive-gap"}, {}, "adaptive-gap", ()),
        ({"profile": "nosuch"}, {}, "full", ("There is no profile 'nosuch'; full is used instead.",)),
        (
            {"profile": "nosuch"},
            {"RAGFILTER_PROFILE": "query-must"},
            "query-must",
            ("There is no profile 'nosuch'; query-must is used instead.",),
        ),
        (
            {"profile": "full", "cutoff.nosuch": "1"},
            {},
            "full",
            ("There is no setting 'cutoff.nosuch' (from the link). See the settings reference.",),
        ),
    ],
)
def test_what_a_link_gets_wrong_is_named(
    params: dict[str, str],
    environ: dict[str, str],
    profile: str,
    refused: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    opened = link.read(params)
    assert (opened.profile, tuple(opened.notices)) == (profile, refused)
