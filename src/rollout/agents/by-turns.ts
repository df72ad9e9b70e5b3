import type { RunningAgent } from '../agent.ts'
import type { HarnessReport } from '../harnesses/contract.ts'
import type { Floor } from './floor.ts'

interface Named {
  readonly about: { readonly name: string }
}

/** Starts one agent: with what was said before its first turn, and how it ends its turns. */
export type StartOne<Agent> = (
  agent: Agent,
  told: string,
  pass: (said: string | null) => Promise<string | null>,
) => RunningAgent

/**
 * Agents that take turns, each started when its first turn begins, until the work is over or one of them has ended. Their report is that of the first
 * that did not complete, else of the one that ended last. Rejects with what the first that failed rejects with, once all have ended.
 */
export async function byTurns<Agent extends Named>(
  floor: Floor,
  agents: readonly Agent[],
  start: StartOne<Agent>,
): Promise<HarnessReport> {
  const reports: (HarnessReport & { readonly agent: string })[] = []
  const work = async (agent: Agent): Promise<void> => {
    const { name } = agent.about
    const told = await floor.turnOf(name)
    if (told === null) return
    try {
      reports.push({ ...(await start(agent, told, (said) => floor.pass(name, said)).report), agent: name })
    } finally {
      floor.end()
    }
  }
  const ended = await Promise.allSettled(agents.map(work))
  const failed = ended.find((one) => one.status === 'rejected')
  if (failed !== undefined) throw failed.reason
  const last = reports.find(({ end }) => end !== 'completed') ?? reports.at(-1)
  if (last === undefined) throw new Error('the first agent has the first turn')
  const { agent, ...report } = last
  return { ...report, detail: `${agent}: ${report.detail}` }
}
