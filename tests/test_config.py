from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragfilter.cli.settings import markdown
from ragfilter.errors import SettingsError
from ragfilter.settings.config import Given, load, to_toml
from ragfilter.settings.profiles import PROFILES
from ragfilter.settings.schema import Settings, field_info, fields


def test_later_places_win(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text('profile = "adaptive-gap"\n[cutoff]\ngap_threshold = 0.2\nmax_results = 6\n')
    environ = {"RAGFILTER_CUTOFF__MAX_RESULTS": "7", "MIN_TOP_K": "4"}
    config = load(file=file, environ=environ, flags=[Given("-k", {"cutoff.max_results": "8"})])
    assert config.profile == "adaptive-gap"
    assert config.settings.retrieval.k == 5
    assert config.settings.cutoff.gap_threshold == 0.2
    assert config.settings.cutoff.max_results == 8
    assert config.settings.quality.min_top_k == 4
    assert config.origins["cutoff.gap_threshold"] == str(file)
    assert config.origins["cutoff.max_results"] == "-k"
    assert config.origins["quality.min_top_k"] == "environment variable MIN_TOP_K"


SEED_VARIABLES = [
    ("MIN_TOP_K", "2", "quality.min_top_k", 2),
    ("MAX_TOP_K", "12", "quality.max_top_k", 12),
    ("RETRIEVAL_SCORE_THRESHOLD", "0.6", "quality.score_threshold", 0.6),
    ("ENABLE_RERANKER", "False", "quality.reranker", "none"),
    ("ENABLE_RERANKER", "True", "quality.reranker", "late_interaction"),
    ("RERANKER_MODEL", "some/model", "quality.reranker_model", "some/model"),
    ("RERANKER_MODEL", "some/model", "quality.reranker", "cross_encoder"),
    ("RERANKER_TOP_K", "4", "quality.reranker_top_k", 4),
    ("RERANKER_SCORE_THRESHOLD", "0.4", "quality.reranker_threshold", 0.4),
    ("CHUNK_FILTERING_ENABLED", "true", "judge.enabled", True),
    ("CHUNK_FILTERING_OVERSAMPLE_MULTIPLIER", "2.0", "judge.oversample", 2.0),
    ("CHUNK_FILTERING_MIN_RELEVANCE_THRESHOLD", "0.2", "judge.min_relevance", 0.2),
    ("CHUNK_FILTERING_LLM_TIMEOUT_MS", "9000", "judge.timeout_ms", 9000),
    ("CHUNK_FILTERING_MAX_PROMPT_TOKENS", "3000", "judge.max_prompt_tokens", 3000),
]


def test_the_seeds_own_variables() -> None:
    for name, value, path, expected in SEED_VARIABLES:
        settings = load(profile="adaptive-gap", environ={name: value}).settings
        assert settings.get(path) == expected


def test_enable_reranker_wins_over_a_file_and_keeps_the_one_it_names(tmp_path: Path) -> None:
    for in_file, enabled, reranker in [
        ("none", "true", "late_interaction"),
        ("cross_encoder", "true", "cross_encoder"),
        ("cross_encoder", "false", "none"),
    ]:
        file = tmp_path / "s.toml"
        file.write_text(f'[quality]\nreranker = "{in_file}"\n')
        settings = load(file=file, environ={"ENABLE_RERANKER": enabled}).settings
        assert settings.quality.reranker == reranker


def test_a_profile_that_is_not_there_is_named_with_who_wants_it(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text('profile = "ful"\n')
    with pytest.raises(SettingsError, match=r"no profile 'ful' \(from .*s\.toml\)\. Choose one of"):
        load(file=file, environ={})
    with pytest.raises(SettingsError, match=r"'ful' \(from environment variable RAGFILTER_PROFILE"):
        load(file=file, environ={"RAGFILTER_PROFILE": "ful"})


REFUSED = [
    ({"MIN_TOP_K": "x"}, {}, ["quality.min_top_k", "'x'", "MIN_TOP_K", "from 1 to 1,000,000"]),
    ({"MIN_TOP_K": "0"}, {}, ["quality.min_top_k", "'0'", "from 1 to 1,000,000"]),
    ({"MIN_TOP_K": "60"}, {"quality.max_top_k": 50}, ["max_top_k (50)", "min_top_k (60)"]),
    ({"RAGFILTER_CUTOFF__GAP_TRESHOLD": "1"}, {}, ["RAGFILTER_CUTOFF__GAP_TRESHOLD", "unset"]),
    ({"ENABLE_RERANKER": "maybe"}, {}, ["ENABLE_RERANKER", "'maybe'", "true or false"]),
    ({}, {"cutoff.gap_threshold": "nan"}, ["cutoff.gap_threshold", "'nan'", "from --set"]),
    ({}, {"cutoff.max_results": 2.5}, ["cutoff.max_results", "2.5"]),
    ({}, {"cutoff.strategy": "knee"}, ["one of gap, fixed, "]),
    ({}, {"gap_threshold": 1}, ["gap_threshold", "Did you mean cutoff.gap_threshold?"]),
]


@pytest.mark.parametrize(("environ", "flags", "words"), REFUSED)
def test_a_bad_value_is_named(environ: dict[str, str], flags: dict[str, object], words: list[str]) -> None:
    with pytest.raises(SettingsError) as caught:
        load(environ=environ, flags=[Given("--set", flags)])
    assert [w for w in words if w not in str(caught.value)] == []


REFERENCE = "See the settings reference."
SUGGESTED = [
    ("quality.threshold", "Did you mean quality.score_threshold?"),
    ("max_results", "Did you mean cutoff.max_results?"),
    ("cutoff.k", "Did you mean retrieval.k?"),
    ("cutoff.m", REFERENCE),
    ("enabled", REFERENCE),
]


@pytest.mark.parametrize(("path", "remedy"), SUGGESTED)
def test_only_what_was_probably_meant_is_suggested(path: str, remedy: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load(environ={}, flags=[Given("--set", {path: 1})])
    assert caught.value.remedy == remedy


BAD_FILES = [
    (b"[cutoff", "not valid TOML"),
    (b"a = " + b"[" * 10_000 + b"]" * 10_000, "s.toml is not valid TOML: it is nested too deeply"),
    (b"\xff", r"s.toml, line 1: not UTF-8 at byte 1. Unpack it if .*UTF-8.$"),
    (b"[cutoff]\nnope = 3", r"no setting 'cutoff.nope' \(from .*s.toml\)"),
    (b'[cutoff]\r\n\r\ngap_threshold = "x"', r"gap_threshold = 'x' \(from .*s.toml\)"),
    (b"[quality]\nmin_top_k = 9\nmax_top_k = 5", r"at least min_top_k \(9\) \(from [^;]*s.toml\)"),
    (b"profile = 3", "profile must be a string"),
    (b'profile = "nope"', "no profile 'nope'"),
]


@pytest.mark.parametrize(("content", "words"), BAD_FILES)
def test_a_bad_file_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "s.toml"
    file.write_bytes(content)
    with pytest.raises(SettingsError, match=words):
        load(file=file, environ={})


def values(path: str) -> st.SearchStrategy[object]:
    info = field_info(path)
    if info.choices:
        return st.sampled_from(info.choices)
    if info.value_type is bool:
        return st.booleans()
    if info.value_type is str:
        return st.text(max_size=10)
    low, high = info.low or 0, info.high or 100
    return st.integers(int(low), int(high)) if info.value_type is int else st.floats(low, high)


@pytest.mark.slow
@given(
    st.sampled_from(sorted(PROFILES)),
    st.dictionaries(st.sampled_from([f.path for f in fields()]), st.none(), max_size=6),
    st.data(),
)
def test_a_settings_file_reproduces_the_settings(name: str, paths: dict[str, None], data: st.DataObject) -> None:
    flags = {path: data.draw(values(path)) for path in paths}
    try:
        config = load(profile=name, environ={}, flags=[Given("--set", flags)])
    except SettingsError:
        return  # min_top_k above max_top_k
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "s.toml"
        file.write_text(to_toml(config.settings, name), encoding="utf-8")
        assert load(file=file, environ={}).settings == config.settings


def test_defaults_are_the_seeds_figures() -> None:
    s = Settings()
    assert (s.cutoff.gap_threshold, s.cutoff.distance_offset) == (0.1, 0.4)
    assert (s.cutoff.min_results, s.cutoff.max_results) == (2, 5)
    assert (s.quality.min_top_k, s.quality.max_top_k, s.quality.score_threshold) == (3, 10, 0.5)
    assert (s.quality.reranker_top_k, s.quality.reranker_threshold) == (3, 0.3)
    assert (s.judge.max_chunks, s.judge.oversample, s.judge.min_relevance) == (25, 1.6, 0.3)
    assert (s.judge.timeout_ms, s.judge.max_prompt_tokens) == (5000, 2000)
    assert (s.retrieval.k, s.query_must.max_rounds) == (15, 3)


def test_the_settings_reference_is_up_to_date() -> None:
    page = Path(__file__).resolve().parents[1] / "docs" / "settings.md"
    assert page.read_text(encoding="utf-8") == markdown()


def test_the_variable_behind_a_value_is_named() -> None:
    for environ, path, value, name in [
        ({"MIN_TOP_K": "5"}, "quality.min_top_k", 5, "MIN_TOP_K"),
        ({"MIN_TOP_K": "5"}, "quality.min_top_k", 4, ""),
        (
            {"MIN_TOP_K": "5", "RAGFILTER_QUALITY__MIN_TOP_K": "6"},
            "quality.min_top_k",
            6,
            "RAGFILTER_QUALITY__MIN_TOP_K",
        ),
        ({"RERANKER_MODEL": "m"}, "quality.reranker", "cross_encoder", "RERANKER_MODEL"),
    ]:
        assert load(profile="full", environ=environ).variable(path, value) == name
