// Colours the JSON in the rule editor: a coloured copy lies over the text area, whose own letters
// are not painted. Typing, caret, undo and what is read aloud stay the text area's.
const MOST = 20_000
const KINDS = ["key", "text", "value", "mark", "bad"]
const TOKENS = /("(?:[^"\\\n]|\\.)*"(?=\s*:))|("(?:[^"\\\n]|\\.)*")|((?:-?\d[\d.eE+-]*|true|false|null)\b)|([{}[\],:])|("[^\n]*|[^\s{}[\],:"]+)|\s+/g

function* parts(text) {
  for (const [part, ...found] of text.matchAll(TOKENS)) {
    const kind = KINDS[found.findIndex(Boolean)]
    if (!kind) { yield part; continue }
    const span = document.createElement("span")
    span.className = `rf-json-${kind}`
    span.textContent = part
    yield span
  }
}

export default function ({ parentElement }) {
  const editor = parentElement.closest(".stVerticalBlock")
  const copy = document.createElement("div")
  copy.className = "rf-painted"
  copy.setAttribute("aria-hidden", "true")
  let area, painted
  const follow = () => {
    Object.assign(copy.style, { width: `${area.clientWidth}px`, height: `${area.clientHeight}px` })
    copy.scrollTop = area.scrollTop
  }
  const sizes = new ResizeObserver(follow)
  const paint = () => {
    const found = editor.querySelector(".st-key-rule-editor textarea")
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
    // A last line break alone would make no line.
    copy.replaceChildren(...parts(painted), "\n")
    follow()
  }
  // What the server puts into the text area makes no event, but another default.
  const changes = new MutationObserver(paint)
  changes.observe(editor, { childList: true, subtree: true, characterData: true })
  editor.addEventListener("input", paint)
  paint()
  return () => {
    changes.disconnect()
    sizes.disconnect()
    area?.removeEventListener("scroll", follow)
    editor.removeEventListener("input", paint)
    copy.remove()
  }
}
