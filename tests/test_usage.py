"""Token counts for calls that no endpoint counted: which failures cost a prompt."""

from __future__ import annotations

from typing import get_args

import pytest

from ragfilter.answer import usage
from ragfilter.errors import ChatErrorKind
from ragfilter.protocols import Message, Usage

ASKED = (Message("system", "a" * 40), Message("user", "b" * 20))
"""Ten tokens and five."""
READ = {
    "timeout": True, "server": True, "interrupted": True, "empty": True, "": True,
    "unreachable": False, "auth": False, "rate_limit": False, "protocol": False,
}  # fmt: skip


def test_every_way_to_fail_is_in_the_table() -> None:
    assert READ.keys() == {*get_args(ChatErrorKind), ""}


@pytest.mark.parametrize("failed", READ)
def test_a_prompt_counts_where_it_was_read(failed: str) -> None:
    assert usage.estimated(ASKED, "", failed) == Usage(15 if READ[failed] else 0, 0, True)
    # If anything was answered, the prompt was read.
    assert usage.estimated(ASKED, "c" * 8, failed) == Usage(15, 2, True)
