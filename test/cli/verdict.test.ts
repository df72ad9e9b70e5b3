/** Late rewards and other labels of what was recorded: beside a live owner, and after it. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { tempDir } from '../fixtures/temp-dir.ts'
import { chat, paddock, serve, type Serving } from './here.ts'

let directory: string
let data: string
let serving: Serving
let call: string

beforeAll(async () => {
  directory = tempDir()
  data = join(directory, 'data')
  serving = await serve(data)
  await chat(serving.ready, { messages: [{ role: 'user', content: 'hello' }] })
  call = String((await serving.nextCall())['callId'])
})
afterAll(async () => {
  await serving.stop()
})

const verdict = (...args: readonly string[]) =>
  paddock(['verdict', serving.ready.rolloutId, '--source', 'review', '--data', data, '--json', ...args])

describe('paddock verdict', () => {
  it('gives a late reward with components and values of calls, through the owner', async () => {
    const given = await verdict('--reward', '0.5', '--component', 'style=0.2', '--step', `${call}=0.75`)
    expect(given).toMatchObject({ code: 0 })
    const first = JSON.parse(given.out)
    expect(first).toMatchObject({ status: 'scored', reward: 0.5, verifier: { id: 'late/review' }, supersedes: null })
    const labelled = JSON.parse((await verdict('--component', 'depth=1')).out)
    expect(labelled).toMatchObject({
      reward: 0.5,
      components: { style: 0.2, depth: 1 },
      steps: [{ callId: call, value: 0.75 }],
      supersedes: first.id,
    })
  })

  it('refuses what is no verdict, and calls of nobody', async () => {
    for (const [args, code] of [
      [['--step', 'nothing=1', '--reward', '1'], 'BODY_INVALID_SHAPE'],
      [['--none', ''], 'VERDICT_REFUSED'],
      [['--reward', 'much'], 'USAGE'],
      [['--reward', '1', '--none', 'x'], 'USAGE'],
    ] as const) {
      const { err, out, code: exit } = await verdict(...args)
      expect([exit, err + out]).toEqual([2, expect.stringContaining(code)])
    }
  })

  it('is what an export takes, also a reward that was taken away when the owner had ended', async () => {
    await serving.stop()
    const out = join(directory, 'out')
    expect((await paddock(['export', '--format', 'jsonl', '--out', out, '--data', data])).code).toBe(0)
    const [line = ''] = (await readFile(join(out, 'rows.jsonl'), 'utf8')).split('\n')
    expect(JSON.parse(line)).toMatchObject({
      reward: 0.5,
      verdict: { components: { style: 0.2, depth: 1 }, steps: [{ call_id: call, value: 0.75 }] },
    })
    const taken = await verdict('--none', 'the reviewer saw another answer')
    expect(JSON.parse(taken.out)).toMatchObject({
      status: 'unscorable',
      reward: null,
      reason: 'the reviewer saw another answer',
    })
  })
})
