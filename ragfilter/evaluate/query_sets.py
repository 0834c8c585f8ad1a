"""Sets of labelled queries that a workspace stores by name."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from ragfilter.basics.files import kind
from ragfilter.errors import InputError
from ragfilter.evaluate.labelled_queries import Labels, Qrels, measurable, missing, visible
from ragfilter.evaluate.labelling import Agreement, agreement
from ragfilter.evaluate.query_files import read_labels
from ragfilter.ingest import bundled
from ragfilter.ingest.bundled import DEMOS
from ragfilter.model import UNRESTRICTED, Chunk, User
from ragfilter.stores.label_book import LABELLED, Label, LabelBook, Maker, qrels_of, visible_labels
from ragfilter.text.normalise import mend_characters

LABELS_OF, WITH_LLM = ", labels of ", ", with LLM labels"


def sets(
    book: LabelBook, collection: str, catalogue: Mapping[str, Chunk] = MappingProxyType({}), user: User = UNRESTRICTED
) -> dict[str, int]:
    """The number of questions in every set of the collection, by name; a demo's own set comes
    first. `user` does not learn of questions labelled on hidden chunks only. Raises StoreError."""
    of_collection = {collection: len(of_demo(collection).labelled)} if collection in DEMOS else {}
    sizes = of_collection | book.sets(collection)
    if not user.unrestricted:
        sizes[LABELLED] = len(labelled(book, collection, catalogue, user))
    return sizes


def labelled(book: LabelBook, collection: str, catalogue: Mapping[str, Chunk], user: User) -> dict[str, str]:
    """The questions with a label that `user` can see, by id. Raises StoreError."""
    visible_questions = {each.query for each in visible_labels(book.standing(collection), catalogue, user)}
    return {i: q for i, q in book.queries(collection, LABELLED).items() if q in visible_questions}


def title(name: str, *, llm: bool, qrels: str | None = None) -> str:
    """The title of a run's query set. It includes the qrels file, if any, and whether an LLM's labels count."""
    return f"{name}{f'{LABELS_OF}{qrels}' if qrels else ''}{WITH_LLM if llm else ''}"


def untitled(title: str) -> tuple[str, str, bool]:
    """Parse a title into the query set's name, its qrels file (empty without one), and whether LLM labels count."""
    name, _, qrels = title.removesuffix(WITH_LLM).partition(LABELS_OF)
    return name, qrels, title.endswith(WITH_LLM)


def agreed(labels: Iterable[Label]) -> Agreement:
    """The agreement between LLM labels and human labels."""
    labels = tuple(labels)
    by_llm = qrels_of((each for each in labels if each.made_by == "llm"), llm=True)
    return agreement(qrels_of(labels), by_llm)


def questions(
    book: LabelBook,
    collection: str,
    name: str,
    catalogue: Mapping[str, Chunk] = MappingProxyType({}),
    user: User = UNRESTRICTED,
) -> dict[str, str]:
    """The questions of a set by id, or of a demo's own set. From the set `labelled`, `user` gets only questions with a
    label that they can see. Raises InputError if there is no such set, and StoreError."""
    if name == LABELLED:
        by_id = labelled(book, collection, catalogue, user)
    else:
        by_id = _stored(book, collection, name)
    if not by_id:
        sizes = sets(book, collection, catalogue, user)
        known = ", ".join(n for n, count in sizes.items() if count)
        raise InputError(
            f"The collection {collection!r} has no query set {name!r} with questions.",
            remedy=f"There are: {known}."
            if known
            else "Label chunks of some questions, or import a query set with its labels.",
            action="" if known else "label",
        )
    return by_id


def import_set(
    book: LabelBook,
    collection: str,
    name: str,
    asked: Mapping[str, str],
    rows: Sequence[tuple[str, str, int]],
    ids: Container[str],
    *,
    who: str,
    made_by: Maker = "human",
    replace: bool = False,
    otherwise: str = "",
    incomplete: str = "",
) -> list[str]:
    """Store questions under a name, with labels (question, chunk id, grade) by `who`. Returns the
    labelled ids that are not among the collection's `ids`; `incomplete` says why it may lack some.

    Raises InputError if it has none of the labelled ids, or if the name has a set with other questions (`replace`
    overwrites it, `otherwise` says what to do instead), and StoreError."""
    unknown = missing((row[1] for row in rows), ids, collection=collection, remedy=incomplete)
    before, stored = book.queries(collection, name), _stored(book, collection, name)
    as_stored = {mend_characters(i): mend_characters(text).strip() for i, text in asked.items()}
    if stored and stored != as_stored and not replace:
        raise InputError(f"The query set {name!r} exists and has other questions.", remedy=otherwise)
    book.put_set(collection, name, asked, before=None if replace else before)
    book.add(collection, rows, who=who, made_by=made_by)
    return sorted(unknown)


