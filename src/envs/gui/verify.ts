import { isDeepStrictEqual } from 'node:util'
import { sha256 } from '../../core/index.ts'
import { compose, type DraftFacts, scored, unscored, type VerdictDraft } from '../../reward/index.ts'
import { packArtifact } from '../artifacts.ts'
import type { VerifyContext } from '../contract.ts'
import type { TaskOf } from '../define.ts'
import type { Plan } from './application/index.ts'
import type { GuiData } from './data.ts'
import { digestsOf } from './workspace.ts'
import { fromArtifacts, type GuiRecord } from './record.ts'

/** Changes when the same record could get another verdict. */
export const guiVerifierVersion = '1'

/** Scores the host's own record of an attempt; nothing that page or agent could write is looked at. */
export async function verifyRecord(
  { task, artifacts, signal }: Omit<VerifyContext, 'task'> & { readonly task: TaskOf<GuiData> },
  plan: Plan,
): Promise<VerdictDraft> {
  signal.throwIfAborted()
  const record = fromArtifacts(artifacts)
  const { start, expected, answer, files } = plan
  const { components, why } = measure(record, plan)
  const packed = await Promise.all(artifacts.items.map(packArtifact))
  const facts: DraftFacts = {
    verifier: {
      id: `gui/${task.name}`,
      version: guiVerifierVersion,
      sha256: sha256(JSON.stringify({ start, expected, answer, ...(files === null ? {} : { files }) })),
    },
    trust: 'host',
    components,
    evidence: why.join('\n'),
    artifacts: packed.map(({ path, sha256: digest, sizeBytes }) => ({ path, sha256: digest, sizeBytes })),
  }
  const composed = compose(components, { kind: 'product', of: Object.keys(components) })
  return composed.ok ? scored(composed.reward, facts) : unscored('unscorable', composed.reason, facts)
}

function measure(record: GuiRecord, { start, expected, answer, files }: Plan) {
  const untouched = isDeepStrictEqual(record.state, start)
  const reached = isDeepStrictEqual(record.state, expected)
  const differences = reached ? [] : pathsThatDiffer(record.state, expected, '').slice(0, 8)
  const state =
    untouched && !reached ? 'nothing was changed' : `differs from what was asked for at ${differences.join(', ')}`
  const kept = { state: reached ? 1 : 0, not_given_up: record.ended === 'failed' ? 0 : 1 }
  const said = answer === null ? null : sameAnswer(record.answer ?? '', answer)
  const filesApart = files === null ? null : pathsThatDiffer(record.files ?? {}, digestsOf(files), '').slice(0, 8)
  return {
    components: {
      ...kept,
      ...(filesApart === null ? {} : { files: filesApart.length === 0 ? 1 : 0 }),
      ...(said === null ? {} : { answer: said ? 1 : 0 }),
    },
    why: [
      `state ${kept.state}: ${reached ? 'is what was asked for' : state}`,
      `the attempt was ${record.ended ?? 'not ended'} after ${record.actions} actions, ${record.forged} changes were forged and refused`,
      ...(filesApart === null ? [] : [filesLine(filesApart)]),
      ...(said === null ? [] : [`answer ${said ? 1 : 0}: ${JSON.stringify(record.answer)}`]),
    ],
  }
}

function filesLine(apart: readonly string[]): string {
  if (apart.length === 0) return 'files 1: the workspace holds what was asked for'
  return `files 0: the workspace differs from what was asked for at ${apart.join(', ')}`
}

function sameAnswer(given: string, gold: string): boolean {
  const plain = (text: string) => text.normalize('NFKC').toLowerCase().replaceAll(/\s+/g, ' ').trim()
  return plain(given) === plain(gold)
}

function pathsThatDiffer(a: unknown, b: unknown, path: string): readonly string[] {
  if (isDeepStrictEqual(a, b)) return []
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return [path === '' ? '/' : path]
  const left = new Map(Object.entries(a))
  const right = new Map(Object.entries(b))
  const names = new Set([...left.keys(), ...right.keys()])
  return [...names].flatMap((name) => pathsThatDiffer(left.get(name), right.get(name), `${path}/${name}`))
}
