// Browsers allow writing to the clipboard only on a click and, with the modern API, only over
// HTTPS. The check mark stays while the copied link is current.
const write = async text => {
  if (navigator.clipboard) return navigator.clipboard.writeText(text)
  const put = event => {
    event.clipboardData.setData("text/plain", text)
    event.preventDefault()
  }
  document.addEventListener("copy", put)
  const copied = document.execCommand("copy")
  document.removeEventListener("copy", put)
  if (!copied) throw new Error("The browser did not copy.")
}
export default ({ parentElement, data }) => {
  const button = parentElement.querySelector("button")
  const say = (icon, aloud) => {
    button.firstChild.textContent = icon
    parentElement.querySelector("[role=status]").textContent = aloud
  }
  button.onclick = async () => {
    const link = `${location.origin}${location.pathname}?${data}`
    await write(link).then(
      () => say("check", "Link copied"), () => say("error", "Link not copied"))
  }
  say("link", "")
}
