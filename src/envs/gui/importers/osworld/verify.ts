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
  unscored,
  type VerdictDraft,
  type VerifyContext,
} from '../../../../kits/environment.ts'
import type { Measure, OsworldData } from './data.ts'
import { type Found, metrics, NotComparable } from './metrics/index.ts'

const foundPath = '/paddock/osworld.json'
const file = z.object({ kind: z.literal('file'), name: z.string(), data: z.base64() })
const kept = z.union([
  z.null(),
  z.object({ kind: z.literal('value'), value: z.unknown() }),
  file,
  z.object({ kind: z.literal('files'), files: z.array(file.nullable()) }),
])
const keptAll = z.array(z.object({ result: kept, expected: kept }))

/** What the getters of one metric found. */
export interface FoundPair {
  readonly result: Found
  readonly expected: Found
}

/** What was found as an artifact, for the verifier and for a later one. */
export function foundArtifact(pairs: readonly FoundPair[]): ArtifactItem {
  const keep = (found: Found): z.infer<typeof kept> => {
    if (found === null || found.kind === 'value') return found
    const one = (each: Extract<Found, { kind: 'file' }>) => ({ ...each, data: each.data.toString('base64') })
    if (found.kind === 'file') return one(found)
    return { kind: 'files', files: found.files.map((each) => (each === null ? null : one(each))) }
  }
  const data = Buffer.from(
    JSON.stringify(pairs.map(({ result, expected }) => ({ result: keep(result), expected: keep(expected) }))),
  )
  return {
    path: foundPath,
    content: {
      found: true,
      entries: [{ type: 'file', path: 'osworld.json', mode: 0o444, data }],
      refused: [],
      cutShort: false,
      totalBytes: data.length,
    },
  }
}

/**
 * Scores as `evaluate` of desktop_env/desktop_env.py does: one metric by itself; several by `conj`, where `and` is 0 at the
 * first 0 and else their mean, `or` the best; a task that cannot be done by whether the agent said so. What a metric cannot
 * compare gives no number, and a getter's result of before is never used for the next, as happens there.
 */
export async function verifyOsworld({
  task,
  artifacts,
  signal,
}: Omit<VerifyContext, 'task'> & { readonly task: TaskOf<OsworldData> }): Promise<VerdictDraft> {
  signal.throwIfAborted()
  const record = gui.fromArtifacts(artifacts)
  const { measures, conj } = task.data
  const gaveUp = record.ended === 'failed'
  const components: Record<string, number> = { not_given_up: gaveUp ? 0 : 1 }
  const why = [`the attempt was ${record.ended ?? 'not ended'} after ${record.actions} actions`]
  const packed = await Promise.all(artifacts.items.map(packArtifact))
  const facts = (): DraftFacts => ({
    verifier: {
      id: `gui/osworld/${task.data.id}`,
      version: gui.verifierVersion,
      sha256: sha256(JSON.stringify({ measures, conj })),
    },
    trust: 'shared',
    components,
    evidence: why.join('\n'),
    artifacts: packed.map(({ path, sha256: digest, sizeBytes }) => ({ path, sha256: digest, sizeBytes })),
  })
  if (measures.length === 0) {
    components['infeasible'] = gaveUp ? 1 : 0
    return scored(gaveUp ? 1 : 0, facts())
  }
  const pairs = foundIn(artifacts)
  const scores: number[] = []
  for (const [at, measure] of measures.entries()) {
    const pair = pairs[at] ?? { result: null, expected: null }
    try {
      const score = await scoreOf(measure, pair, task, signal)
      if (!Number.isFinite(score)) throw new NotComparable(`${score} is no score`)
      components[measures.length === 1 ? measure.func : `${at + 1}. ${measure.func}`] = score
      scores.push(Math.min(1, Math.max(0, score)))
    } catch (error) {
      if (error instanceof NotComparable) return unscored('unscorable', `${measure.func}: ${error.message}`, facts())
      throw error
    }
  }
  if (gaveUp) return scored(0, facts())
  const mean = scores.reduce((sum, score) => sum + score, 0) / scores.length
  return scored(conj === 'or' ? Math.max(...scores) : scores.includes(0) ? 0 : mean, facts())
}

async function scoreOf(
  measure: Measure,
  pair: FoundPair,
  task: TaskOf<OsworldData>,
  signal: AbortSignal,
): Promise<number> {
  const metric = metrics.get(measure.func)
  if (metric !== undefined) return metric({ ...pair, options: measure.options })
  const { sidecar, id } = task.data
  if (sidecar === null) throw new NotComparable('it is not built in and there is no sidecar')
  return gui.measureElsewhere(
    sidecar,
    { id, func: measure.func, options: measure.options, ...pair },
    { source: task.source, signal },
  )
}

function foundIn(artifacts: VerifyContext['artifacts']): readonly FoundPair[] {
  const item = artifacts.items.find(({ path }) => path === foundPath)
  const entry = item?.content.entries.find(({ type }) => type === 'file')
  if (entry?.type !== 'file') throw new PaddockError('VERIFIER_FAILED', 'What the getters found is missing')
  const given = keptAll.parse(JSON.parse(Buffer.from(entry.data).toString('utf8')))
  const back = (found: z.infer<typeof kept>): Found => {
    if (found === null || found.kind === 'value') return found === null ? null : { kind: 'value', value: found.value }
    const one = (each: z.infer<typeof file>) => ({ ...each, data: Buffer.from(each.data, 'base64') })
    if (found.kind === 'file') return one(found)
    return { kind: 'files', files: found.files.map((each) => (each === null ? null : one(each))) }
  }
  return given.map(({ result, expected }) => ({ result: back(result), expected: back(expected) }))
}
