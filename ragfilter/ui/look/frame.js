// Called only when the theme or `data` changes. So if the two never agree, it asks for one run,
// not for endless ones. In a narrow window the sidebar covers the page, so it closes when a page
// is chosen in it.
const close = ({ target }) => {
  if (innerWidth < 768 && target.closest(".stSidebar a")) {
    document.querySelector("[aria-label='Collapse sidebar']")?.click()
  }
}
// In a field, Ctrl+Z undoes typing. Streamlit's shortcut would undo a setting.
const typing = "textarea, input[type=text]:not([role=combobox])"
const keep = event => {
  const undoes = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z"
  if (undoes && event.target.closest?.(typing)) event.stopImmediatePropagation()
}
// A list without typing keeps focus after a choice. The next letter or arrow is meant for the
// page, but Streamlit ignores shortcuts in a field.
const closed = "[role=combobox][inputmode=none][aria-expanded=false]"
const pass = event => {
  const held = event.ctrlKey || event.metaKey || event.altKey
  if (held || !/^([a-z]|Arrow(Left|Right))$/i.test(event.key)) return
  if (!event.target.matches?.(closed)) return
  event.stopImmediatePropagation()
  document.body.dispatchEvent(new KeyboardEvent("keydown", event))
}
// Streamlit adds a history step for each change of the address, so Back would undo one setting
// after another before it reached the previous question. A page that was just opened may lack
// parameters, and gets them in a second change.
const stepOf = url => {
  const { pathname, searchParams } = new URL(url, location)
  return [pathname, ...["q", "present", "collection"].map(name => searchParams.get(name))].join(" ")
}
const push = history.pushState
history.pushState = (state, title, url) => {
  const { pathname, searchParams } = new URL(location)
  const opened = !searchParams.has("collection") && new URL(url, location).pathname === pathname
  const change = opened || stepOf(url) === stepOf(location) ? history.replaceState : push
  change.call(history, state, title, url)
}
export default ({ data, parentElement, setTriggerValue }) => {
  document.addEventListener("click", close)
  document.addEventListener("keydown", keep, true)
  document.addEventListener("keydown", pass, true)
  if (getComputedStyle(parentElement).colorScheme !== data) setTriggerValue("switched", true)
}
