import { type Digest, type Id, PaddockError, type Task } from '../../core/index.ts'
import type { GroupLibrary, GroupRecord, GroupSpec } from '../../trajectory/index.ts'
import type { RunOptions } from '../contract.ts'
import { type EndedGroup, type GroupWork, RunGroups, type RunGroupsOptions } from '../group/run-groups.ts'
import { leftOf, libraryOf } from '../library/index.ts'
import type { RunParts } from '../run-parts.ts'
import type { ChainSpec } from './contract.ts'
import { creditEarlier, type LinkRollout } from './credit.ts'

/** Members of a link that begin with the same files: a group. */
interface Line {
  readonly library: GroupLibrary
  /** Which of the chain's members they are. */
  readonly members: readonly number[]
}

const nothing: GroupLibrary = { sha256: null, from: null }

/** Throws `GROUP_INVALID` for a chain that could not be kept to. */
export function requireChain({ chain, environment, sandbox, doneHere = true }: RunOptions, spec: GroupSpec): void {
  if (chain === undefined) return
  const wrong = (what: string) => new PaddockError('GROUP_INVALID', `The chain ${chain.name} cannot be: ${what}.`)
  if (spec.fork !== null) throw wrong('its rollouts begin at the beginning, and these go on from another one')
  if (environment === null || (sandbox ?? null) === null)
    throw wrong('its tasks have no boxes, and a library stands in boxes')
  if (!doneHere) throw wrong('this coordinator leaves rollouts to nodes, which have no library')
  if (spec.over > 0 || spec.topUp > 0 || spec.carry) throw wrong('a member that is started beyond n has no library')
}

/**
 * One link after the other. A link of which nothing is known but that machines failed leaves the library as it was, and the chain goes on. What an earlier process left of a chain is
 * taken up: its groups are known by link and library. Throws `STORE_*`.
 */
export async function runChain(
  run: RunParts,
  chain: ChainSpec,
  o: RunGroupsOptions & {
    readonly tasks: readonly Task[]
    readonly spec: GroupSpec
    readonly known: readonly GroupRecord[]
    readonly ownOf: (spec: GroupSpec) => GroupWork['own']
  },
): Promise<readonly EndedGroup[]> {
  const { tasks, spec, ownOf, ...options } = o
  const ended: EndedGroup[] = []
  const links: LinkRollout[][] = []
  let known = o.known
  let libraries: readonly GroupLibrary[] = Array.from({ length: spec.n }, () => nothing)
  for (const [link, task] of tasks.entries()) {
    if (run.signal.aborted) break
    const lines = linesOf(libraries)
    const groups = new RunGroups(run, options)
    const ids: Id[] = []
    try {
      for (const line of lines) {
        const identity = { runId: run.runId, taskDigest: task.digest, promptVariant: variantOf(link, line) }
        const there = known.find(
          (one) => one.taskDigest === task.digest && one.promptVariant === identity.promptVariant,
        )
        known = known.filter((one) => one !== there)
        const group = there ?? { id: run.newId(), ...identity, createdAt: run.clock.now() }
        if (there === undefined) await run.store.catalogue.putGroup(group)
        const own: GroupSpec = {
          ...spec,
          n: line.members.length,
          minUsable: Math.min(spec.minUsable, line.members.length),
          library: line.library,
          labels: {
            ...spec.labels,
            chain: chain.name,
            link: String(link + 1),
            library: line.library.sha256 ?? 'empty',
          },
        }
        ids.push(group.id)
        await groups.add({ task, group }, { spec: own, priority: 0, own: ownOf(own) })
      }
      groups.end()
      await groups.run()
    } finally {
      groups.close()
    }
    ended.push(...groups.ended)
    const came = await rolloutsOf(run, groups.ended, lines)
    links.push(came)
    libraries = after(chain, libraries, came)
  }
  if (run.signal.aborted || chain.credit === 0) return ended
  const credited = await creditEarlier(run, links, chain.credit)
  return ended.map((one) => ({
    ...one,
    rollouts: one.rollouts.map((rollout) => ({
      ...rollout,
      verdict: credited.get(rollout.rolloutId) ?? rollout.verdict,
    })),
  }))
}

/** Members of equal libraries are one group, so that all in it began with the same. */
function linesOf(libraries: readonly GroupLibrary[]): readonly Line[] {
  const lines = new Map<Digest | null, { library: GroupLibrary; members: number[] }>()
  for (const [member, library] of libraries.entries()) {
    const line = lines.get(library.sha256) ?? { library, members: [] }
    line.members.push(member)
    lines.set(library.sha256, line)
  }
  return [...lines.values()]
}

/** Part of the identity of a group: the same task with other files at hand is another thing to compare. */
function variantOf(link: number, { library }: Line): string {
  return `link-${link + 1}/${library.sha256 ?? 'empty'}`
}

async function rolloutsOf(
  run: RunParts,
  groups: readonly EndedGroup[],
  lines: readonly Line[],
): Promise<LinkRollout[]> {
  const all = groups.flatMap(({ rollouts }, at) => rollouts.map((rollout) => ({ rollout, line: lines[at] })))
  const last = all.filter(({ rollout }) => !rollout.retried)
  return Promise.all(
    last.map(async ({ rollout, line }) => ({
      rollout,
      member: line?.members[rollout.slot] ?? rollout.slot,
      library: await libraryOf(run.store.recorder, rollout.rolloutId),
    })),
  )
}

/** The libraries of the next link. A member that left none goes on with what it had. */
function after(
  { libraries: how }: ChainSpec,
  before: readonly GroupLibrary[],
  came: readonly LinkRollout[],
): readonly GroupLibrary[] {
  const left = ({ rollout, library }: LinkRollout): GroupLibrary | null => leftOf(library, rollout.rolloutId)
  if (how === 'parallel') {
    return before.map((had, member) => {
      const own = came.find((one) => one.member === member)
      return (own === undefined ? null : left(own)) ?? had
    })
  }
  const reward = ({ rollout: { verdict } }: LinkRollout): number => verdict?.reward ?? Number.NEGATIVE_INFINITY
  const scored = came.filter(({ rollout: { verdict } }) => verdict?.status === 'scored')
  const best = scored.toSorted((a, b) => reward(b) - reward(a) || a.member - b.member).find((one) => left(one) !== null)
  const chosen = best === undefined ? null : left(best)
  return chosen === null ? before : before.map(() => chosen)
}
