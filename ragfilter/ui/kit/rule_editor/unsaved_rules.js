// Keeps a session's unsaved rules in the browser. It reads the stored drafts once per session
// before it changes them, because a restarted server has forgotten the last session. Tabs share
// the drafts, so each tab stores only its own changes.
const NAME = "ragfilter-drafts"
let asked, before

const byChunk = text => {
  try {
    const rows = JSON.parse(text || "[]")
    return Object.fromEntries(rows.map(row => [row.slice(0, 2), JSON.stringify(row)]))
  } catch {
    return {}
  }
}

export default ({ data, setTriggerValue }) => {
  const [session, drafts] = data
  const kept = localStorage.getItem(NAME)
  const stored = byChunk(kept)
  if (session !== asked) {
    asked = session
    before = { ...stored }
    if (kept) return setTriggerValue("found", kept)
  }
  const now = byChunk(drafts)
  for (const chunk in { ...before, ...now }) {
    if (now[chunk] === before[chunk]) continue
    if (chunk in now) stored[chunk] = now[chunk]
    else delete stored[chunk]
  }
  before = now
  const rows = Object.values(stored)
  if (rows.length) localStorage.setItem(NAME, `[${rows}]`)
  else localStorage.removeItem(NAME)
}
