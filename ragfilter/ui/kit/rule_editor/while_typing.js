// Sends the rule in the editor to the server whenever typing pauses. The text area itself sends it
// only when it loses focus, and only if it has changed.
const PAUSE_MS = 150
const EDITOR = "[class*='st-key-rule-editor']"
let begun, waiting

// Focus moves from a replaced text area to the new one, unless the user has moved it.
const follow = (old, tries) => {
  const area = document.querySelector(`${EDITOR} textarea`)
  if (![document.body, old].includes(document.activeElement)) return
  if (area && area !== old) area.focus()
  else if (tries) setTimeout(follow, 50, old, tries - 1)
}

export default function ({ data, setTriggerValue }) {
  const handle = act => ({ target }) => {
    if (target instanceof Element && target.closest(EDITOR)) act(target.value)
  }
  const send = text => setTriggerValue("typed", [data, text])
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
  // Alt with an arrow opens another chunk. Blurred for a moment, the text area sends its text
  // for the chunk it belongs to.
  const leave = ({ altKey, key, target }) => {
    const arrow = altKey && (key === "ArrowUp" || key === "ArrowDown")
    if (!arrow || !(target instanceof Element && target.closest(EDITOR))) return
    target.blur()
    target.focus()
    // It loses focus again when the other chunk's text area replaces it.
    begun = null
    follow(target, 100)
  }
  document.addEventListener("keydown", leave, true)
  for (const [event, handler] of Object.entries(handlers)) document.addEventListener(event, handler)
  return () => {
    document.removeEventListener("keydown", leave, true)
    for (const [event, handler] of Object.entries(handlers)) document.removeEventListener(event, handler)
  }
}
