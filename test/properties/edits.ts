/** Generated conversations in which the harness changes one message that it has sent before. */
import fc from 'fast-check'
import { expect } from 'vitest'
import type { Judged, Lab } from '../lab/lab.ts'
import type { DialectName, Json, Speaker } from '../lab/speaker.ts'
import { freshName } from './converse.ts'

/**
 * What a harness does to a message of its history:
 * - `words`: the text of an answer is another;
 * - `command`: the command of an answer is another (a harness that strips `cd <cwd> &&`);
 * - `trim`: the blanks at the edges of an answer's text are lost;
 * - `result`: the result of a tool is another;
 * - `drop`: an answer and its result are gone.
 */
export const edits = ['words', 'command', 'trim', 'result', 'drop'] as const
type Edit = (typeof edits)[number]

/** One conversation with one edit. */
export interface EditedConversation {
  readonly edit: Edit
  readonly stream: boolean
  readonly thinks: boolean
  readonly turns: number
  /** Which answer is changed, from 0. */
  readonly target: number
  /** Behind how many further answers that happens. */
  readonly later: number
}

export const editedConversations: fc.Arbitrary<EditedConversation> = fc
  .record({
    edit: fc.constantFrom<Edit>(...edits),
    stream: fc.boolean(),
    thinks: fc.boolean(),
    turns: fc.integer({ min: 3, max: 6 }),
    target: fc.nat({ max: 5 }),
    later: fc.nat({ max: 3 }),
  })
  .map((one) => {
    const target = one.target % (one.turns - 1)
    // The newest result was never sent, and without the newest answer the request is an earlier one, asked again.
    const least = one.edit === 'drop' || one.edit === 'result' ? 1 : 0
    return { ...one, target, later: Math.max(least, Math.min(one.later, one.turns - 2 - target)) }
  })

/** Where in the history an answer and the results behind it stand. */
interface Turn {
  readonly start: number
  readonly resultsAt: number
  readonly end: number
}

/** Holds the conversation in a dialect, and another instruction behind it, and judges the rollout. */
export async function converseEdited(lab: Lab, dialect: DialectName, given: EditedConversation): Promise<Judged> {
  const name = freshName()
  const steps = Array.from({ length: given.turns }, (_, turn) => [
    ...(given.thinks ? [{ think: `Turn ${turn}: I look.` }] : []),
    { say: `Now number ${turn}.\n` },
    { shell: `cd /work && ls -la "${turn} a"` },
  ]).flat()
  await lab.script(`${name} tidy the house.`, [...steps, { say: 'It is tidy.' }])
  await lab.script(`${name} now the cellar.`, [{ think: 'Down.' }, { shell: 'cd cellar' }, { say: 'Dark, but tidy.' }])
  const rollout = await lab.rollout({ strategy: 'splice', history: 'sampled' })
  const speaker = rollout.speaker(dialect)
  const turns: Turn[] = []
  let changed = false
  for (const instruction of [`${name} tidy the house.`, `${name} now the cellar.`]) {
    speaker.user(instruction)
    for (let turn = 0; turn < 12; turn += 1) {
      if (!changed && turns.length === given.target + given.later + 1) {
        change(speaker, turns[given.target], given.edit)
        changed = true
      }
      const said = await rollout.ask(speaker, { stream: given.stream })
      const start = speaker.history.length
      speaker.take(said, 'given')
      if (said.calls.length === 0) break
      const resultsAt = speaker.history.length
      speaker.results(
        said,
        said.calls.map(() => `done ${turn}`),
      )
      turns.push({ start, resultsAt, end: speaker.history.length })
    }
  }
  return rollout.judge()
}

/** Everything that must be true of it. */
export function holdsEdited(given: EditedConversation, { report, manifest, log, forks, findings }: Judged): void {
  expect(report.deviations).toEqual([])
  expect(findings).toEqual([])
  // The ids of its calls name the answer: lost blanks are no edit.
  const wanted = given.edit === 'trim' ? [] : [given.edit === 'drop' ? 'compaction' : 'harness_rewrite']
  expect(forks).toEqual(wanted)
  expect(report.rows).toBe(1 + wanted.length)
  expect([manifest.tokens.trainable, manifest.tokens.masked, manifest.tokens.not_exported]).toEqual([
    report.sampledTokens,
    {},
    {},
  ])
  // Every call behind the edit goes on from the answer before it.
  const origins = new Map(log.segments.map((segment) => [segment.id, segment]))
  const edited = log.calls.findIndex((call) => (call.commit?.forks.length ?? 0) > 0)
  for (const [at, { commit }] of log.calls.entries()) {
    if (at === 0 || at === edited) continue
    const before = log.calls[at - 1]?.commit?.choices[0]?.segmentId
    expect(origins.get(commit?.promptLeaf ?? '')?.parent?.segmentId).toBe(before)
  }
}

function change({ history }: Speaker, turn: Turn | undefined, edit: Edit): void {
  if (turn === undefined) throw new Error('there is no such turn')
  const { start, resultsAt, end } = turn
  if (edit === 'drop') {
    history.splice(start, end - start)
    return
  }
  const items = edit === 'result' ? [resultsAt, end] : [start, resultsAt]
  let changes = 0
  for (let at = items[0] ?? 0; at < (items[1] ?? 0); at += 1) {
    history[at] = rewrite(history[at], (key, text) => {
      const now = rewritten(edit, key, text)
      if (now !== text) changes += 1
      return now
    })
  }
  expect(changes).toBe(1)
}

/** What an edit makes of a string, by the words that only these conversations have. */
function rewritten(edit: Edit, key: string, text: string): string {
  if (key === 'thinking' || key === 'encrypted_content' || key === 'signature' || key === 'thoughtSignature')
    return text
  switch (edit) {
    case 'words':
      return text.replace(/^Now number/, 'And now number')
    case 'trim':
      return text.startsWith('Now number') ? text.trim() : text
    case 'command':
      return text.replace('cd /work && ', '')
    case 'result':
      return text.replace(/^done/, 'well done')
    case 'drop':
      return text
  }
}

/** A JSON value with every string passed through `of`. */
function rewrite(value: Json, of: (key: string, text: string) => string, key = ''): Json {
  if (typeof value === 'string') return of(key, value)
  if (Array.isArray(value)) return value.map((one) => rewrite(one, of, key))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, rewrite(one, of, name)]))
}
