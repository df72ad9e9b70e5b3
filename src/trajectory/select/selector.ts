import { type Id, PaddockError, type Task } from '../../core/index.ts'
import type { GroupRecord } from '../contract/index.ts'
import type { Selector, SelectorGroup } from '../rows-contract.ts'
import type { Member } from './group-plan.ts'
import { verdictInForce } from '../contract/index.ts'

/**
 * Checks a selector's plain object.
 *
 * @param spec the plugin as its author wrote it
 * @returns the same object
 * @throws `SELECTOR_INVALID` that names the part to correct
 * @example
 * export default defineSelector({
 *   name: 'best', apiVersion: 1, version: '1.0.0',
 *   select: ({ rollouts }) => rollouts.filter(({ verdict }) => verdict?.reward === 1).map(({ rollout }) => rollout.id),
 * })
 */
export function defineSelector<const S extends Selector>(spec: S): S {
  const refuse = (problem: string): never => {
    throw new PaddockError('SELECTOR_INVALID', `Selector ${JSON.stringify(spec.name)}: ${problem}`)
  }
  if (typeof spec.name !== 'string' || !/^[a-z][a-z0-9-]*$/.test(spec.name)) {
    refuse('`name` must be lower-case letters, digits and dashes')
  }
  if (spec.apiVersion !== 1) refuse('`apiVersion` must be 1')
  if (typeof spec.version !== 'string' || !/^\d+\.\d+\.\d+$/.test(spec.version)) refuse('`version` must be like 1.0.0')
  if (spec.select === undefined && spec.choose === undefined) refuse('`select` or `choose` must be a function')
  for (const part of ['select', 'choose'] as const) {
    if (spec[part] !== undefined && typeof spec[part] !== 'function') refuse(`\`${part}\` must be a function`)
  }
  for (const [name, { default: usual, min = -Infinity, max = Infinity }] of Object.entries(spec.options ?? {})) {
    if (typeof usual !== 'number' || !(usual >= min && usual <= max)) {
      refuse(`\`options.${name}.default\` must be a number within its bounds`)
    }
  }
  return spec
}

/** Members that the selector does not name are left out as `filtered`. Throws `SELECTOR_INVALID`. */
export function chosenBy(
  selector: Selector | undefined,
  group: GroupRecord,
  task: Task,
  members: readonly Member[],
): readonly Member[] {
  const usable = members.filter(({ drop }) => drop === null)
  if (selector === undefined || usable.length === 0) return members
  const rollouts = usable.map(({ rollout }) => ({ rollout, verdict: verdictInForce(rollout.verdicts) }))
  const { kept, detail } = keptBy(selector, { group, task, rollouts })
  const drop = { reason: 'filtered', detail } as const
  return members.map((member) =>
    member.drop === null && !kept.has(member.rollout.id) ? { ...member, drop, leave: new Map() } : member,
  )
}

/** The rollouts that a selector keeps, and what is told of the others. Throws `SELECTOR_INVALID`. */
export function keptBy(
  selector: Selector,
  group: SelectorGroup,
): { readonly kept: ReadonlySet<Id>; readonly detail: string } {
  const { keep, reason } = selected(selector, group)
  const known = new Set(group.rollouts.map(({ rollout }) => rollout.id))
  for (const id of keep) {
    if (!known.has(id))
      throw wrong(selector, `it names ${String(id)}, which is no usable rollout of group ${group.group.id}`)
  }
  return { kept: new Set(keep), detail: `selector ${selector.name}${reason === null ? '' : `: ${reason}`}` }
}

function selected(
  selector: Selector,
  group: SelectorGroup,
): { readonly keep: readonly Id[]; readonly reason: string | null } {
  if (selector.select === undefined) throw wrong(selector, 'it chooses no rollouts')
  let given: unknown
  try {
    given = selector.select(group)
  } catch (cause) {
    throw wrong(selector, `it threw: ${String(cause)}`, cause)
  }
  if (Array.isArray(given)) return { keep: given, reason: null }
  if (typeof given === 'object' && given !== null && 'keep' in given && 'reason' in given) {
    if (Array.isArray(given.keep) && typeof given.reason === 'string') return { keep: given.keep, reason: given.reason }
  }
  throw wrong(selector, '`select` must return a list of rollout ids, or `{keep, reason}`')
}

/** What a plugin did wrong. */
export function wrong(selector: Selector, what: string, cause?: unknown): PaddockError {
  return new PaddockError('SELECTOR_INVALID', `Selector ${JSON.stringify(selector.name)}: ${what}`, { cause })
}
