// Tells where the rule stops being JSON while it is typed; the server reads it only when the editor
// is left, and finds the rest then.
const PLACE = /line (\d+) column (\d+)/
const UNPLACED = "is not valid JSON"

const fault = text => {
  try {
    JSON.parse(text)
    return ""
  } catch ({ message }) {
    return message
  }
}

// Of an unexpected token Chrome does not say where it stands: the shortest text with this fault ends
// with it.
function find(text) {
  let low = 0, high = text.length
  while (low + 1 < high) {
    const middle = (low + high) >> 1
    if (fault(text.slice(0, middle)).endsWith(UNPLACED)) high = middle
    else low = middle
  }
  const before = text.slice(0, high).split("\n")
  return [before.length, before.at(-1).length]
}

function problem(text) {
  const message = text.trim() && fault(text)
  if (!message) return ""
  const place = message.endsWith(UNPLACED) ? find(text) : message.match(PLACE)?.slice(1)
  return place ? `Not valid JSON yet: line ${place[0]}, column ${place[1]}.` : "Not valid JSON yet."
}

export default function ({ parentElement }) {
  const told = parentElement.querySelector("p")
  const within = target => target instanceof Element && target.closest(".st-key-rule-editor")
  const check = ({ target }) => { if (within(target)) told.textContent = problem(target.value) }
  const leave = ({ target }) => { if (within(target)) told.textContent = "" }
  document.addEventListener("input", check)
  document.addEventListener("focusout", leave)
  return () => {
    document.removeEventListener("input", check)
    document.removeEventListener("focusout", leave)
  }
}
