import { mkdtemp, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import type { Task } from '../../core/index.ts'
import type { Box } from '../../sandbox/index.ts'
import type { Environment, ScriptStep } from '../contract.ts'
import { runScript } from '../run-script.ts'
import { runToolCall } from '../tool.ts'
import { searchEnvironment } from './index.ts'

const examples = join(import.meta.dirname, '../../../examples/tasks/search')
const signal = new AbortController().signal

/** The tools look at a box for two things: whose attempt it is, and whether it lives. */
function livingBox(): Box {
  return { died: new Promise(() => undefined) } as unknown as Box
}

let directory: string
let environment: Environment
beforeAll(async () => {
  directory = tempDir()
  environment = searchEnvironment({ directory: join(directory, 'corpora') })
})

async function attempt(task: Task, steps: readonly ScriptStep[], box = livingBox()) {
  const context = { task, attempt: { id: 'attempt' }, box, signal, emit: () => undefined }
  await environment.setup(context)
  const ran = await runScript({ ...context, environment, script: { steps } })
  const artifacts = await environment.collect(context)
  const noBox = async () => Promise.reject(new Error('this verifier needs no box'))
  const verdict = await environment.verify({ task, artifacts, openBox: noBox, signal, emit: () => undefined })
  return { ran, artifacts, verdict }
}

describe('the questions of examples/tasks/search', () => {
  test('are at least 60, of each kind several, and each is proven by its scripts', async () => {
    const tasks = await environment.load(examples)
    expect(tasks.length).toBeGreaterThanOrEqual(60)
    const kinds = Map.groupBy(tasks, ({ data }) => (data as { kind: string }).kind)
    expect([...kinds.keys()].toSorted()).toEqual(['bridge-2', 'bridge-3', 'comparison', 'one-hop'])
    for (const task of tasks) {
      const { scripts } = environment
      const gold = await attempt(task, (await scripts.oracle(task)).script.steps)
      expect(gold.verdict).toMatchObject({
        status: 'scored',
        reward: 1,
        trust: 'host',
        components: { em: 1, f1: 1, evidence_recall_at_3: 1, citations_grounded: 1, format: 1, over_search: 0 },
      })
      for (const fake of [scripts.nullAgent, ...(await scripts.cheats(task)), ...(await scripts.distractors(task))]) {
        const { verdict } = await attempt(task, fake.script.steps)
        expect({ task: task.name, script: fake.name, reward: verdict.reward }).toMatchObject({ reward: 0 })
      }
    }
  })

  test('one by its name is the same task', async () => {
    const all = await environment.load(examples)
    const [one] = await environment.load(join(examples, 'q004'))
    expect(one).toEqual(all.find(({ name }) => name === 'q004'))
    expect(await environment.load(join(examples, 'questions.jsonl'))).toEqual(all)
  })
})

describe('one attempt', () => {
  let task: Task
  let evidence: readonly string[]
  let gold: string
  beforeAll(async () => {
    ;[task] = (await environment.load(join(examples, 'q004'))) as [Task]
    const data = task.data as { evidence: readonly string[]; golds: readonly [string] }
    evidence = data.evidence
    gold = data.golds[0]
  })

  const search = (query: string | readonly string[], topk?: number): ScriptStep => ({
    tool: 'search',
    args: { query, ...(topk === undefined ? {} : { topk }) },
  })
  const answer = (text: string, citations: readonly string[]): ScriptStep => ({
    tool: 'answer',
    args: { answer: text, citations },
  })

  test('searches several queries at once and opens a passage', async () => {
    const { ran } = await attempt(task, [
      search(['Mendvald Printing House', 'Delia Stoaxdrusk'], 2),
      { tool: 'open', args: { id: evidence[0] } },
      { tool: 'open', args: { id: 'nothing' } },
      search('zzzz'),
    ])
    expect(ran.map(({ status }) => status)).toEqual(['ok', 'ok', 'error', 'ok'])
    const [both, opened, , none] = ran.map(({ text }) => text)
    expect(both?.match(/^\[\d\]/gm)).toEqual(['[1]', '[2]', '[1]', '[2]'])
    expect(both).toContain(`[1] ${evidence[0]} | Mendvald Printing House`)
    expect(opened).toContain('Mendvald Printing House')
    expect(none).toContain('Nothing found')
  })

  test('never shows golds or evidence by itself', async () => {
    const shown = environment
      .tools(task)
      .map(({ description, inputSchema }) => description + JSON.stringify(inputSchema))
    const all = [...shown, environment.systemPrompt(task) ?? '', environment.userPrompt(task)].join('\n')
    for (const secret of [gold, ...evidence]) expect(all).not.toContain(secret)
  })

  test('a right answer whose citation was never shown is worth nothing, and one that was opened is', async () => {
    const queries = [search('Mendvald Printing House'), search('Delia Stoaxdrusk')]
    const invented = await attempt(task, [...queries, answer(gold, [...evidence.slice(0, 1), 'd99999'])])
    expect(invented.verdict).toMatchObject({ reward: 0, components: { em: 1, citations_grounded: 0.5 } })
    const opened = await attempt(task, [{ tool: 'open', args: { id: evidence[2] } }, answer(gold, evidence.slice(2))])
    expect(opened.verdict).toMatchObject({
      reward: 1,
      components: { citations_grounded: 1, answer_in_citations: 1, evidence_recall: 1 / 3 },
    })
  })

  test('what is read behind the answer, or beside it, or not at all, grounds no citation', async () => {
    const open = (id: string | undefined, offset = 0): ScriptStep => ({ tool: 'open', args: { id, offset } })
    const right = answer(gold, evidence.slice(2))
    const late = [
      [right, open(evidence[2])],
      [right, search('Mendvald Printing House', 20), search('Delia Stoaxdrusk', 20)],
      [open(evidence[2], 1_000_000), right],
    ]
    for (const steps of late) {
      const { ran, verdict } = await attempt(task, steps)
      expect(ran.some(({ status }) => status === 'error')).toBe(true)
      expect(verdict).toMatchObject({ reward: 0, components: { em: 1, citations_grounded: 0 } })
    }
  })

  test('a search that is still under way when the answer comes was not read for it', async () => {
    const box = livingBox()
    const context = { task, attempt: { id: 'attempt' }, box, signal, emit: () => undefined }
    const call = (name: string, args: object) =>
      runToolCall(environment.tools(task), { name, argumentsText: JSON.stringify(args) }, context)
    await environment.setup(context)
    const [found] = await Promise.all([
      call('search', { query: ['Mendvald Printing House', 'Delia Stoaxdrusk'], topk: 20 }),
      call('answer', { answer: gold, citations: evidence }),
    ])
    expect(found.status).toBe('error')
    const artifacts = await environment.collect(context)
    const noBox = async () => Promise.reject(new Error('this verifier needs no box'))
    const verdict = await environment.verify({ task, artifacts, openBox: noBox, signal, emit: () => undefined })
    expect(verdict).toMatchObject({ reward: 0, components: { em: 1, citations_grounded: 0 } })
  })

  test('repeated and needless searches take their share of the reward', async () => {
    const { script } = await environment.scripts.oracle(task)
    const again = Array.from({ length: 9 }, (_, i) => search(i % 2 === 0 ? 'the houses of printing' : 'Printing House'))
    const { verdict } = await attempt(task, [...again, ...script.steps])
    // 8 of 12 queries say what an earlier one said, and 12 is twice the allowance.
    expect(verdict.components).toMatchObject({ em: 1, duplicate_queries: 8 / 12, over_search: 1 })
    expect(verdict.reward).toBeCloseTo(1 - 0.2 * (8 / 12) - 0.2, 12)
  })

  test('has no more searches than the set allows', async () => {
    const { ran, verdict } = await attempt(task, [
      ...Array.from({ length: 3 }, (_, i) => search(Array.from({ length: 6 }, (__, j) => `town ${i} ${j}`))),
      search(['one', 'two', 'three']),
      search(['one', 'two']),
      search('three'),
    ])
    expect(ran.map(({ status }) => status)).toEqual(['ok', 'ok', 'ok', 'error', 'ok', 'error'])
    expect(ran[3]?.text).toContain('Only 2 of 20 searches are left')
    expect(verdict.components['over_search']).toBe(1)
  })

  test('counts its own searches only, though all attempts share one corpus', async () => {
    const { script } = await environment.scripts.oracle(task)
    const attempts = await Promise.all(Array.from({ length: 8 }, () => attempt(task, script.steps)))
    for (const { verdict } of attempts) expect(verdict).toEqual(attempts[0]?.verdict)
    expect(attempts[0]?.verdict.components).toMatchObject({ duplicate_queries: 0, over_search: 0 })
  })

  test('the record that the verifier reads is the stored artifact', async () => {
    const { artifacts, verdict } = await attempt(task, [search('Delia'), answer('Nowhere', ['d00001'])])
    const [item] = artifacts.items
    const [entry] = item?.content.entries ?? []
    const record = JSON.parse(Buffer.from(entry?.type === 'file' ? entry.data : []).toString())
    expect(record).toMatchObject({ searches: [{ query: 'Delia' }], answer: { text: 'Nowhere', citations: ['d00001'] } })
    expect(verdict.artifacts.map(({ path }) => path)).toEqual(['/paddock/search.json'])
  })
})

describe('a set of your own', () => {
  const corpus = [
    { id: '1', contents: '"Old Mill"\nThe old mill of Goxby was built in 1871.' },
    { _id: 'two', title: 'Goxby', text: 'Goxby lies on the river Anna.' },
  ]
  const question = { id: 'a', question: 'When was the mill built?', golden_answers: ['1871'], evidence: ['1'] }

  async function set(o: { toml?: string; corpus?: readonly unknown[]; questions?: readonly unknown[] } = {}) {
    const folder = await mkdtemp(join(directory, 'set-'))
    const lines = (rows: readonly unknown[]) =>
      rows.map((row) => (typeof row === 'string' ? row : JSON.stringify(row))).join('\n')
    await writeFile(join(folder, 'passages.jsonl'), lines(o.corpus ?? corpus))
    await writeFile(join(folder, 'questions.jsonl'), lines(o.questions ?? [question]))
    await writeFile(join(folder, 'search.toml'), o.toml ?? '[corpus]\nkind = "jsonl"\npath = "passages.jsonl"\n')
    return folder
  }

  test('takes the corpora of Search-R1 and BEIR, and the questions of FlashRAG', async () => {
    const toml = '[corpus]\nkind = "jsonl"\npath = "passages.jsonl"\n[scoring]\npreset = "answer"\n'
    const plain = { id: 'b', question: 'On which river does Goxby lie?', golden_answers: ['Anna', 'the Anna'] }
    const folder = await set({ toml, questions: [plain] })
    const [task] = (await environment.load(folder)) as [Task]
    const { verdict, ran } = await attempt(task, (await environment.scripts.oracle(task)).script.steps)
    expect(ran[0]?.text).toContain('two | Goxby')
    expect(verdict).toMatchObject({ reward: 1, components: { em: 1, evidence_recall: 1 } })
    for (const cheat of await environment.scripts.cheats(task)) {
      expect((await attempt(task, cheat.script.steps)).verdict.reward).toBe(0)
    }
  })

  test('is another task when a passage changes', async () => {
    const [one] = (await environment.load(await set())) as [Task]
    const [same] = (await environment.load(await set())) as [Task]
    const other = [{ ...corpus[0], contents: '"Old Mill"\nThe old mill was built in 1872.' }, corpus[1]]
    const [changed] = (await environment.load(await set({ corpus: other }))) as [Task]
    expect(same.digest).toBe(one.digest)
    expect(changed.digest).not.toBe(one.digest)
  })

  test.each([
    [{ toml: '[corpus]\nkind = "jsonl"\npath = "passages.jsonl"\nshape = 1\n' }, /search\.toml.*shape/],
    [{ toml: '[corpus]\nkind = "jsonl"\npath = "missing.jsonl"\n' }, /missing\.jsonl cannot be read/],
    [{ toml: '[corpus]\nkind = "jsonl"\npath = "passages.jsonl"\nsha256 = "00"\n' }, /sha256/],
    [{ corpus: ['{"id": "1"'] }, /passages\.jsonl:1 is not JSON/],
    [{ corpus: [corpus[0], corpus[0]] }, /the same id/],
    [{ corpus: [{ id: '1', body: 'x' }] }, /passages\.jsonl:1 has neither contents nor text/],
    [{ corpus: [{ contents: 'x' }] }, /passages\.jsonl:1 has no id/],
    [{ questions: [question, question] }, /questions\.jsonl:2: there are two questions a/],
    [{ questions: [{ ...question, evidence: ['9'] }] }, /questions\.jsonl:1: the corpus has no passage 9/],
    [{ questions: [{ ...question, evidence: [] }] }, /needs evidence/],
    [{ questions: [{ id: 'a', question: 'q' }] }, /questions\.jsonl:1.*golden_answers/s],
    [{ questions: [] }, /holds no question/],
  ])('is refused with its place: %j', async (o, message) => {
    const folder = await set(o)
    const error = await environment.load(folder).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'TASK_INVALID', message: expect.stringMatching(message) })
  })

  test('that is not there is refused', async () => {
    await expect(environment.load(join(directory, 'nowhere'))).rejects.toMatchObject({ code: 'TASK_INVALID' })
    await expect(environment.load(join(await set(), 'zz'))).rejects.toMatchObject({ code: 'TASK_INVALID' })
  })

  test('with a corpus that was damaged on disk is told apart from a failing agent', async () => {
    const cache = join(directory, 'damaged')
    const folder = await set()
    const [task] = (await searchEnvironment({ directory: cache }).load(folder)) as [Task]
    const [built = ''] = await readdir(cache)
    const path = join(cache, built, '0000.segment')
    await writeFile(path, (await readFile(path)).subarray(1))
    const fresh = searchEnvironment({ directory: cache })
    const [tool] = fresh.tools(task)
    const outcome = await tool?.run({ task, attempt: { id: 'attempt' }, box: livingBox(), signal }, { query: 'mill' })
    expect(outcome).toMatchObject({ status: 'infra' })
  })
})
