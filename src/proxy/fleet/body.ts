import { editObject, PaddockError, scanMembers, sha256 } from '../../core/index.ts'
import { versionUnder } from '../upstream.ts'
import type { HeldAdapter } from './adapters.ts'
import type { FleetAsk } from './ask.ts'
import type { Replica } from './replica.ts'

/** Where a generation goes. */
interface Destination {
  readonly replica: Replica
  /** The adapter that it runs under, null: none. */
  readonly under: HeldAdapter | null
  /** Prefixes of other weights may be cached there. */
  readonly isSalted: boolean
}

/**
 * A generation's body with the adapter that it runs under, the salt of its weights, and the name by which it can be ended, where the engine
 * reads these in the body. `MODEL_UNKNOWN`: it names a model that adapters are not put on.
 */
export function bodyFor(
  { ids, terms }: FleetAsk,
  body: Buffer,
  { replica, under, isSalted }: Destination,
): Buffer | PaddockError {
  const { control } = replica.engine
  const idMember = terms.interrupted === undefined ? null : (control?.requestIdMember ?? null)
  const version = versionUnder(under, replica.weights.version)
  const saltMember = isSalted && version !== null ? (control?.saltMember ?? null) : null
  if (idMember === null && under === null && saltMember === null) return body
  const scanned = scanMembers(body)
  const given = (name: string): unknown => {
    const member = scanned.members.findLast(({ key }) => key === name)
    return member === undefined ? null : JSON.parse(body.subarray(member.valueStart, member.valueEnd).toString())
  }
  const set: Record<string, string> = {}
  if (idMember !== null) set[idMember] = JSON.stringify(ids.requestId ?? ids.callId)
  if (under !== null) {
    const model = given('model')
    if (typeof model === 'string' && !under.routes.isBase(model, under.models)) {
      const fix = `Name one of: ${under.models.join(', ')}.`
      return new PaddockError('MODEL_UNKNOWN', `The model ${model.slice(0, 200)} does not exist.`, { fix })
    }
    set[under.routes.member] = JSON.stringify(under.name)
  }
  if (saltMember !== null && version !== null) {
    const own = given(saltMember)
    set[saltMember] = JSON.stringify(saltOf(typeof own === 'string' ? own : null, version))
  }
  return editObject(body, { set }, scanned)
}

/** Engines take short and plain salts only (vLLM 0.32.0: 128 characters, none of `@`, `/`, `\`); names of weights are anything. */
function saltOf(given: string | null, version: string): string {
  if (given === null && /^[\w.-]{1,100}$/.test(version)) return `weights-${version}`
  return `weights-${sha256(JSON.stringify([given, version]))}`
}
