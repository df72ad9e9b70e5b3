/**
 * What it costs to stand at the 60th call of an agent again: by a fork, which replays the model's answers and runs the tools (`replay`), or
 * begins in a copy of the box (`state`, `graft`), beside a rollout that begins at the beginning. The scripted engine at the pace of a model,
 * boxes of Docker; the reference agent, and for `graft` pi, unmodified. The boxes of parents are kept at each turn, as a copy needs.
 *
 *   node bench/fork.ts [--turns 60] [--rounds 3] [--tokens-per-second 100]
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import Docker from 'dockerode'
import { terminal } from '../src/envs/index.ts'
import { createProxy, vllmEngine } from '../src/proxy/index.ts'
import { type Harness, piHarness, recordBoxEvents, referenceAgent, runRollouts } from '../src/rollout/index.ts'
import { dockerProvider } from '../src/sandbox/index.ts'
import { type ForkFrom, openStore, type SessionLog } from '../src/trajectory/index.ts'
import { readFlags } from './flags.ts'

const {
  turns,
  rounds,
  tokensPerSecond: speed,
  smoke,
} = readFlags({ turns: 60, rounds: 3, tokensPerSecond: 100 }, { turns: 3, rounds: 1, tokensPerSecond: 1000 })
const model = 'scripted-hermes'
const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

type ForkWay = ForkFrom['way']

interface Cost {
  /** From the start of the rollout to the call, in milliseconds, and the model's part of it. */
  readonly toCall: number
  readonly waited: number
  /** Tokens that the engine sampled, and prompts that it was asked, before the call. */
  readonly sampled: number
  readonly asked: number
  /** What the whole rollout added to the store. */
  readonly bytes: number
  /** Beyond the image below, of the kept box that it begins in; null: it begins in a fresh one. */
  readonly copied: number | null
}

