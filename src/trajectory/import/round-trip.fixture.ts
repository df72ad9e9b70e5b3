/** Conversations that go through a store, an export, and back: `./check` does it with few of them, the lane of long tests with 1,000. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect } from 'vitest'
import { runExport } from '../export/index.ts'
import { fsck } from '../fsck/index.ts'
import { openStore } from '../store/index.ts'
import { importTrajectories } from './index.ts'

const word = fc.string({ minLength: 1, maxLength: 12, unit: 'grapheme' })
/** Text of an object with numbers and blanks that parsing would lose. */
const argumentsText = fc
  .tuple(fc.constantFrom('1.0', '1e3', '-0', '12345678901234567890'), word)
  .map(([number, text]) => `{"n": ${number},  "t":${JSON.stringify(text)}}`)

/** Conversations as every form can say them: by turns, one call in an answer and no text beside it. */
const conversation = fc
  .tuple(
    fc.option(word),
    fc.array(fc.tuple(word, fc.array(fc.tuple(word, argumentsText, word), { maxLength: 3 }), word), {
      minLength: 1,
      maxLength: 3,
    }),
  )
  .map(([system, turns]) => {
    const messages: string[] = system === null ? [] : [JSON.stringify({ role: 'system', content: system })]
    let calls = 0
    for (const [asked, steps, said] of turns) {
      messages.push(JSON.stringify({ role: 'user', content: asked }))
      for (const [name, given, result] of steps) {
        const id = `call_${(calls += 1)}`
        messages.push(
          `{"role":"assistant","content":null,"tool_calls":[{"id":"${id}","type":"function","function":{"name":${JSON.stringify(name)},"arguments":${JSON.stringify(given)}}}]}`,
          JSON.stringify({ role: 'tool', tool_call_id: id, content: result }),
        )
      }
      messages.push(JSON.stringify({ role: 'assistant', content: said }))
    }
    return messages
  })
const tools = fc.option(word.map((name) => `[{"type": "function", "function": {"name": ${JSON.stringify(name)}}}]`))

/** A line as data sets have it, and one that says something else in the end and is worth another reward: a pair of one task. */
const pairOf = fc
  .tuple(conversation, tools, fc.nat(99), fc.constantFrom('model-a', 'model-b'))
  .map(([messages, offered, nth, model]) => {
    const of = (own: readonly string[], reward: number): string =>
      `{"messages":[${own.join(',')}]${offered === null ? '' : `,"tools":${offered}`},"task":"t${nth}","reward":${reward},"model":"${model}"}`
    const other = [...messages.slice(0, -1), JSON.stringify({ role: 'assistant', content: `not ${nth}` })]
    return [of(messages, 1), of(other, 0.25)]
  })

const bare = (line: string): string => line.replace(/,"task":"t\d+","reward":[\d.]+,"model":"[^"]*"\}$/, '}')
/** What a store gives anew to all that comes into it. */
const ownIds = new Set(['rollout_id', 'group_id', 'row_id', 'rollout_chosen', 'rollout_rejected', 'call_id'])
const withoutIds = (line: string): string =>
  JSON.stringify(JSON.parse(line), (key, value: unknown) => (ownIds.has(key) ? undefined : value))

/** The same lines in any order; what differs is told by its first line. */
function same(now: readonly string[], then: readonly string[]): void {
  expect(now).toHaveLength(then.length)
  const [left, right] = [now.toSorted(), then.toSorted()]
  const at = left.findIndex((line, i) => line !== right[i])
  expect(left[at]).toBe(right[at])
}

/**
 * Takes in `count` trajectories, exports them in every format of messages, takes in what was exported, and expects it to be equal where
 * the format can say it: by `chat` and `openai` byte for byte; by ATIF with rewards, tasks, models and its own ids, so that pairs and
 * labels made of it are those of the first store; by ShareGPT the words.
 */
export async function roundTrip(root: string, count: number): Promise<void> {
  let made = 0
  const take = async (format: string, lines: readonly string[]): Promise<string> => {
    const name = join(root, `${(made += 1)}.jsonl`)
    await writeFile(name, lines.join('\n'))
    await using store = await openStore(join(root, `round-${made}`))
    expect(await importTrajectories(store, { format, paths: [name] })).toMatchObject({
      taken: lines.length,
      isNew: true,
    })
    return join(root, `round-${made}`)
  }
  const exported = async (data: string, format: string): Promise<readonly string[]> => {
    const out = join(root, `round-out-${(made += 1)}`)
    await using store = await openStore(data)
    const query = { includeNullVerdicts: true }
    const manifest = await runExport({ reader: store, exporter: format, out, query, paddockVersion: '1.2.3' })
    const text = await readFile(join(out, manifest.files[0]?.name ?? ''), 'utf8')
    return text.split('\n').filter(Boolean)
  }
  const given = fc.sample(pairOf, { numRuns: count / 2, seed: 20_261_125 }).flat()
  const first = await take('chat', given)
  const words = given.map(bare)
  same(await exported(first, 'openai'), words)

  const atif = await exported(first, 'atif')
  const byAtif = await take('atif', atif)
  const sharegpt = await exported(first, 'sharegpt')
  const bySharegpt = await take('sharegpt', sharegpt)
  for (const data of [byAtif, bySharegpt]) same(await exported(data, 'openai'), words)
  same((await exported(bySharegpt, 'sharegpt')).map(withoutIds), sharegpt.map(withoutIds))

  const twice = await exported(byAtif, 'atif')
  same(twice.map(withoutIds), atif.map(withoutIds))
  expect(new Set(twice.map((line) => (JSON.parse(line) as { trajectory_id: string }).trajectory_id)).size).toBe(count)
  for (const format of ['dpo', 'step-labels']) {
    const [then, now] = [await exported(first, format), await exported(byAtif, format)]
    // Of what came without values of its steps there are none.
    expect(then.length > 0).toBe(format === 'dpo')
    same(now.map(withoutIds), then.map(withoutIds))
  }
  expect((await fsck(byAtif)).problems).toEqual([])
}
