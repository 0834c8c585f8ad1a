// Once per stop, because a redrawn element does not scroll.
let last
export default ({ data }) => {
  const part = document.querySelector(data)
  if (data === last || !part) return
  last = data
  part.scrollIntoView({ block: "center" })
}
