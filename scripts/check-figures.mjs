// How long ./check takes: `about KIND` says it from the last run here, or from the figures of two quiet cores that are committed;
// `keep KIND SECONDS` keeps the figure of this run. KIND: fast, all, or no-docker. Runs on any Node, before anything is installed.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'

const kept = new URL('../node_modules/.cache/paddock-check.json', import.meta.url)
const committed = { fast: 90, all: 370, 'no-docker': 420 }
const [what, kind, seconds] = process.argv.slice(2)

let own = {}
try {
  own = JSON.parse(readFileSync(kept, 'utf8'))
} catch {
  // There was no run here, or its cache is gone.
}
const worded = (took) => (took < 90 ? `${Math.max(1, Math.round(took))} s` : `${Math.round(took / 60)} minutes`)
if (what === 'keep') {
  mkdirSync(new URL('.', kept), { recursive: true })
  const at = new Date().toISOString().slice(0, 10)
  writeFileSync(kept, JSON.stringify({ ...own, [kind]: { seconds: Number(seconds), at } }))
} else {
  const last = own[kind]
  const known = typeof last?.seconds === 'number'
  console.log(
    known
      ? `about ${worded(last.seconds)} (as the last run here, ${last.at})`
      : `about ${worded(committed[kind])} on two quiet cores`,
  )
}
