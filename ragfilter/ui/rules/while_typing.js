// Sends the rule in the editor to the server whenever typing pauses. The text area itself sends it
// only when it is left, and then only if it has changed.
const PAUSE_MS = 150
let begun, waiting

export default function ({ setTriggerValue }) {
  const handle = act => ({ target }) => {
    if (target instanceof Element && target.closest(".st-key-rule-editor")) act(target.value)
  }
  const send = text => setTriggerValue("text", text)
  const handlers = {
    focusin: handle(text => { begun = text }),
    input: handle(text => {
      clearTimeout(waiting)
      waiting = setTimeout(send, PAUSE_MS, text)
    }),
    focusout: handle(text => {
      clearTimeout(waiting)
      if (text === begun) send(text)
    }),
  }
  // Alt with an arrow opens another chunk in the same text area. Left for a moment, that sends what
  // was typed for the chunk that it was typed for.
  const leave = ({ altKey, key, target }) => {
    const arrow = altKey && (key === "ArrowUp" || key === "ArrowDown")
    if (!arrow || !(target instanceof Element && target.closest(".st-key-rule-editor"))) return
    target.blur()
    target.focus()
  }
  document.addEventListener("keydown", leave, true)
  for (const [event, handler] of Object.entries(handlers)) document.addEventListener(event, handler)
  return () => {
    document.removeEventListener("keydown", leave, true)
    for (const [event, handler] of Object.entries(handlers)) document.removeEventListener(event, handler)
  }
}
