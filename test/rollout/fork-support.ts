import type { Id } from '../../src/core/index.ts'
import type { RunSummary } from '../../src/rollout/index.ts'
import { buildRows, type ForkFrom, type SessionLog } from '../../src/trajectory/index.ts'
import type { World } from './world.ts'

/** Each turn changes the files, and shows them. */
export const turn = (word: string) => ({
  shell: `echo ${word} >> turns && mkdir -p ${word} && sha256sum turns | tee ${word}/sum`,
})
export const steps = [turn('one'), turn('two'), turn('three'), turn('four'), { say: 'done' }]

/** Agents' logs of a run, by slot and attempt. */
export async function logsOf(world: World, { rollouts }: RunSummary): Promise<readonly SessionLog[]> {
  return Promise.all(
    rollouts.map(async ({ rolloutId }) => {
      const [session] = await world.store.recorder.sessions({ rolloutId })
      return world.store.recorder.session(session?.id ?? '')
    }),
  )
}

/** The conversation's own calls. */
export const mainOf = ({ calls }: SessionLog) => calls.filter(({ intent }) => intent.callClass === 'main')

export async function promptOf(world: World, callId: Id | undefined): Promise<readonly number[]> {
  return (await world.engine.generation(callId)).promptTokenIds
}

/** The task's directory as its box was kept after a call: names and contents. */
export function treeAfter(world: World, rolloutId: Id, callId: Id | undefined): Promise<string> {
  return saidAfter(world, { rolloutId, callId }, 'find . -type f -not -path "./.git/*" | sort | xargs sha256sum')
}

/** What a command says in the box as it was kept after a call. */
export async function saidAfter(
  world: World,
  { rolloutId, callId }: { readonly rolloutId: Id; readonly callId: Id | undefined },
  command: string,
): Promise<string> {
  const events = await world.store.recorder.events({ rolloutId })
  const taken = events.find((event) => event.kind === 'snapshot' && event.callId === callId)
  if (taken?.kind !== 'snapshot') throw new Error(`no snapshot after ${callId ?? 'nothing'}`)
  await using box = await world.sandbox.createBox({ image: taken.image, profile: 'user', labels: { role: 'probe' } })
  return Buffer.from((await box.exec({ command })).stdout).toString()
}

export const sampledIn = (log: SessionLog) =>
  log.segments.reduce((sum, { origin, tokens }) => sum + (origin === 'sampled' ? tokens.length : 0), 0)

export const trainedIn = (log: SessionLog) =>
  buildRows(log, {
    rolloutId: 'r',
    groupId: 'g',
    taskDigest: 't',
    trainClasses: ['main', 'subagent', 'title', 'other'],
  }).rows.reduce((sum, { mask }) => sum + mask.reduce((all, bit) => all + bit, 0), 0)

export function forkOf(
  summary: RunSummary,
  log: SessionLog | undefined,
  at: number,
  way: ForkFrom['way'],
): { readonly group: { readonly fork: ForkFrom } } {
  const rolloutId = summary.rollouts[0]?.rolloutId ?? ''
  const callId = log === undefined ? '' : (mainOf(log)[at]?.intent.id ?? '')
  return { group: { fork: { rolloutId, callId, way, onDivergence: 'refuse' } } }
}
