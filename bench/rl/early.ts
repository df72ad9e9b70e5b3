/** What starting more members than are needed does to a run's wall time, and to the length and reward of what it keeps. */
import { type Client, converse, mean, type Opened, seeded } from './client.ts'

export type How = 'wait' | 'over' | 'carry'

export interface EarlySizes {
  readonly rounds: number
  readonly groups: number
  readonly n: number
  readonly over: number
  readonly toolMs: number
}

/** A member by what it would come to, had it to its end. */
interface Drawn {
  readonly turns: number
  readonly reward: number
}

export interface EarlyRun {
  readonly how: How
  readonly rounds: number
  readonly seconds: number
  readonly kept: readonly Drawn[]
  /** All that were begun, kept or not. */
  readonly begun: readonly Drawn[]
  /** How many were kept and begun at the end of each round. */
  readonly atEnd: readonly { readonly kept: number; readonly begun: number }[]
  /** Stopped under way; each was found in the store with its tokens and its reason. */
  readonly partial: { readonly members: number; readonly tokens: number }
  /** What the run says of itself. */
  readonly lengths: {
    readonly kept: { readonly mean_tokens: number | null }
    readonly censored: { readonly mean_tokens: number | null }
  }
  readonly sampledTokens: number
  /** Went on when the run was over. */
  readonly left: number
}

const longest = 20

/** Most take 2 turns, some 20; longer ones do better, so that what selects by length selects by reward. */
function draw(random: () => number): Drawn {
  const at = random()
  const turns = at < 0.75 ? 2 : at < 0.87 ? 3 + Math.floor(random() * 6) : longest
  return { turns, reward: random() < 0.2 + (0.6 * turns) / longest ? 1 : 0 }
}

/** One run of `rounds` steps, each of which trains on one round of each of its groups. */
export async function runEarly(client: Client, how: How, sizes: EarlySizes): Promise<EarlyRun> {
  const { rounds, groups, n, over, toolMs } = sizes
  const run = `early-${how}-${rounds}`
  await client.openRun(run)
  const spec = how === 'wait' ? { n } : { n, over, stop_when: { usable: n }, carry: how === 'carry' }
  const started = how === 'wait' ? n : n + over
  const members = new Map<string, Drawn>()
  const running = new Set<Promise<void>>()
  const kept: Drawn[] = []
  const atEnd: { kept: number; begun: number }[] = []
  const partial = { members: 0, tokens: 0 }
  let sampledTokens = 0
  const lives = Array.from({ length: groups }, (_, at) => ({ group: `${run}-${at}`, random: seeded(at + 1) }))
  const live = async (opened: Opened, { turns, reward }: Drawn): Promise<void> => {
    if ((await converse(opened, turns, toolMs)) === turns) await client.end(opened.rollout_id, reward)
  }
  const begin = async ({ group, random }: (typeof lives)[number]): Promise<void> => {
    const { status, body } = await client.send<Opened>('POST', '/rollouts', { group_id: group })
    // The round has settled before its last members were opened.
    if (status === 409) return
    if (status >= 400) throw new Error(`opening in ${group}: ${status} ${JSON.stringify(body)}`)
    const drawn = draw(random)
    members.set(body.rollout_id, drawn)
    const lived: Promise<void> = live(body, drawn).finally(() => running.delete(lived))
    running.add(lived)
  }
  const began = performance.now()
  for (let round = 0; round < rounds; round += 1) {
    await Promise.all(
      lives.map(async (one) => {
        const { group } = one
        const opened =
          round === 0
            ? await client.ask<{ accepted: readonly { members: number }[] }>('POST', `/runs/${run}/groups`, {
                groups: [{ group_id: group, task: { name: group, instruction: 'Work.' }, ...spec }],
              })
            : { accepted: [await client.ask<{ members: number }>('POST', `/groups/${group}/rounds`, spec)] }
        const taken = opened.accepted[0]?.members ?? 0
        await Promise.all(Array.from({ length: Math.max(0, started - taken) }, () => begin(one)))
      }),
    )
    for (let settled = 0; settled < groups;) {
      for (const claim of await client.claim(run, { max_groups: groups })) {
        const handed = await client.rows(claim)
        for (const { rollout_id: id, out, end, sampled_tokens: tokens } of handed.members) {
          sampledTokens += tokens
          const drawn = members.get(id)
          if (out === null && drawn !== undefined) kept.push(drawn)
          if (out !== 'censored') continue
          const rows = handed.rows.filter((row) => row.rollout_id === id)
          const stored = rows.flatMap(({ turn_spans: spans }) => spans).reduce((sum, [from, to]) => sum + to - from, 0)
          if (end !== 'cancelled' || stored !== tokens || rows.some((row) => row.unusable_reason !== 'censored')) {
            throw new Error(`the partial trajectory ${id} is not in the store as it was told`)
          }
          partial.members += 1
          partial.tokens += tokens
        }
        await client.dispose(run, handed, round)
        settled += 1
      }
    }
    atEnd.push({ kept: kept.length, begun: members.size })
  }
  const seconds = (performance.now() - began) / 1000
  const { lengths } = await client.ask<Pick<EarlyRun, 'lengths'>>('GET', `/runs/${run}`)
  const left = running.size
  await Promise.all(lives.map(({ group }) => client.ask('POST', `/groups/${group}/cancel`, {})))
  await Promise.all(running)
  await client.ask('POST', `/runs/${run}/close`, {})
  return { how, rounds, seconds, kept, begun: [...members.values()], atEnd, partial, lengths, sampledTokens, left }
}

/** How far what was kept is from all that was begun, up to the end of each of `count` equal parts of a run. */
export function biases({ kept, begun, atEnd }: EarlyRun, count: number): readonly Means[] {
  return Array.from({ length: count }, (_, part) => {
    const end = atEnd[Math.ceil(((part + 1) * atEnd.length) / count) - 1]
    const some = means(kept.slice(0, end?.kept))
    const all = means(begun.slice(0, end?.begun))
    return { turns: some.turns / all.turns - 1, reward: some.reward / all.reward - 1 }
  })
}

export interface Means {
  readonly turns: number
  readonly reward: number
}

export function means(drawn: readonly Drawn[]): Means {
  return { turns: mean(drawn.map(({ turns }) => turns)), reward: mean(drawn.map(({ reward }) => reward)) }
}