def check_new(book: LabelBook, collection: str, name: str) -> None:
    """Raise InputError if a set of this name exists, and StoreError."""
    if name in sets(book, collection):
        raise InputError(f"There is already a set {name!r}.", remedy="Choose another name, or remove that set.")


def _stored(book: LabelBook, collection: str, name: str) -> dict[str, str]:
    """The questions of a set, or of a demo's own set; empty if there is no such set."""
    by_id = book.queries(collection, name)
    if not by_id and name == collection and collection in DEMOS:
        return dict(of_demo(name).queries)
    return by_id


def load(book: LabelBook, collection: str, name: str, *, llm: bool = False, bare: bool = False) -> Labels:
    """The questions of a set with their labels. A demo's own labels count unless somebody has overridden them. `llm`:
    an LLM's label counts if no person has labelled the pair. Raises InputError if there is no such set, or if none of
    its questions has a label (unless `bare`), and StoreError."""
    queries = questions(book, collection, name)
    qrels = _qrels(book, collection, name, queries, llm=llm)
    if not qrels and bare:
        return Labels(queries, {})
    if not qrels:
        raise InputError(
            f"No question of the set {name!r} has a label.",
            remedy="Mark chunks as relevant, or import labels.",
            action="label",
        )
    loaded = Labels(queries, qrels)
    loaded.check_relevant()
    return loaded


def _qrels(book: LabelBook, collection: str, name: str, queries: Mapping[str, str], *, llm: bool) -> Qrels:
    """The labels of a set's questions, as `load` counts them."""
    shipped: Qrels = {}
    if name == collection and collection in DEMOS and not book.queries(collection, name):
        shipped = of_demo(name).qrels
    standing = book.standing(collection)
    people, every = qrels_of(standing), qrels_of(standing, llm=llm)
    texts = {i: text.strip() for i, text in queries.items()}
    qrels = {i: {**every.get(q, {}), **shipped.get(i, {}), **people.get(q, {})} for i, q in texts.items()}
    return {i: grades for i, grades in qrels.items() if grades}


def exported(
    book: LabelBook, collection: str, name: str, catalogue: Mapping[str, Chunk], user: User
) -> tuple[Labels, Labels]:
    """All questions of a set, twice: with the labels by people and a demo's own labels, and with an LLM's labels for
    the other pairs. `user` gets only labels of chunks that they can see. Raises InputError if there is no such set, and
    StoreError."""
    queries = questions(book, collection, name, catalogue, user)
    people, every = (_qrels(book, collection, name, queries, llm=with_llm) for with_llm in (False, True))
    by_llm = {
        i: {chunk: grade for chunk, grade in grades.items() if chunk not in people.get(i, {})}
        for i, grades in every.items()
    }
    apart = Labels(queries, people), Labels(queries, by_llm)
    if user.unrestricted:
        # Users who see everything also export the labels of deleted chunks.
        return apart
    return visible(apart[0], catalogue, user), visible(apart[1], catalogue, user)


def everything(book: LabelBook, collection: str, catalogue: Mapping[str, Chunk], user: User) -> Labels | None:
    """All labelled questions, a demo's own and those labelled by people, with the labels of chunks
    that `user` can see; None if there are none. Raises StoreError."""
    queries: dict[str, str] = {}
    qrels: dict[str, Mapping[str, int]] = {}
    for name in (collection, LABELLED):
        try:
            loaded = load(book, collection, name)
        except InputError:
            continue
        known = {text.strip() for text in queries.values()}
        for query_id, text in loaded.labelled.items():
            if text.strip() not in known:
                queries[query_id], qrels[query_id] = text, loaded.qrels[query_id]
    try:
        labels = measurable(Labels(queries, qrels), catalogue, user)
    except InputError:
        return None
    return labels if labels.qrels else None


def are_files(queries: str, qrels: str | None) -> bool:
    """Whether these names mean files or a demo rather than a query set in a workspace."""
    path = Path(queries)
    is_path = path.name != queries or path.suffix in (".jsonl", ".csv", ".tsv", ".txt")
    return qrels is not None or queries in DEMOS or is_path or kind(path) == "file"


def load_files(queries: str, qrels: str | None) -> Labels:
    """Load labelled queries from two files. A demo collection's name, alone or for both, means its own labels. Raises
    InputError."""
    if queries in DEMOS and qrels in (None, queries):
        return of_demo(queries)
    if qrels is None or {queries, qrels} & {*DEMOS}:
        raise InputError(
            "The questions or the qrels are not in a file.",
            remedy="Pass two files, a query set of the workspace, or demo or adsapi for both.",
        )
    return read_labels(queries, qrels)


def of_demo(name: str) -> Labels:
    """The bundled labels of a demo collection."""
    return Labels(bundled.queries(name), bundled.qrels(name))
