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
ONE_BY_ONE = """
const listen = WebSocket.prototype.addEventListener
WebSocket.prototype.addEventListener = function (event, act, ...more) {
  if (event !== "message") return listen.call(this, event, act, ...more)
  let last = Promise.resolve()
  const later = message => {
    last = last.then(() => new Promise(done => setTimeout(done, 15))).then(() => act(message))
  }
  return listen.call(this, event, later, ...more)
}
"""
"""Draws each message of the server before the next one, as a busy machine does. An idle machine
draws those of one run at once, and may not show what is recreated between them."""
HELD = """
window.held = null
const listen = WebSocket.prototype.addEventListener
WebSocket.prototype.addEventListener = function (event, act, ...more) {
  if (event !== "message") return listen.call(this, event, act, ...more)
  return listen.call(this, event, message => {
    if (window.held) window.held.push(() => act(message))
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
"""Lets a test hold back the server's messages and draw them later at once, as on a machine that is too busy to draw."""
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
