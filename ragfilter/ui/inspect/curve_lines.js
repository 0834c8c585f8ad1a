// The curve's lines, moved by dragging or by keys, and its chunks, which keys step through.
// The server sends the number kept at each value as steps, which are only looked up here. All lie
// over the chart and match its size, which follows the window's height.
const set = (element, attributes) => {
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value)
  return element
}
const make = (name, attributes = {}) => set(document.createElementNS("http://www.w3.org/2000/svg", name), attributes)
const clamp = (value, low, high) => Math.min(Math.max(value, low), high)
const IDLE_MS = 250
const HELD = 40 // pixels of a line, from its handle

export default function ({ parentElement, data, setTriggerValue }) {
  const root = parentElement.querySelector(".rf-drag")
  const live = parentElement.querySelector("[aria-live]")
  if (live.textContent !== data.told) live.textContent = data.told
  root.curve ??= begin(root)
  root.curve.show(data, setTriggerValue)
}

function begin(root) {
  const svg = root.appendChild(make("svg"))
  const marks = svg.appendChild(make("g", { "aria-hidden": "true" }))
  const titles = svg.appendChild(make("g", { "aria-hidden": "true", "data-passage": "" }))
  const handles = new Map()
  let data, send, timer, drawn
  let width = 0, height = 0 // of the chart; asking the browser each time would cost a layout
  let walking = null // the chunk that keys have reached and that the server does not show yet
  let moving = null // { path, value, held }: the difference from the server's picture

  // Converts an axis value to pixels, and back. The figure has fixed margins and axes.
  const along = axis => {
    const { range: [from, to], domain: [low, high] } = data.axes[axis]
    const [left, top, right, bottom] = data.margin
    const [start, size] = axis === "x"
      ? [left, width - left - right]
      : [height - bottom, top + bottom - height]
    const begin = start + low * size, length = (high - low) * size
    return {
      pixel: value => begin + clamp((value - from) / (to - from), 0, 1) * length,
      value: pixel => from + ((pixel - begin) / length) * (to - from),
    }
  }
  const top = line => line.low + line.step * line.count
  const snap = (line, value) =>
    clamp(line.low + Math.round((value - line.low) / line.step) * line.step, line.low, top(line))
  const now = line => (moving?.path === line.path ? moving.value : line.value)
  const kept = (line, value) => line.kept_by_value.findLast(([from]) => from <= value + 1e-9)?.[1] ?? 0
  // Name the effect of the value.
  const made = line => line.axis === "y"
    ? `limit ${(line.base + line.per * now(line)).toFixed(3)}`
    : `${line.label} = ${now(line).toFixed(line.digits)}`
  const said = line => `${made(line)} keeps ${kept(line, now(line))}`

  const move = (line, value, held) => {
    moving = { path: line.path, value: snap(line, value), held }
    drawn ||= requestAnimationFrame(draw)
  }
  const settle = () => {
    clearTimeout(timer)
    timer = null
    if (!moving) return
    moving.held = false
    const line = data.lines.find(each => each.path === moving.path)
    if (line && Math.abs(moving.value - line.value) > 1e-9)
      send("moved", { path: line.path, value: Number(moving.value.toFixed(6)) })
    else moving = null
    draw()
  }
  const wait = () => {
    clearTimeout(timer)
    timer = setTimeout(settle, IDLE_MS)
  }

  function handle(path) {
    const group = svg.appendChild(make("g", { class: "rf-handle", tabindex: 0, role: "slider" }))
    group.append(make("title"), make("line", { class: "rf-hit" }), make("line"), make("circle", { r: 6 }), make("text"))
    const mine = () => data.lines.find(each => each.path === path)
    const at = event => {
      const line = mine(), box = svg.getBoundingClientRect()
      const pixel = line.axis === "x" ? event.clientX - box.left : event.clientY - box.top
      return (along(line.axis).value(pixel) - line.base) / line.per
    }
    group.onpointerdown = event => {
      if (event.button) return
      group.setPointerCapture(event.pointerId)
      move(mine(), now(mine()), true)
    }
    group.onpointermove = event => moving?.held && move(mine(), at(event), true)
    group.onpointerup = settle
    group.onpointercancel = () => { moving = null; draw() }
    group.onkeydown = event => {
      const line = mine()
      const by = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1, PageUp: 10, PageDown: -10 }
      const to = { Home: line.low, End: top(line) }
      if (event.key in by) move(line, now(line) + by[event.key] * line.step, true)
      else if (event.key in to) move(line, to[event.key], true)
      else return
      event.preventDefault()
      event.stopPropagation()
      wait()
    }
    group.onblur = () => timer && settle()
    return group
  }

  function draw() {
    drawn = null
    width = svg.clientWidth
    height = svg.clientHeight
    if (!data || !width) return
    const [left, , right, bottom] = data.margin
    for (const [path, group] of handles)
      if (!data.lines.some(line => line.path === path)) { group.remove(); handles.delete(path) }
    marks.replaceChildren()
    step()
    for (const line of data.lines) {
      if (!handles.has(line.path)) handles.set(line.path, handle(line.path))
      const group = handles.get(line.path), place = along(line.axis).pixel(line.base + line.per * now(line))
      const [title, hit, rule, grip, name] = group.children
      const ends = line.axis === "x"
        ? { x1: place, x2: place, y1: along("y").pixel(Infinity), y2: along("y").pixel(-Infinity) }
        : { x1: left, x2: width - right, y1: place, y2: place }
      set(rule, ends)
      // Only the line's end is a handle, so that the pointer reaches chunks under the line.
      set(hit, line.axis === "x" ? { ...ends, y2: ends.y1 + HELD } : { ...ends, x1: ends.x2 - HELD })
      set(grip, { cx: ends.x2, cy: line.axis === "x" ? ends.y1 : place })
      group.toggleAttribute("data-own", !line.drawn)
      name.textContent = line.drawn ? "" : made(line)
      const before = line.axis === "y" || place > width / 2
      set(name, { x: line.axis === "y" ? ends.x2 - 8 : place + (before ? -8 : 8), y: ends.y2 - 4,
        "text-anchor": before ? "end" : "start" })
      title.textContent = `${line.label}: drag, or use the arrow keys`
      group.dataset.axis = line.axis
      group.toggleAttribute("data-moving", moving?.path === line.path)
      set(group, { "aria-label": `${line.label}, line of the curve`, "aria-valuemin": line.low,
        "aria-valuemax": top(line), "aria-valuenow": now(line), "aria-valuetext": said(line),
        "aria-orientation": line.axis === "x" ? "horizontal" : "vertical" })
      if (moving?.path === line.path) mark(line, ends)
    }
    label()
    // The style sheet fades the server's drawing. (With :has(), each change of the chart would
    // search all of it.)
    root.closest(".st-key-curve-box").toggleAttribute("data-moving", moving !== null)
  }

  // Preview the result: which chunks stay, which fall, and how many.
  function mark(line, ends) {
    const n = kept(line, now(line)), { range: [from, to] } = data.axes.x
    for (const [i, [x, y]] of data.points.entries())
      if (i >= data.pinned && x >= from && x <= to)
        marks.append(make("circle", { class: i < n ? "rf-stays" : "rf-falls", r: data.size / 2,
          cx: along("x").pixel(x), cy: along("y").pixel(y) }))
    const cut = along("x").pixel(n + 0.5)
    marks.append(make("line", { class: "rf-cut", x1: cut, x2: cut,
      y1: along("y").pixel(Infinity), y2: along("y").pixel(-Infinity) }))
    const before = line.axis === "y" || ends.x1 > width / 2
    const text = make("text", { x: ends.x2 + (before ? -8 : 8), y: ends.y1 + (line.axis === "x" ? 14 : -7),
      "text-anchor": before ? "end" : "start" })
    text.textContent = said(line)
    marks.append(text)
  }

  // The lines, and the curve in short pieces, as boxes.
  function crossed() {
    const boxes = []
    if (data.cut !== null) boxes.push([0, along("y").pixel(data.cut), width, along("y").pixel(data.cut)])
    const places = [...data.lines.filter(({ axis }) => axis === "x").map(line => line.base + line.value), data.place]
    for (const at of places.filter(at => at !== null).map(along("x").pixel)) boxes.push([at, 0, at, height])
    const curve = data.points.slice(data.pinned).map(([x, y]) => [along("x").pixel(x), along("y").pixel(y)])
    for (const [n, [x, y]] of curve.slice(1).entries()) {
      const [dx, dy] = [curve[n][0] - x, curve[n][1] - y], pieces = Math.ceil(Math.hypot(dx, dy) / 8)
      for (let i = 1; i < pieces; i++) {
        const at = [x + (dx * i) / pieces, y + (dy * i) / pieces]
        boxes.push([...at, ...at])
      }
    }
    return boxes
  }

  // The titles of kept chunks, and labels, where points, lines and other words leave room; without room, only the
  // label's sign. Write all, then measure all, then place all: alternating costs a layout each time.
  function label() {
    const { range: [from, to] } = data.axes.x, line = 16
    const seen = data.chunks.filter(([x]) => x >= from && x <= to)
      .map(([x, y, title, stays, grade]) =>
        [along("x").pixel(x), along("y").pixel(y), stays && !moving ? title : "", grade])
    const notes = root.closest(".st-key-curve-box").querySelectorAll(".annotation-text")
    const written = seen.map(([x, y, title, grade]) => [x, y,
      [title && `${title} ${grade}`.trim(), grade, grade.split(" ")[0]].map(words => {
        const text = words && make("text")
        if (text) text.textContent = words
        return text
      })])
    titles.replaceChildren(...written.flatMap(([, , texts]) => texts.filter(Boolean)))
    const own = svg.getBoundingClientRect()
    const box = at => [at.left - own.left, at.top - own.top, at.right - own.left, at.bottom - own.top]
    const taken = [...notes].map(each => box(each.getBoundingClientRect()))
    // The name of an upright line is at its lower end or, without room, near its upper end.
    for (const name of svg.querySelectorAll(".rf-handle > text:not(:empty)")) {
      const upright = name.parentElement.dataset.axis === "x", [a, b, c, d] = box(name.getBoundingClientRect())
      const covers = taken.some(([left, top, right, bottom]) => left < c && a < right && top < d && b < bottom)
      if (upright && covers) set(name, { y: along("y").pixel(Infinity) + 22 })
      taken.push(box(name.getBoundingClientRect()))
    }
    taken.push(...seen.map(([x, y]) => [x - 6, y - 6, x + 6, y + 6]), ...crossed())
    const lengths = new Map([...titles.children].map(text => [text, text.getComputedTextLength()]))
    const put = (text, x, y, below) => {
      const long = lengths.get(text)
      const free = ([left, y]) => left > 0 && left + long < width && taken.every(([a, b, c, d]) =>
        c < left || a > left + long || d < y - line / 2 || b > y + line / 2)
      const at = [[x + 10, y], [x - 10 - long, y], ...below].find(free) ?? below[0]
      if (!at) return
      set(text, { x: at[0], y: at[1] + 4 })
      return taken.push([at[0], at[1] - line / 2, at[0] + long, at[1] + line / 2])
    }
    for (const [x, y, [title, grade, sign]] of written) {
      const below = [[x - 5, y + 16], [x - 5, y - 16]]
      const fits = [[title, []], [grade, []], [sign, below]].find(([text, at]) => text && put(text, x, y, at))?.[0]
      for (const text of [title, grade, sign]) if (text && text !== fits) text.remove()
    }
  }

  // Left and right open the chunk before or after on the curve.
  const walk = svg.insertBefore(make("g", { class: "rf-walk", tabindex: 0, role: "slider",
    "aria-label": "Chunks along the curve", "aria-valuemin": 1 }), marks)
  walk.append(make("circle", { r: 10 }))
  walk.onkeydown = event => {
    const last = data.chunks.length - 1
    const to = { ArrowRight: walked() + 1, ArrowLeft: walked() - 1, Home: 0, End: last }[event.key]
    if (to === undefined) return
    event.preventDefault()
    event.stopPropagation()
    walking = clamp(to, 0, last)
    draw()
    clearTimeout(timer)
    timer = setTimeout(() => { timer = null; send("walked", walking) }, IDLE_MS)
  }
  const walked = () => walking ?? data.open
  function step() {
    const here = data.chunks[Math.max(walked(), 0)]
    walk.style.display = here ? "" : "none"
    if (!here) return
    const [x, y, title, , , labelled] = here, { range: [from, to] } = data.axes.x
    set(walk.firstChild, { visibility: x < from || x > to ? "hidden" : "visible",
      cx: along("x").pixel(x), cy: along("y").pixel(y) })
    set(walk, { "aria-valuemax": data.chunks.length, "aria-valuenow": walked() + 1,
      "aria-valuetext": walked() < 0 ? "none open" : title + labelled })
  }

  new ResizeObserver(draw).observe(svg)
  // Plotly draws later, and its words must stay readable.
  const later = changes => drawn ||= changes.some(({ target }) => !root.contains(target)) && requestAnimationFrame(draw)
  new MutationObserver(later).observe(root.closest(".st-key-curve-box"), { childList: true, subtree: true })
  return {
    show(given, trigger) {
      data = given
      send = trigger
      // A result for an earlier value does not interrupt dragging.
      if (!moving?.held) moving = null
      if (!timer) walking = null
      draw()
    },
  }
}
