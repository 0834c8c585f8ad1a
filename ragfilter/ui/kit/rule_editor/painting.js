// Colours the JSON in the rule editor and marks the server's errors. A coloured copy lies over the
// text area, whose own letters are transparent. Typing, caret, undo and screen readers still use
// the text area.
const MOST = 20_000
const KINDS = ["key", "text", "value", "mark", "bad"]
const TOKENS = /("(?:[^"\\\n]|\\.)*"(?=\s*:))|("(?:[^"\\\n]|\\.)*")|((?:-?\d[\d.eE+-]*|true|false|null)\b)|([{}[\],:])|("[^\n]*|[^\s{}[\],:"]+)|\s+/g

function* parts(text, place) {
  const wrong = /^line \d+, column \d+$/.test(place) ? atLine(text, place) : atPath(place)
  for (const { 0: part, index, ...found } of text.matchAll(TOKENS)) {
    const kind = KINDS.find((_, i) => found[i + 1])
    if (!kind) { yield part; continue }
    const span = document.createElement("span")
    span.className = `rf-json-${kind}`
    span.classList.toggle("rf-json-wrong", wrong(part, kind, index))
    span.textContent = part
    yield span
  }
}

// Whether a token is at a place like "line 2, column 5", or the last one if the text ends before.
function atLine(text, place) {
  const [line, column] = place.match(/\d+/g).map(Number)
  const lines = text.split("\n")
  const start = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0)
  // The server counts characters, and here some have two units. The line may be gone by now.
  const before = [...(lines[line - 1] ?? "")].slice(0, column - 1).join("").length
  const position = Math.min(start + before, text.trimEnd().length - 1)
  return (part, _, index) => index <= position && position < index + part.length
}

// Whether a token is at a place like "contain_one_of[1][0]", or inside it. Takes tokens in order.
function atPath(place) {
  const open = []
  return (part, kind) => {
    const last = open.at(-1)
    if (part === "}" || part === "]") open.pop()
    else if (last && part === ",") last.step = last.list ? last.step + 1 : ""
    else if (last && kind === "key") last.step = part.slice(1, -1)
    const steps = open.map(({ list, step }) => (list ? `[${step}]` : step))
    const here = steps.join("").replace(/^query_must/, "")
    if (part === "{" || part === "[") open.push({ list: part === "[", step: part === "[" ? 0 : "" })
    return place !== "" && ((here === place && part !== ",") || here.startsWith(`${place}[`))
  }
}

export default function ({ parentElement, data }) {
  parentElement.painter ??= begin(parentElement)
  parentElement.painter.mark(data.place)
  return () => {
    parentElement.painter?.end()
    delete parentElement.painter
  }
}

function begin(parentElement) {
  const editor = parentElement.closest(".stVerticalBlock")
  const copy = document.createElement("div")
  copy.className = "rf-painted"
  copy.setAttribute("aria-hidden", "true")
  let area, painted, place = ""
  const follow = () => {
    Object.assign(copy.style, { width: `${area.clientWidth}px`, height: `${area.clientHeight}px` })
    copy.scrollTop = area.scrollTop
  }
  const sizes = new ResizeObserver(follow)
  const paint = () => {
    const found = editor.querySelector("[class*='st-key-rule-editor'] textarea")
    if (found !== area) {
      area?.removeEventListener("scroll", follow)
      sizes.disconnect()
      area = found
      area?.addEventListener("scroll", follow)
      if (area) sizes.observe(area)
    }
    if (!area || area.value.length > MOST) return copy.remove()
    if (copy.previousSibling !== area) area.after(copy)
    else if (painted === area.value) return
    painted = area.value
    // A line break at the end would not make a line by itself.
    copy.replaceChildren(...parts(painted, place), "\n")
    follow()
  }
  // New text from the server comes in a new text area, without an event.
  const changes = new MutationObserver(paint)
  changes.observe(editor, { childList: true, subtree: true, characterData: true })
  editor.addEventListener("input", paint)
  return {
    mark: wrong => {
      place = wrong
      painted = null
      paint()
    },
    end: () => {
      changes.disconnect()
      sizes.disconnect()
      area?.removeEventListener("scroll", follow)
      editor.removeEventListener("input", paint)
      copy.remove()
    },
  }
}
