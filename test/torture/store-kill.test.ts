import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { fsck, openReader, openStore, type SessionLog } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'

const kills = 20
const runner = fileURLToPath(new URL('../kill/store-runner.ts', import.meta.url))

const directory = tempDir()

/** What the owner said before it died. */
interface Said {
  readonly ready?: number
  readonly began?: string
  readonly committed?: string
  readonly session?: string
  readonly seq?: number
  readonly bodyBytes?: number
  readonly blob?: string
}

/** Runs an owner and kills it as soon as it has said `lines` lines. */
async function killAfter(lines: number): Promise<readonly Said[]> {
  const child: ChildProcess = spawn(process.execPath, [runner, directory], { stdio: ['ignore', 'pipe', 'inherit'] })
  const said: Said[] = []
  if (child.stdout === null) throw new Error('no pipe')
  for await (const line of createInterface({ input: child.stdout })) {
    said.push(JSON.parse(line) as Said)
    if (said.length === lines) child.kill('SIGKILL')
  }
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  expect(child.signalCode).toBe('SIGKILL')
  return said
}

it(`holds everything that it acknowledged, over ${kills} kills`, async () => {
  // Park-Miller: the same moments in every run.
  let state = 20_261_120
  const random = (below: number): number => {
    state = (state * 48_271) % 2_147_483_647
    return state % below
  }
  const said: Said[] = []
  for (let kill = 0; kill < kills; kill += 1) said.push(...(await killAfter(2 + random(400))))

  const readerFirst = await openReader(directory)
  await readerFirst.close()
  await (await openStore(directory)).close()
  await using reader = await openReader(directory)
  const logs = new Map<string, SessionLog>()
  for (const session of await reader.recorder.sessions()) {
    logs.set(session.id, await reader.recorder.session(session.id))
  }
  let checked = 0
  for (const line of said) {
    const call = logs
      .get(line.session ?? '')
      ?.calls.find(({ intent }) => [line.began, line.committed].includes(intent.id))
    if (line.began !== undefined) expect(call?.intent.body.byteLength).toBe(line.bodyBytes)
    if (line.committed !== undefined) {
      expect(call?.commit?.outcome.kind).toBe('complete')
      const sampled = logs
        .get(line.session ?? '')
        ?.segments.find(({ callId, origin }) => callId === line.committed && origin === 'sampled')
      expect([sampled?.tokens[0], sampled?.logprobs?.[29]]).toEqual([line.seq, Math.fround(-(line.seq ?? 0) / 7)])
      checked += 1
    }
    if (line.blob !== undefined) expect(await reader.blobs.has(line.blob)).toBe(true)
  }
  expect(checked).toBeGreaterThan(kills)
  const open = [...logs.values()].flatMap((log) => log.calls).filter((call) => call.commit === null)
  expect(open).toEqual([])
  expect((await fsck(directory)).problems).toEqual([])
})
