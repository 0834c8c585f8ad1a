// Scrolls to a part that was opened out of view, once each time it is opened.
let last = 0
export default ({ data: [selector, times] }) => {
  if (times === last) return
  last = times
  document.querySelector(selector)?.scrollIntoView({ block: "nearest" })
}
