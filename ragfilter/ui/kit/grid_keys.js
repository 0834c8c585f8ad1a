// Skipped if the user has clicked elsewhere before the server selected the cell.
let last, within
addEventListener("pointerdown", ({ target }) => {
  within = target instanceof Element && target.closest(".st-key-table")
}, true)
// A table that has no selection yet would select its first row when it gets the focus. Not if
// the user has clicked elsewhere in the meantime.
const focusOnceSelected = (table, tries) => {
  if (!tries || !table || table !== within) return
  if (table.querySelector("[aria-selected='true']")) {
    table.querySelector("canvas")?.focus({ preventScroll: true })
  } else setTimeout(focusOnceSelected, 50, table, tries - 1)
}
// The table would take Alt and an arrow for itself, and no shortcut of the page would see them.
addEventListener("keydown", event => {
  if (!event.altKey || !/^Arrow(Up|Down)$/.test(event.key)) return
  if (!(event.target instanceof Element && event.target.closest(".st-key-table"))) return
  event.stopImmediatePropagation()
  event.preventDefault()
  document.body.dispatchEvent(new KeyboardEvent("keydown", event))
}, true)
export default ({ data }) => {
  if (data !== last) focusOnceSelected(within, 200)
  last = data
}
