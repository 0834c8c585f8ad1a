// Scrolls to what was opened where it cannot be seen, once for each time it is opened.
let last = 0
export default ({ data: [selector, times] }) => {
  if (times === last) return
  last = times
  document.querySelector(selector)?.scrollIntoView({ block: "nearest" })
}
