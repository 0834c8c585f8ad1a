"""The judge in words: what a call will cost, what it did, and its verdict on each chunk. Pure."""

from __future__ import annotations

from ragfilter.answer.stream import Prices
from ragfilter.judge.call import JudgeStats
from ragfilter.model import Judgement, PoolResult
from ragfilter.protocols import Usage
from ragfilter.report import VerdictRow, judge_stats, waits_for_judge
from ragfilter.report.verdicts import Forecast
from ragfilter.settings.schema import Judge
from ragfilter.text import numbers
from ragfilter.ui.look import theme
from ragfilter.ui.session import answers

ABOUT = (
    "An LLM reads the chunks that earlier layers let through and decides on each: keep it, discard "
    "it, or keep it and bring in what it refers to, 1, 3 or 5 references deep. It runs after the "
    "cutoff because it is the only layer that costs money and takes seconds: what a rule or a "
    "distance can settle for free is never sent. Only its button asks it, never a slider, and its "
    "answers are cached."
)
SETUP = (
    "No LLM is configured. Start ragfilter with OPENAI_API_KEY, or with OPENAI_BASE_URL for any "
    "OpenAI-compatible server; `make local-llm` starts a tiny one on this machine."
)
NO_PRICE = "no price set (RAGFILTER_PRICE_PROMPT, RAGFILTER_PRICE_COMPLETION)"
ASK, AGAIN, TAKE = "Ask the LLM", "Ask the LLM again", "Use the cached answer"


def button(forecast: Forecast, *, again: bool = False, short: bool = False) -> str:
    """The label of the button: chunks, tokens, the price if one is set and, unless `short`, the
    time."""
    n = numbers.chunks(forecast.asked)
    if forecast.remembered:
        return f"{TAKE} for {n} · free"
    parts = [f"{AGAIN if again else ASK} about {n}"]
    parts.append(f"~{numbers.tokens(forecast.prompt_tokens + forecast.completion_tokens)}")
    if short:
        pass
    elif forecast.usual_ms is None:
        parts.append(f"at most {numbers.limit(forecast.at_most_ms)}")
    else:
        parts.append(f"usually {numbers.ms(forecast.usual_ms)}")
    if forecast.cost is not None:
        parts.append(f"cost {numbers.money(forecast.cost, forecast.currency)}")
    return " · ".join(parts)


def before(forecast: Forecast, settings: Judge) -> list[tuple[str, str]]:
    """What a call would use, as (label, value) pairs."""
    if forecast.remembered:
        said = f"{numbers.chunks(forecast.asked)}, same prompt as before"
        return [("Chunks", said), ("Tokens, time, cost", "none: the answer is cached")]
    chunks = f"{forecast.asked} in the prompt"
    room = numbers.tokens(settings.max_prompt_tokens)
    if forecast.shortened:
        chunks += f", {shortened(forecast.shortened, settings)}"
    if forecast.left_out:
        chunks += (
            f"; {forecast.left_out} do not fit into {room} (Prompt budget) and will be dropped"
        )
    time = f"at most {numbers.limit(forecast.at_most_ms)}, then it falls back"
    if forecast.usual_ms is not None:
        time = f"usually {numbers.ms(forecast.usual_ms)}, {time}"
    price = NO_PRICE
    if forecast.cost is not None:
        price = f"about {numbers.money(forecast.cost, forecast.currency)}"
    return [
        ("Chunks", chunks),
        ("Tokens", f"about {forecast.prompt_tokens:,} sent, {forecast.completion_tokens:,} back"),
        ("Time", time),
        ("Cost", price),
        ("Prompt", forecast.prompt_version),
    ]


def after(stats: JudgeStats, prices: Prices | None) -> list[tuple[str, str]]:
    """What judging did and used, as (label, value) pairs."""
    facts = [
        ("Candidates", numbers.count(stats.original)),
        ("Kept", numbers.count(stats.kept)),
        ("Reduction", f"{stats.reduction:.0%}"),
        ("Added by references", numbers.count(stats.expanded)),
        ("Fallback", "used" if stats.fallback else "not used"),
        ("Time", numbers.ms(stats.ms)),
        ("Tokens in + out", f"{stats.prompt_tokens:,} + {stats.completion_tokens:,}"),
    ]
    if prices is not None:
        facts.append(("Cost", cost(stats, prices)))
    return facts


def shortened(n: int, settings: Judge) -> str:
    """How many chunks in the prompt are shortened, and why."""
    return f"{n} shortened to fit {numbers.tokens(settings.max_prompt_tokens)}"


def by_whom(stats: JudgeStats, settings: Judge) -> str:
    """Which model judged with which prompt, and how many chunks were in no prompt."""
    parts = [f"Judged by {answers.model_label(stats.model) or 'nobody'}"]
    if stats.cached:
        parts.append("cached, so time, tokens and cost describe the original call")
    if stats.prompt_version:
        parts.append(f"prompt {stats.prompt_version}")
    if stats.shortened:
        parts.append(shortened(stats.shortened, settings))
    if stats.left_out:
        parts.append(f"{numbers.chunks(stats.left_out)} did not fit into the prompt")
    return "; ".join(parts) + "."


def cost(stats: JudgeStats, prices: Prices) -> str:
    """The cost of the call."""
    used = Usage(stats.prompt_tokens, stats.completion_tokens)
    return numbers.money(prices.of(used), prices.currency)


def card(result: PoolResult, prices: Prices | None) -> str:
    """The judge's figures in one line for its card; empty if it has not been asked."""
    stats = judge_stats(result)
    if stats is None or stats.fallback:
        return ""
    parts = [f"{stats.original} → {stats.kept}, {-stats.reduction:.0%}"]
    parts.append("cached" if stats.cached else numbers.ms(stats.ms))
    parts.append(numbers.tokens(stats.prompt_tokens + stats.completion_tokens))
    if prices is not None and not stats.cached:
        parts.append(f"cost {cost(stats, prices)}")
    return " · ".join(parts).replace("-", "−", 1)


def headline(result: PoolResult) -> tuple[str, str]:
    """Label and number for the headline strip."""
    if waits_for_judge(result):
        return "LLM judge", "not asked yet"
    stats = judge_stats(result)
    if stats is None:
        return "LLM judge", "nothing to judge"
    if stats.fallback:
        return f"{theme.OUTCOMES['fallback'].sign} LLM judge failed", f"first {stats.kept} stay"
    more = f" + {stats.expanded} by reference" if stats.expanded else ""
    return "LLM judge", f"kept {stats.kept} of {stats.original}{more}"


def verdict(row: VerdictRow, judgement: Judgement | None) -> str:
    """Sign and word for the verdict on a chunk, or for why there is none."""
    signs = {name: mark.sign for name, mark in theme.OUTCOMES.items()}
    fell = theme.LAYERS["judge"].sign
    if row.outcome == "expanded":
        return f"{signs['expanded']} added"
    if row.outcome == "fallback":
        return f"{signs['fallback']} fallback"
    sign = fell if row.outcome == "dropped" else signs.get(row.outcome, signs["kept"])
    if row.said:
        return f"{sign} {row.said}"
    if judgement is not None and row.id in judgement.left_out:
        return f"{sign} no room"
    if judgement is not None and row.id in judgement.unreadable:
        return f"{sign} unreadable"
    if judgement is not None and row.id in judgement.asked and not judgement.error:
        return f"{sign} not named"
    return f"{sign} not sent" if row.outcome == "dropped" else f"{sign} pending"
