/** ATIF of recorded conversations: steps in their order, results with the answer that called, ids of exactly what was sampled. */
import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { atifExporter } from '../../src/trajectory/export/atif/index.ts'
import { uniformSelection } from '../../src/testing/exporter/index.ts'
import type { ExportRollout, Row, RowSegment } from '../../src/trajectory/index.ts'

interface Step {
  readonly step_id: number
  readonly source: string
  readonly message: unknown
  readonly metrics?: Readonly<Record<string, unknown>>
  readonly observation?: { readonly results: readonly Readonly<Record<string, unknown>>[] }
  readonly [name: string]: unknown
}

const call = (id: string, text: string) => ({ id, type: 'function', function: { name: 'shell', arguments: text } })
const talk = [
  { role: 'system', content: 'Be short.' },
  {
    role: 'user',
    content: [
      { type: 'text', text: 'Sort ' },
      { type: 'text', text: 'it.' },
    ],
  },
  { role: 'assistant', content: null, reasoning_content: 'hm', tool_calls: [call('a', '{"n": 1.0}'), call('b', 'ls')] },
  { role: 'tool', tool_call_id: 'b', content: 'two' },
  { role: 'tool', tool_call_id: 'a', content: [{ type: 'image_url', image_url: { url: 'media/x.png' } }] },
  { role: 'tool', tool_call_id: 'gone', content: 'whose?' },
  { role: 'assistant', content: 'Done.' },
]

/** A rollout of one row: three ids of prompt, two sampled, three of results, two sampled. */
function rollout(change: Partial<RowSegment> = {}, messages: readonly object[] = talk): ExportRollout {
  const [any] = uniformSelection(1, 10).rollouts
  const row = any?.rows[0]
  if (any === undefined || row === undefined) throw new Error('no row')
  const shared = { ...row.segments[0], maskReason: null } as RowSegment
  const piece = (start: number, end: number, sampled: boolean): RowSegment => ({
    ...shared,
    start,
    end,
    origin: sampled ? 'sampled' : 'prompt',
    choice: sampled ? 0 : null,
    callClass: 'main',
    trained: sampled,
  })
  const segments = [piece(0, 3, false), { ...piece(3, 5, true), ...change }, piece(5, 8, false), piece(8, 10, true)]
  const mask = Uint8Array.from({ length: 10 }, (_, at) =>
    segments.some(({ start, end, trained }) => trained && start <= at && at < end) ? 1 : 0,
  )
  const made: Row = {
    ...row,
    tokens: Int32Array.from({ length: 10 }, (_, at) => 100 + at),
    mask,
    logprobs: Float32Array.from(mask, (bit) => (bit === 1 ? -0.5 : 0)),
    segments,
  }
  return {
    ...any,
    rows: [made],
    conversations: [
      { messages: messages.map((one) => JSON.stringify(one)), tools: '[{"type":"function"}]', media: [] },
    ],
  }
}

async function written(rollouts: readonly ExportRollout[], options: object = {}): Promise<string> {
  let text = ''
  const write = async (chunk: Uint8Array | string) => void (text += Buffer.from(chunk as string).toString())
  async function* all() {
    yield* rollouts
  }
  await atifExporter.prepare(options).write(all(), { open: async () => ({ sizeBytes: 0, write }) })
  return text
}

async function stepsOf(exported: ExportRollout, options: object = {}): Promise<readonly Step[]> {
  return (JSON.parse(await written([exported], options)) as { steps: readonly Step[] }).steps
}

it('writes steps in order, and results with the answer that called', async () => {
  const text = await written([rollout()])
  const { steps, ...head } = JSON.parse(text) as { steps: readonly Step[] } & Record<string, unknown>
  expect(head).toMatchObject({ schema_version: 'ATIF-v1.8', agent: { tool_definitions: [{ type: 'function' }] } })
  expect(steps.map(({ step_id: id, source, message }) => [id, source, message])).toEqual([
    [1, 'system', 'Be short.'],
    [2, 'user', 'Sort it.'],
    [3, 'agent', ''],
    [4, 'system', ''],
    [5, 'agent', 'Done.'],
  ])
  expect(steps[2]?.observation?.results).toEqual([
    { source_call_id: 'b', content: 'two' },
    { source_call_id: 'a', content: [{ type: 'image', source: { media_type: 'image/png', path: 'media/x.png' } }] },
  ])
  expect(steps[3]?.observation?.results).toEqual([{ content: 'whose?' }])
  expect(steps[2]).toMatchObject({ reasoning_content: 'hm' })
  // Numbers as the model wrote them; what is no object stands beside.
  expect(text).toContain('"arguments":{"n": 1.0}')
  expect(text).toContain('"arguments":{},"extra":{"arguments_text":"ls"}')
})

it('gives each answer the ids that were sampled, and logprobs only of what trains', async () => {
  const [, , first, , last] = await stepsOf(rollout())
  expect(first?.metrics).toEqual({
    prompt_tokens: 3,
    completion_tokens: 2,
    completion_token_ids: [103, 104],
    logprobs: [-0.5, -0.5],
  })
  expect(last?.metrics?.['completion_token_ids']).toEqual([108, 109])
  expect(first).not.toHaveProperty('is_copied_context')
  const [, , whole] = await stepsOf(rollout(), { promptIds: true })
  expect(whole?.metrics?.['prompt_token_ids']).toEqual([100, 101, 102])
  const [, , copied] = await stepsOf(rollout({ trained: false, maskReason: 'owned_elsewhere' }))
  expect(copied?.metrics).not.toHaveProperty('logprobs')
  expect(copied?.['is_copied_context']).toBe(true)
})

it('knows only the last answer where earlier ones are prompt text', async () => {
  const before = { role: 'assistant', content: 'Earlier.' }
  const steps = await stepsOf(rollout({}, [talk[1] ?? {}, before, ...talk.slice(1)]))
  const agents = steps.filter(({ source }) => source === 'agent')
  expect(agents.map(({ metrics, is_copied_context: copied }) => [metrics?.['completion_token_ids'], copied])).toEqual([
    [undefined, true],
    [undefined, true],
    [[108, 109], undefined],
  ])
})

it('says a null reward as null, and never as 0', async () => {
  const { verdict, ...rest } = rollout()
  const text = await written([{ ...rest, verdict: null }])
  expect(verdict).not.toBeNull()
  expect(JSON.parse(text)).toMatchObject({ extra: { reward: null, status: null } })
  expect(await readFile(new URL('../../docs/reference/export-formats.md', import.meta.url), 'utf8')).toContain(
    '## `atif`',
  )
})
