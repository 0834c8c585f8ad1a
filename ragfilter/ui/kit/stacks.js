// Opens a clicked entry of a stack. Each stack is one stop of the Tab key; arrows move within it.
const LIST = ".rf-stack [role=listbox]"
let send

const choose = entry => {
  for (const each of document.querySelectorAll(`${LIST} [aria-selected=true]`)) each.ariaSelected = "false"
  entry.ariaSelected = "true"
  entry.id ||= `rf-entry-${Math.random().toString(36).slice(2)}`
  entry.closest(LIST).setAttribute("aria-activedescendant", entry.id)
}
const open = entry => send("opened", entry.dataset.id)
const click = ({ target }) => {
  const entry = target.closest(`${LIST} [role=option]`)
  if (!entry) return
  choose(entry)
  open(entry)
}
const key = event => {
  const list = event.target.closest?.(LIST)
  if (!list) return
  const entries = [...list.querySelectorAll("[role=option]")]
  const now = entries.findIndex(entry => entry.ariaSelected === "true")
  const to = { ArrowDown: now + 1, ArrowUp: Math.max(now - 1, 0), Home: 0, End: entries.length - 1 }[event.key]
  if (to !== undefined) choose(entries[Math.min(to, entries.length - 1)])
  else if (now >= 0 && [" ", "Enter"].includes(event.key)) open(entries[now])
  else return
  event.preventDefault()
  event.stopPropagation()
}
export default ({ setTriggerValue }) => {
  send = setTriggerValue
  document.addEventListener("click", click)
  document.addEventListener("keydown", key, true)
  return () => {
    document.removeEventListener("click", click)
    document.removeEventListener("keydown", key, true)
  }
}
