/** What a trainer and a watcher are told of rollouts that go on, over a real `paddock serve`. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { knownTokenTexts, openReader } from '../../src/trajectory/index.ts'
import { serve, type Serving } from '../cli/here.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { followLive } from './follow-live.ts'
import { type Json, type OpenedRollout, say, talk, task, Trainer } from './trainer.ts'

interface Turn {
  readonly type: string
  readonly rollout_id: string
  readonly call_id: string
  readonly turn: number
  readonly sampled_tokens: number
  readonly context_tokens: number
  readonly entropy: number | null
}

interface Row {
  readonly turn_spans: readonly (readonly [number, number])[]
  readonly arrays: Readonly<Record<'entropies' | 'loss_mask', readonly (number | null)[]>>
}

interface SpannedRow {
  readonly message_spans: readonly {
    readonly start: number
    readonly end: number
    readonly role: string | null
    readonly part: string
  }[]
  readonly arrays: Readonly<Record<'token_ids' | 'observation_mask', readonly number[]>>
}

let directory: string
let data: string
let serving: Serving
let trainer: Trainer
const live: Json[] = []

beforeAll(async () => {
  directory = tempDir()
  data = join(directory, 'data')
  const config = join(directory, 'paddock.config.mjs')
  await writeFile(config, 'export default { session: { topLogprobs: 4 } }')
  serving = await serve(data, ['--config', config])
  const token = (await readFile(join(data, 'control-token'), 'utf8')).trim()
  trainer = new Trainer(serving, token)
  await followLive(`${serving.ready.control}/events`, token, (kind, said) => {
    if (kind === 'turn') live.push(said as Json)
  })
})
afterAll(async () => {
  await serving.stop()
})

async function openGroup(run: string, more: Json = {}): Promise<OpenedRollout> {
  await trainer.ask('POST', '/runs', { run_id: run, ...more })
  await trainer.attach(run)
  await trainer.ask('POST', `/runs/${run}/groups`, { groups: [{ group_id: `${run}-g`, task, n: 1 }] })
  return trainer.open(`${run}-g`)
}
async function events(run: string): Promise<readonly Turn[]> {
  const text = await (await trainer.send('GET', `/runs/${run}/events`)).text()
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Turn)
}
const turnsOf = async (run: string) => (await events(run)).filter(({ type }) => type === 'turn')

describe('turns of a rollout that goes on', () => {
  it('are events of a run that asked for them, with length and entropy so far as they are stored', async () => {
    const opened = await openGroup('asked', { turn_events: true })
    await talk(opened, 3)
    let turns = await turnsOf('asked')
    while (turns.length < 3) turns = await turnsOf('asked')
    await using reader = await openReader(data)
    const log = await reader.recorder.session(opened.session_id)
    const stored = await reader.recorder.events({ rolloutId: opened.rollout_id })
    expect(log.calls).toHaveLength(3)
    let sampled = 0
    for (const [at, { intent }] of log.calls.entries()) {
      const own = log.segments.filter(({ callId, origin }) => callId === intent.id && origin === 'sampled')
      sampled += own.reduce((sum, { tokens }) => sum + tokens.length, 0)
      const [channel] = stored.flatMap((event) =>
        event.kind === 'side_channel' && event.callId === intent.id && event.what === 'entropies' ? [event] : [],
      )
      const bytes = await reader.blobs.get(channel?.sha256 ?? '')
      const entropies = [...new Float32Array(Uint8Array.from(bytes).buffer)]
      expect(turns[at]).toMatchObject({
        group_id: 'asked-g',
        rollout_id: opened.rollout_id,
        session_id: opened.session_id,
        call_id: intent.id,
        call_class: 'main',
        turn: at + 1,
        sampled_tokens: sampled,
      })
      expect(turns[at]?.context_tokens).toBeGreaterThan(turns[at - 1]?.context_tokens ?? sampled)
      expect(turns[at]?.entropy).toBeCloseTo(entropies.reduce((sum, one) => sum + one, 0) / entropies.length, 5)
    }
  })

  it('come with the entropy of each sampled token in the rows of their round', async () => {
    const opened = await openGroup('rows', { turn_events: true })
    await talk(opened, 2)
    let turns = await turnsOf('rows')
    while (turns.length < 2) turns = await turnsOf('rows')
    await trainer.end(opened.rollout_id, 1)
    const { rows } = (await trainer.rows('rows-g', null)) as unknown as { readonly rows: readonly Row[] }
    const { arrays, turn_spans: spans = [] } = rows[0] ?? {}
    const { entropies, loss_mask: mask } = arrays ?? {}
    expect(entropies?.map((one) => one !== null)).toEqual(mask?.map((one) => one === 1))
    const means = spans.map(([start, end]) => {
      const own = entropies?.slice(start, end) ?? []
      return own.reduce<number>((sum, one) => sum + (one ?? Number.NaN), 0) / own.length
    })
    expect(means).toEqual(turns.map(({ entropy }) => expect.closeTo(entropy ?? Number.NaN, 5)))
  })

  it('are told live of every rollout, and not stored where nobody asked', async () => {
    const opened = await openGroup('quiet')
    await talk(opened, 2)
    const own = () => live.filter(({ runId }) => runId === 'quiet')
    while (own().length < 2) await trainer.ask('GET', '/runs/quiet')
    expect(own()).toMatchObject([
      { groupId: 'quiet-g', rolloutId: opened.rollout_id, turn: 1, at: expect.any(Number) },
      { turn: 2 },
    ])
    await trainer.end(opened.rollout_id, 1)
    const kinds = (await events('quiet')).map(({ type }) => type)
    expect(kinds).toContain('group_settled')
    expect(kinds).not.toContain('turn')
  })
})

describe('rows of a round whose spans are asked for', () => {
  it('tell whose each token is, by the texts that the engine has for them', async () => {
    const opened = await openGroup('spans')
    const content = 'Nobody has been here before'
    const messages = await talk(opened, 1)
    await say(opened, [...messages, { role: 'tool', content }])
    await trainer.end(opened.rollout_id, 1)
    const plain = (await trainer.rows('spans-g', null)) as unknown as { readonly rows: readonly object[] }
    expect(Object.keys(plain.rows[0] ?? {})).not.toContain('message_spans')
    const headers = { accept: 'application/json' }
    const answer = await trainer.send('GET', '/groups/spans-g/rounds/0/rows?spans=true', undefined, headers)
    const [row] = ((await answer.json()) as { readonly rows: readonly SpannedRow[] }).rows
    if (row === undefined) throw new Error('no row')
    expect(row.message_spans.map(({ role, part }) => [role, part])).toEqual([
      [null, 'scaffold'],
      ['user', 'content'],
      [null, 'scaffold'],
      ['assistant', 'answer'],
      [null, 'scaffold'],
      ['tool', 'content'],
      [null, 'scaffold'],
      ['assistant', 'answer'],
    ])
    const { token_ids: ids, observation_mask: observed } = row.arrays
    const learnt = ids.filter((_, at) => observed[at] === 1)
    await using reader = await openReader(data)
    const texts = await knownTokenTexts(reader, await reader.recorder.session(opened.session_id))
    expect(Buffer.concat(learnt.map((id) => texts.get(id) ?? new Uint8Array())).toString()).toBe(content)
    const ends = row.message_spans.map(({ end }) => end)
    expect(row.message_spans.map(({ start }) => start)).toEqual([0, ...ends.slice(0, -1)])
    expect(ends.at(-1)).toBe(ids.length)
  })
})
