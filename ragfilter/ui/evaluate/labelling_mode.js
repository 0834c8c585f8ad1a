// Labelling by keyboard, in a dialog that fills the window. It holds the passages of this question
// and the next ones, so that no key waits for the server. It sends actions as a list of numbered
// events, and repeats them until the server confirms them.
const WORDS = { 2: "Relevant", 1: "Partly", 0: "Not relevant" }

const make = (tag, given = {}, ...inside) => {
  const element = Object.assign(document.createElement(tag), given)
  element.append(...inside)
  return element
}

class Mode {
  constructor(dialog) {
    this.dialog = dialog
    this.known = new Map()
    this.history = []
    this.events = []
    this.question = null
    this.place = 0
    this.said = ""
    dialog.addEventListener("cancel", event => { event.preventDefault(); this.close() })
    dialog.addEventListener("keydown", event => this.press(event))
  }

  take({ data, setStateValue, setTriggerValue }) {
    this.send = () => setStateValue("events", this.events)
    this.close = () => setTriggerValue("closed", true)
    this.events = this.events.filter(([n]) => n > data.last)
    this.n = Math.max(this.n ?? 0, data.last)
    if (this.blind !== data.blind) this.known.clear()
    this.blind = data.blind
    this.data = data
    for (const each of data.questions)
      if (!this.known.has(each.query)) this.known.set(each.query, each)
    const at = this.question && this.known.get(this.question.query)
    // A typed question comes first, and so does one that the server opened.
    if (!at || this.awaiting !== undefined && data.last >= this.awaiting) {
      this.awaiting = undefined
      this.open(this.known.get(data.questions[0]?.query) ?? null)
    } else {
      this.question = at
      this.place = Math.min(this.place, at.passages.length)
    }
    this.draw()
    if (this.hurrying) this.skip()
    if (!this.dialog.open) this.dialog.showModal()
  }

  open(question) {
    this.question = question
    this.place = question ? this.next(0) : 0
  }

  next(from) {
    const { passages } = this.question
    for (let at = from; at < passages.length; at++) if (passages[at].grade === null) return at
    return passages.length
  }

  get done() {
    return this.question.passages.every(({ first, grade }) => !first || grade !== null)
  }

  emit(kind, ...given) {
    this.events.push([++this.n, kind, ...given])
    this.send()
  }

  mark(grade) {
    const passage = this.question?.passages[this.place]
    if (!passage) return
    this.history.push([this.question, this.place, passage.grade])
    passage.grade = grade
    const quote = grade ? this.selected() : ""
    this.said = `${WORDS[grade]}${quote ? ", with the selected text as evidence" : ""}.`
    this.place = this.next(this.place + 1)
    this.emit("mark", this.question.query, passage.id, grade, quote)
    this.draw()
  }

  // The selected part of the passage.
  selected() {
    const chosen = getSelection()
    return this.dialog.querySelector("article p")?.contains(chosen.anchorNode) ? `${chosen}`.trim() : ""
  }

  undo() {
    if (!this.history.length) return
    const [question, place, before] = this.history.pop()
    if (question !== this.question) this.emit("open", question.query)
    this.question = question
    this.place = place
    question.passages[place].grade = before
    this.said = "Undone."
    this.emit("undo")
    this.draw()
  }

  get following() {
    const queries = this.data.questions.map(({ query }) => query)
    return queries[queries.indexOf(this.question?.query) + 1]
  }

  skip() {
    const { following } = this
    // A fast labeller gets ahead of the server, and continues once it has caught up.
    this.hurrying = following === undefined && this.events.length > 0
    if (following === undefined) return
    this.open(this.known.get(following))
    this.said = "Next question."
    this.emit("open", following)
    this.draw()
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    event.stopPropagation()
    if (event.target instanceof HTMLInputElement) {
      const text = event.target.value.trim()
      if (event.key !== "Enter" || !text) return
      event.target.value = ""
      this.emit("ask", text)
      this.awaiting = this.n
      this.dialog.querySelector("article").focus()
      return
    }
    const act = {
      2: () => this.mark(2), 1: () => this.mark(1), 0: () => this.mark(0),
      u: () => this.undo(), n: () => this.skip(), b: () => this.emit("blind", !this.blind),
    }[event.key.toLowerCase()]
    if (!act) return
    event.preventDefault()
    act()
  }

