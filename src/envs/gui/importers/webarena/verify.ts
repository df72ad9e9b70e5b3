import { z } from 'zod'
import {
  type ArtifactItem,
  type DraftFacts,
  gui,
  packArtifact,
  PaddockError,
  scored,
  sha256,
  type TaskOf,
  type VerdictDraft,
  type VerifyContext,
} from '../../../../kits/environment.ts'
import type { WebarenaData } from './data.ts'
import { wordsOf } from './words.ts'

const seenPath = '/paddock/webarena.json'
const seenSchema = z.object({ url: z.string(), contents: z.array(z.string()) })

/** What was seen of the sites after the attempt: where it ended, and the text of each target. */
export type Seen = z.infer<typeof seenSchema>

/** What was seen as an artifact, for the verifier and for a later one. */
export function seenArtifact(seen: Seen): ArtifactItem {
  const data = Buffer.from(JSON.stringify(seen))
  const entries = [{ type: 'file' as const, path: 'webarena.json', mode: 0o444, data }]
  return { path: seenPath, content: { found: true, entries, refused: [], cutShort: false, totalBytes: data.length } }
}

/**
 * Scores as evaluation_harness/evaluators.py of web-arena-x/webarena at f62e0b9 does: the product of what the answer, the
 * address and the pages' contents come to. Likeness of answers is a judge's, whose faults are no reward.
 */
export async function verifyWebarena({
  task,
  artifacts,
  signal,
}: Omit<VerifyContext, 'task'> & { readonly task: TaskOf<WebarenaData> }): Promise<VerdictDraft> {
  signal.throwIfAborted()
  const record = gui.fromArtifacts(artifacts)
  const seen = seenIn(artifacts)
  const { answers, urls, targets } = task.data
  // Who says that it cannot be done has given the answer for that (BrowserGym takes `report_infeasible` so, too).
  const given = record.answer ?? (record.ended === 'failed' ? 'N/A' : '')
  const components: Record<string, number> = {}
  if (answers !== null) components['string_match'] = await answerScore(given, task, signal)
  if (urls !== null) components['url_match'] = urlScore(seen.url, urls)
  if (targets.length > 0) {
    components['program_html'] = Number(
      targets.every(({ required_contents: wanted }, at) => holds(wanted, unescaped(seen.contents[at] ?? ''))),
    )
  }
  const packed = await Promise.all(artifacts.items.map(packArtifact))
  const facts: DraftFacts = {
    verifier: {
      id: `gui/webarena/${task.data.id}`,
      version: gui.verifierVersion,
      sha256: sha256(JSON.stringify({ answers, urls, targets })),
    },
    trust: 'host',
    components,
    evidence: [
      `the attempt was ${record.ended ?? 'not ended'} after ${record.actions} actions, at ${seen.url}`,
      `answered: ${JSON.stringify(record.answer)}`,
    ].join('\n'),
    artifacts: packed.map(({ path, sha256: digest, sizeBytes }) => ({ path, sha256: digest, sizeBytes })),
  }
  return scored(
    Object.values(components).reduce((product, score) => product * score, 1),
    facts,
  )
}

/** Exported for the tests: the answer without quotes around it, in lower case. */
export function cleanAnswer(answer: string): string {
  const text = answer.trim()
  const [, single, double] = /^'([\s\S]*)'$|^"([\s\S]*)"$/.exec(text) ?? []
  return (single ?? double ?? text).toLowerCase()
}

/** Whether the answer holds the reference; a single sign must be a word as nltk cuts them where it is the only reference. */
function includes(reference: string, answer: string, alone: boolean): boolean {
  const [part, whole] = [cleanAnswer(reference), cleanAnswer(answer)]
  return alone && part.length === 1 ? wordsOf(whole).includes(part) : whole.includes(part)
}

async function answerScore(given: string, task: TaskOf<WebarenaData>, signal: AbortSignal): Promise<number> {
  const { answers, judge, note, id } = task.data
  const { exact_match: exact, must_include: parts, fuzzy_match: like } = answers ?? {}
  const judged = async (func: string, reference: string) => {
    if (judge === null) throw new PaddockError('VERIFIER_FAILED', `${func} has nobody to judge it`)
    const expected = { kind: 'value', value: { reference, intent: task.instruction } } as const
    const asked = { id, func, options: {}, result: { kind: 'value', value: given } as const, expected }
    return gui.measureElsewhere(judge, asked, { source: task.source, signal })
  }
  let score = 1
  if (exact !== undefined && cleanAnswer(exact) !== cleanAnswer(given)) score = 0
  if (parts !== undefined && !parts.every((part) => includes(part, given, parts.length === 1))) score = 0
  if (score === 0 || like === undefined) return score
  // Nothing is like an answer that was not given: no judge is asked.
  if (given.trim() === '') return 0
  if (like === 'N/A') return cleanAnswer(given) === 'n/a' ? score : score * (await judged('ua_match', note))
  for (const reference of like) score *= await judged('fuzzy_match', reference)
  return score
}

/** Exported for the tests: host and path of a reference must be a part of where the attempt ended, with its queries. */
export function urlScore(url: string, references: readonly string[]): number {
  const parse = (text: string) => {
    const [, base = '', query = ''] =
      /^(?:[a-z][a-z0-9+.-]*:\/\/)?([^?#]*)(?:\?([^#]*))?/i.exec(text.replace(/\/+$/, '')) ?? []
    return { base, query: new URLSearchParams(query) }
  }
  const [there, wanted] = [parse(url), references.map(parse)]
  const keys = new Set(wanted.flatMap(({ query }) => [...query.keys()]))
  const queries = [...keys].every((key) => {
    const possible = wanted.flatMap(({ query }) => query.getAll(key)).filter((value) => value !== '')
    return possible.length === 0 || possible.some((value) => there.query.getAll(key).includes(value))
  })
  return Number(wanted.some(({ base }) => there.base.includes(base)) && queries)
}

function holds(wanted: WebarenaData['targets'][number]['required_contents'], content: string): boolean {
  if ('exact_match' in wanted) return cleanAnswer(String(wanted.exact_match)) === cleanAnswer(content)
  const parts = Array.isArray(wanted.must_include) ? wanted.must_include : []
  return parts.every((part) =>
    String(part)
      .split(' |OR| ')
      .some((one) => includes(one, content, false)),
  )
}

const named: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0' }

/** Character references as they stand in markup: numbers, and the names that HTML serialisers write. */
function unescaped(text: string): string {
  return text.replaceAll(
    /&(?:#(\d+)|#x([0-9a-f]+)|(\w+));/gi,
    (whole, decimal?: string, hex?: string, name?: string) => {
      if (name !== undefined) return named[name] ?? whole
      const point = decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal)
      return point <= 0x10_ffff ? String.fromCodePoint(point) : whole
    },
  )
}

function seenIn(artifacts: VerifyContext['artifacts']): Seen {
  const entry = artifacts.items
    .find(({ path }) => path === seenPath)
    ?.content.entries.find(({ type }) => type === 'file')
  if (entry?.type !== 'file') throw new PaddockError('VERIFIER_FAILED', 'What was seen of the sites is missing')
  return seenSchema.parse(JSON.parse(Buffer.from(entry.data).toString('utf8')))
}