const flags = ['--port', '0', '--tokens-per-second', String(speed), '--first-token-ms', '100']
const engine = spawn(process.execPath, [at('../engine/src/main.ts'), ...flags], {
  stdio: ['ignore', 'pipe', 'inherit'],
})
const directory = await mkdtemp(join(tmpdir(), 'paddock-bench-fork-'))
const store = await openStore(directory)
const sandbox = dockerProvider({ onEvent: recordBoxEvents(store.recorder) })
try {
  const [line] = (await once(createInterface({ input: engine.stdout }), 'line')) as [string]
  const { url, control } = JSON.parse(line) as { url: string; control: string }
  const proxy = createProxy({ recorder: store.recorder, engine: vllmEngine({ url }) })
  const [task] = await terminal.load(at('../examples/tasks/terminal/log-forensics'))
  if (task === undefined) throw new Error('the task is gone')
  const work = Array.from({ length: turns }, (_, turn) => ({
    shell: `seq ${turn} ${turn + 40} > part-${turn} && cat part-${turn} | tail -5`,
  }))
  const script = {
    instruction: task.instruction,
    candidates: [{ name: 'only', weight: 0, steps: [...work, { say: 'Done.' }] }],
  }
  await fetch(`${control}/scripts`, { method: 'POST', body: JSON.stringify(script) })

  interface Played {
    readonly cost: Cost
    readonly from: Omit<ForkFrom, 'way'>
    /** Of its box as it was kept at the call, beyond the image below. */
    readonly kept: number
  }
  const played = async (harness: Harness, fork: ForkFrom | null, copied: number | null): Promise<Played> => {
    const before = await sizeOf(directory)
    const { rollouts } = await runRollouts({
      store,
      proxy,
      sandbox,
      environment: terminal,
      model,
      tasks: [task],
      harness,
      // A box that is kept at this very call, and at no other.
      snapshotEvery: turns - 1,
      group: { fork },
    })
    const [rollout] = rollouts
    if (rollout?.end !== 'completed')
      throw new Error(`a rollout ended as ${rollout?.end ?? 'nothing'}: ${rollout?.detail}`)
    const { rolloutId } = rollout
    const [session] = await store.recorder.sessions({ rolloutId })
    const log = await store.recorder.session(session?.id ?? '', { bodies: [] })
    const { startedAt } = await store.catalogue.rollout(rolloutId)
    const call = log.calls.filter(({ intent }) => intent.callClass === 'main')[turns - 1]
    if (call === undefined || startedAt === null) throw new Error('the rollout is too short')
    const cost = {
      ...costTo(log, call.intent.seq),
      toCall: call.intent.startedAt - startedAt,
      bytes: (await sizeOf(directory)) - before,
      copied,
    }
    const taken = (await store.recorder.events({ rolloutId })).find((event) => event.kind === 'snapshot')
    return {
      cost,
      from: { rolloutId, callId: call.intent.id, onDivergence: 'refuse' },
      kept: taken?.kind === 'snapshot' ? await layerSize(taken.image) : 0,
    }
  }

  const kinds: readonly { readonly harness: Harness; readonly ways: readonly ForkWay[] }[] = [
    { harness: referenceAgent({ maxTurns: turns + 2 }), ways: ['replay', 'state'] },
    { harness: piHarness(), ways: ['replay', 'graft'] },
  ]
  const head = ['to the call', 'of it the model', 'tokens sampled', 'engine calls', 'in the store', 'box copied']
  const widths = [22, 17, 16, 14, 22, 12]
  const cellsOf = (cells: readonly string[]) => cells.map((one, i) => one.padStart(widths[i] ?? 0)).join('')
  console.log(
    `to the ${turns}th call of an agent, ${speed} tokens/s, first token after 100 ms; medians of ${rounds} rounds`,
  )
  console.log(`${''.padEnd(30)}${cellsOf(head)}`)
  for (const { harness, ways } of kinds) {
    if (!smoke) await played(harness, null, null)
    const fresh: Cost[] = []
    const forked = new Map<ForkWay, Cost[]>(ways.map((way) => [way, []]))
    for (let round = 0; round < rounds; round += 1) {
      const parent = await played(harness, null, null)
      fresh.push(parent.cost)
      for (const [way, costs] of forked)
        costs.push((await played(harness, { ...parent.from, way }, way === 'replay' ? null : parent.kept)).cost)
    }
    const rows: (readonly [name: string, costs: readonly Cost[]])[] = [[`${harness.name}, from the beginning`, fresh]]
    for (const [way, costs] of forked) rows.push([`${harness.name}, a fork by ${way}`, costs])
    for (const [name, costs] of rows) {
      const ratio = (key: 'toCall' | 'bytes') => `${(median(costs, key) / median(fresh, key)).toFixed(2)}x`
      const cells = [
        `${(median(costs, 'toCall') / 1000).toFixed(1)} s  ${ratio('toCall')}`,
        `${(median(costs, 'waited') / 1000).toFixed(1)} s`,
        String(median(costs, 'sampled')),
        String(median(costs, 'asked')),
        `${(median(costs, 'bytes') / 1024).toFixed(0)} kB  ${ratio('bytes')}`,
        costs.some(({ copied }) => copied === null) ? '-' : `${(median(costs, 'copied') / 1024).toFixed(0)} kB`,
      ]
      console.log(`${name.padEnd(30)}${cellsOf(cells)}`)
    }
  }
  await proxy.close()
} finally {
  await sandbox.close()
  await store.close()
  engine.kill()
  await rm(directory, { recursive: true, force: true })
}

/** What the last layer of an image takes. */
async function layerSize(image: string): Promise<number> {
  const [last] = await new Docker().getImage(image).history()
  return (last as { readonly Size: number } | undefined)?.Size ?? 0
}

/** What the engine did before a call. */
function costTo({ calls, segments }: SessionLog, seq: number): Pick<Cost, 'waited' | 'sampled' | 'asked'> {
  const sampled = segments.filter(({ origin }) => origin === 'sampled')
  const live = calls.filter(({ intent }) => intent.seq < seq && sampled.some(({ callId }) => callId === intent.id))
  const ids = new Set(live.map(({ intent }) => intent.id))
  return {
    asked: live.length,
    waited: live.reduce((sum, { intent, commit }) => sum + (commit?.endedAt ?? 0) - intent.startedAt, 0),
    sampled: sampled.reduce((sum, { callId, tokens }) => sum + (ids.has(callId ?? '') ? tokens.length : 0), 0),
  }
}

async function sizeOf(path: string): Promise<number> {
  let sum = 0
  for (const entry of await readdir(path, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) sum += (await stat(join(entry.parentPath, entry.name))).size
  }
  return sum
}

function median(costs: readonly Cost[], key: keyof Cost): number {
  const sorted = costs.map((cost) => cost[key] ?? 0).toSorted((one, other) => one - other)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}