  button(key, word, act, given = {}) {
    return make("button", { type: "button", onclick: act, ...given }, `${word} `, make("kbd", { textContent: key }))
  }

  draw() {
    const { question, data, place } = this
    const passage = question?.passages[place]
    const more = this.following !== undefined || this.events.length > 0
    const typed = this.dialog.querySelector("input")?.value ?? ""
    const writing = this.dialog.contains(document.activeElement) &&
      document.activeElement instanceof HTMLInputElement
    const firsts = question ? question.passages.filter(({ first }) => first) : []
    const marked = question ? question.passages.filter(({ grade }) => grade !== null).length : 0
    const optional = (question?.passages.length ?? 0) - firsts.length
    const where = !question ? ""
      : this.done ? `Done: ${marked} labelled, ${question.passages.length - marked} more are optional`
      : `Chunk ${place + 1} of ${firsts.length}${optional ? `, ${optional} more are optional` : ""}`
    const input = make("input", {
      type: "text", value: typed, placeholder: "Type a question of your own",
      ariaLabel: "Question to label",
    })
    const article = make("article", { tabIndex: 0, ariaLabel: "Chunk", autofocus: true })
    article.dataset.passage = ""
    if (passage) {
      article.append(make("h2", { textContent: passage.title }),
        make("p", { textContent: passage.text || "This chunk has no text." }))
    } else {
      article.append(make("p", { textContent:
        !question ? "There is no question to label. Type one below."
        : question.passages.length ? "Every chunk offered for this question is labelled."
        : "The search found nothing for this question." }))
    }
    const steps = make("ol", { ariaLabel: "Chunks of this question" },
      ...(question?.passages ?? []).map(({ first, grade }, at) => make("li", {
        className: `${at === place ? "rf-here" : ""} ${first ? "rf-first" : ""}`,
        textContent: grade ?? "·", title: `Chunk ${at + 1}: ${WORDS[grade] ?? "unlabelled"}`,
      })))
    const marks = [2, 1, 0].map(grade => this.button(grade, WORDS[grade], () => this.mark(grade), {
      disabled: !passage, ariaPressed: String(passage?.grade === grade),
      title: grade ? "To keep evidence, first select the text that answers the question." : "",
      onmousedown: event => event.preventDefault(),
    }))
    this.dialog.replaceChildren(
      make("header", {},
        make("div", {},
          make("p", { textContent:
            `${data.done < data.wanted ? `${data.done} of ${data.wanted}` : data.done} questions labelled` }),
          make("h1", { textContent: question?.query ?? "Label" }),
          make("p", { className: "rf-where" }, where, " ", steps)),
        this.button("Esc", "Back", () => this.close())),
      article,
      make("p", { role: "alert", textContent: data.error }),
      make("footer", {},
        make("div", {}, ...marks),
        make("div", {},
          this.button("U", "Undo", () => this.undo(), { disabled: !this.history.length }),
          this.button("N", "Next question", () => this.skip(), {
            disabled: !more, className: question && this.done ? "rf-main" : "" }),
          this.button("B", "Blind order", () => this.emit("blind", !this.blind), {
            ariaPressed: String(this.blind),
            title: "Shuffles the chunks and hides other people's labels." }),
          input)),
      make("p", { className: "rf-unseen", ariaLive: "polite", textContent:
        `${this.said} ${where}${passage ? `: ${passage.title}` : ""}` }),
    )
    if (writing) input.focus()
    else article.focus({ preventScroll: true })
    article.scrollTop = 0
  }
}

const modes = new WeakMap()
export default given => {
  const dialog = given.parentElement.querySelector("dialog")
  if (!modes.has(dialog)) modes.set(dialog, new Mode(dialog))
  modes.get(dialog).take(given)
}
