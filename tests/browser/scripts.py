"""Scripts that the tests run in the page."""

from __future__ import annotations

STILL = """index => {
  const chart = document.querySelector(".st-key-curve .nsewdrag")?.getBoundingClientRect()
  if (!chart) return false
  const seen = [...document.querySelectorAll(".st-key-curve path.point")].map(point => {
    const box = point.getBoundingClientRect()
    return [box.x + box.width / 2, box.y + box.height / 2]
  }).filter(([x, y]) =>
    chart.left < x && x < chart.right && chart.top < y && y < chart.bottom)
  const before = window.seenPoints
  window.seenPoints = JSON.stringify(seen)
  return before === window.seenPoints && seen[index]
}"""
"""Where the curve's point is, among those in view, once none of them moves any more."""
WIRE = """
window.wire = { sent: 0, got: 0 }
const send = WebSocket.prototype.send
WebSocket.prototype.send = function (message) {
  if (!this.heard) {
    this.heard = true
    this.addEventListener("message", () => { window.wire.got = performance.now() })
  }
  window.wire.sent = performance.now()
  return send.call(this, message)
}
"""
"""Remembers when the page last spoke to the server, and when the server last spoke to it."""
BUSY = """
window.held = null
window.slow = false
const listen = WebSocket.prototype.addEventListener
WebSocket.prototype.addEventListener = function (event, act, ...more) {
  if (event !== "message") return listen.call(this, event, act, ...more)
  let last = Promise.resolve()
  return listen.call(this, event, message => {
    if (window.held) window.held.push(() => act(message))
    else if (window.slow)
      last = last.then(() => new Promise(done => setTimeout(done, 15))).then(() => act(message))
    else act(message)
  }, ...more)
}
window.hold = () => { window.held = [] }
window.release = () => {
  const late = window.held
  window.held = null
  late.forEach(act => act())
}
"""
"""Lets a test make the browser busy. Where `slow` is true, each message of the server is drawn before the next one; an
idle machine draws those of one run at once, and may not show what is recreated between them. Between `hold` and
`release`, nothing is drawn."""
AT_REST = """async () => {
  // A window that is behind another one may not become idle for minutes.
  const idle = () => new Promise(done => requestIdleCallback(done, { timeout: 1000 }))
  const quiet = () => window.wire.got >= window.wire.sent
    && document.querySelector(".stApp")?.dataset.testScriptState === "notRunning"
  await idle()
  if (!quiet()) return false
  // What a run left out goes a moment after the run has ended.
  await new Promise(done => setTimeout(done, 60))
  await idle()
  return quiet()
}"""
"""Whether the server has answered the page's last message, and the browser has drawn the answer."""
