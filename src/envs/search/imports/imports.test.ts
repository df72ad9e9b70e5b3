import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { parquetWriteBuffer } from 'hyparquet-writer'
import { describe, expect, test } from 'vitest'
import { tempDir } from '../../../../test/fixtures/temp-dir.ts'
import type { Task } from '../../../core/index.ts'
import type { Box } from '../../../sandbox/index.ts'
import { runScript } from '../../run-script.ts'
import type { NamedScript } from '../../contract.ts'
import { searchDataSchema } from '../data.ts'
import { searchEnvironment } from '../index.ts'

const directory = tempDir()
const environment = searchEnvironment({ directory: tempDir() })

/** A set of its own folder. */
async function load(name: string, toml: string, files: Readonly<Record<string, string | Uint8Array>>) {
  for (const [path, data] of Object.entries({ 'search.toml': toml, ...files })) {
    await mkdir(dirname(join(directory, name, path)), { recursive: true })
    await writeFile(join(directory, name, path), data)
  }
  return environment.load(join(directory, name))
}

async function rewardOf(task: Task, { script }: NamedScript) {
  const box = { died: new Promise(() => undefined) } as unknown as Box
  const { signal } = new AbortController()
  const context = { task, attempt: { id: 'attempt' }, box, signal, emit: () => undefined }
  await environment.setup(context)
  await runScript({ ...context, environment, script })
  const openBox = async () => Promise.reject(new Error('this verifier needs no box'))
  const artifacts = await environment.collect(context)
  return environment.verify({ task, artifacts, openBox, signal, emit: () => undefined })
}

/** Oracle 1, null agent and cheats 0. */
async function prove(task: Task) {
  const { scripts } = environment
  expect(await rewardOf(task, await scripts.oracle(task))).toMatchObject({ status: 'scored', reward: 1 })
  for (const fake of [scripts.nullAgent, ...(await scripts.cheats(task))]) {
    expect({ script: fake.name, reward: (await rewardOf(task, fake)).reward }).toEqual({ script: fake.name, reward: 0 })
  }
}

const lines = (rows: readonly object[]) => rows.map((row) => JSON.stringify(row)).join('\n')
const passages = lines([
  { _id: 'd1', title: 'Old Mill', text: 'The old mill of Goxby was built in 1871.' },
  { _id: 'd2', title: 'Goxby', text: 'Goxby lies on the river Anna.' },
  { _id: 'd3', title: 'New Mill', text: 'A mill on the Anna, and another mill.' },
])

describe('data sets of the field', () => {
  test('HotpotQA and 2Wiki: the passages of all questions, evidence by title within the own question', async () => {
    // Shape: hotpotqa/hotpot README at 02493f6, §JSON Format; 2WikiMultihopQA adds evidences.
    const context = [
      ['Old Mill', ['The old mill of Goxby', ' was built in 1871.']],
      ['Goxby', ['Goxby lies on the river Anna.']],
    ]
    const first = {
      _id: '5a7a06935542990198eaf050',
      question: 'On which river lies the town of the old mill?',
      answer: 'Anna',
      type: 'bridge',
      level: 'medium',
      supporting_facts: [
        ['Old Mill', 0],
        ['Goxby', 0],
      ],
      context,
      evidences: [],
    }
    const second = { ...first, _id: 'two', question: 'Which Goxby?', context: [['Goxby', ['Another Goxby.']]] }
    const toml =
      '[corpus]\nkind = "contexts"\nformat = "hotpotqa"\npath = "hotpot_dev.json"\n[questions]\nformat = "hotpotqa"\npath = "hotpot_dev.json"\n'
    const tasks = await load('hotpot', toml, { 'hotpot_dev.json': JSON.stringify([first, second]) })
    const data = tasks.map((task) => searchDataSchema.parse(task.data))
    expect(tasks.map(({ name, split }) => [name, split])).toEqual([
      ['5a7a06935542990198eaf050', 'dev'],
      ['two', 'dev'],
    ])
    expect(data.map(({ kind, evidence }) => [kind, evidence.length])).toEqual([
      ['bridge', 2],
      ['bridge', 1],
    ])
    // The same title over another text is another passage.
    expect(data[0]?.evidence).not.toContain(data[1]?.evidence[0])
    await prove(tasks[0] as Task)
  })

  test('MuSiQue: aliases are answers too, unanswerable questions are left out', async () => {
    const one = {
      id: '2hop__482757_12019',
      paragraphs: [
        { idx: 0, title: 'Goxby', paragraph_text: 'Goxby lies on the river Anna.', is_supporting: true },
        { idx: 1, title: 'Goxby', paragraph_text: 'Goxby has a mill.', is_supporting: false },
      ],
      question: 'On which river lies Goxby?',
      question_decomposition: [{ id: 1, question: 'Goxby >> river', answer: 'Anna', paragraph_support_idx: 0 }],
      answer: 'Anna',
      answer_aliases: ['the Anna river'],
      answerable: true,
    }
    const path = 'musique_ans_v1.0_train.jsonl'
    const toml = `[corpus]\nkind = "contexts"\nformat = "musique"\npath = "${path}"\n[questions]\nformat = "musique"\npath = "${path}"\n`
    const tasks = await load('musique', toml, { [path]: lines([one, { ...one, id: '2hop__x', answerable: false }]) })
    expect(tasks.map(({ name, split }) => [name, split])).toEqual([['2hop__482757_12019', 'train']])
    expect(tasks[0]?.data).toMatchObject({ kind: '2hop', golds: ['Anna', 'the Anna river'] })
    await prove(tasks[0] as Task)
  })

  const retrieval = (format: string, path: string, qrels: string) =>
    `[corpus]\nkind = "jsonl"\npath = "corpus.jsonl"\n[questions]\nformat = "${format}"\npath = "${path}"\nqrels = "${qrels}"\n[scoring]\npreset = "evidence"\n`

  test('BEIR: judged passages are the evidence, citing everything does not pay', async () => {
    const tasks = await load('beir', retrieval('beir', 'queries.jsonl', 'qrels/test.tsv'), {
      'corpus.jsonl': passages,
      'queries.jsonl': lines([
        { _id: 'PLAIN-2', text: 'mills on rivers', metadata: {} },
        { _id: 'PLAIN-3', text: 'nobody judged this' },
      ]),
      'qrels/test.tsv': 'query-id\tcorpus-id\tscore\nPLAIN-2\td3\t2\nPLAIN-2\td1\t1\nPLAIN-2\td2\t0\n',
    })
    expect(tasks.map(({ name, split }) => [name, split])).toEqual([['PLAIN-2', 'test']])
    const [task] = tasks as [Task]
    expect(task.data).toMatchObject({ golds: [], evidence: ['d3', 'd1'] })
    await prove(task)
    const all = ['d1', 'd2', 'd3']
    const steps = [
      ...all.map((id) => ({ tool: 'open', args: { id } })),
      { tool: 'answer', args: { answer: 'all', citations: all } },
    ]
    expect((await rewardOf(task, { name: 'all', weight: 1, script: { steps } })).reward).toBeCloseTo(0.8)
  })

  test('TREC: topics with tags that nobody closes, or lines with a tab; qrels with a column more', async () => {
    const files = { 'corpus.jsonl': passages, 'qrels.txt': '301 0 d2 1\n301 0 d1 0\n302 Q0 d1 1\n' }
    const sgml =
      '<top>\n<num> Number: 301\n<title> rivers of\n Goxby\n\n<desc> Description:\nWhich rivers?\n</top>\n<top>\n<num>302</num>\n<title>mills</title>\n</top>\n'
    const tasks = await load('trec', retrieval('trec', 'topics.txt', 'qrels.txt'), { ...files, 'topics.txt': sgml })
    expect(
      tasks.map(({ name, instruction, data }) => [name, instruction, searchDataSchema.parse(data).evidence]),
    ).toEqual([
      ['301', 'rivers of Goxby', ['d2']],
      ['302', 'mills', ['d1']],
    ])
    const tabs = await load('marco', retrieval('trec', 'queries.tsv', 'qrels.txt'), {
      ...files,
      'queries.tsv': '301\trivers of Goxby\n302\tmills\n',
    })
    expect(tabs.map(({ instruction }) => instruction)).toEqual(['rivers of Goxby', 'mills'])
  })

  test('Search-R1: Parquet rows, the question of its own column or out of the prompt', async () => {
    const rows = [
      { question: 'Where is Goxby?', prompt: [], reward_model: { ground_truth: { target: ['Anna'] } } },
      {
        question: null,
        prompt: [{ role: 'user', content: 'Answer with <answer> Beijing </answer>. Question: Which mill?\n' }],
        reward_model: { style: 'rule', ground_truth: { target: 'Old Mill' } },
      },
    ]
    const column = (name: 'question' | 'prompt' | 'reward_model') => rows.map((row) => row[name])
    const columnData = [
      { name: 'question', data: column('question'), type: 'STRING' as const },
      { name: 'prompt', data: column('prompt'), type: 'JSON' as const },
      { name: 'reward_model', data: column('reward_model'), type: 'JSON' as const },
    ]
    const toml =
      '[corpus]\nkind = "jsonl"\npath = "corpus.jsonl"\n[questions]\nformat = "search-r1"\npath = "train.parquet"\n[scoring]\npreset = "answer"\n'
    const parquet = new Uint8Array(parquetWriteBuffer({ columnData }))
    const tasks = await load('search-r1', toml, { 'corpus.jsonl': passages, 'train.parquet': parquet })
    expect(tasks.map(({ name, instruction, data }) => [name, instruction, searchDataSchema.parse(data).golds])).toEqual(
      [
        ['row-0', 'Where is Goxby?', ['Anna']],
        ['row-1', 'Which mill?', ['Old Mill']],
      ],
    )
  })

  test('FlashRAG: its lines as they are', async () => {
    const toml =
      '[corpus]\nkind = "jsonl"\npath = "corpus.jsonl"\n[questions]\nformat = "flashrag"\npath = "dev.jsonl"\n[scoring]\npreset = "answer"\n'
    const row = { id: 'dev_0', question: 'Which river?', golden_answers: ['Anna'], metadata: { type: 'bridge' } }
    const tasks = await load('flashrag', toml, { 'corpus.jsonl': passages, 'dev.jsonl': lines([row]) })
    expect(tasks[0]).toMatchObject({ name: 'dev_0', data: { golds: ['Anna'] } })
  })

  test('questions and judgements at absolute paths, and beside the folder', async () => {
    const outside = join(directory, 'published')
    await mkdir(outside, { recursive: true })
    await writeFile(join(outside, 'topics.txt'), '1\tmills\n')
    await writeFile(join(outside, 'qrels.txt'), '1 0 d1 1\n')
    const files = { 'corpus.jsonl': passages }
    for (const [name, place] of [
      ['absolute', outside],
      ['beside', '../published'],
    ] as const) {
      const toml = retrieval('trec', `${place}/topics.txt`, `${place}/qrels.txt`)
      expect((await load(name, toml, files)).map((task) => task.name)).toEqual(['1'])
    }
  })

  test.each([
    [
      'FlashRAG',
      'flashrag',
      'dev.jsonl',
      '\ufeff'.concat(
        lines([
          { id: 1, question: 'Which river?', golden_answers: ['Anna'] },
          { id: 'b', question: 'Which?' },
          { id: 'c', question: 'Which river?', golden_answers: ['Anna'] },
        ]),
        '\n{"id": "d", ',
      ),
      ['1', 'c'],
      ['b', 'dev.jsonl:4'],
    ],
    [
      'HotpotQA',
      'hotpotqa',
      'dev.json',
      JSON.stringify([
        ...['a', 'b', 'c'].map((_id) => ({
          _id,
          question: 'Where?',
          ...(_id === 'b' ? {} : { answer: 'Anna' }),
          supporting_facts: [['Goxby', 0]],
          context: [['Goxby', [`Goxby ${_id}.`]]],
        })),
        { _id: 'd' },
      ]),
      ['a', 'c'],
      ['b', 'd'],
    ],
    [
      'MuSiQue',
      'musique',
      'dev.jsonl',
      lines(
        ['2hop__a', '2hop__b', '2hop__c'].map((id) => ({
          id,
          question: 'Where?',
          answer: id === '2hop__b' ? null : 'Anna',
          paragraphs: [{ title: 'Goxby', paragraph_text: `Goxby ${id}.`, is_supporting: true }],
        })),
      ),
      ['2hop__a', '2hop__c'],
      ['2hop__b'],
    ],
    [
      'BEIR',
      'beir',
      'queries.jsonl',
      lines([
        { _id: 1, text: 'mills' },
        { _id: '2', text: '' },
        { _id: '3', text: 'rivers' },
      ]),
      ['1', '3'],
      ['2'],
    ],
  ] as const)(
    '%s: a row that cannot be used is told, and the others are there',
    async (_, format, path, text, there, told) => {
      const contexts = format === 'hotpotqa' || format === 'musique'
      const toml = `[corpus]\n${contexts ? `kind = "contexts"\nformat = "${format}"\npath = "${path}"` : 'kind = "jsonl"\npath = "corpus.jsonl"'}
[questions]\nformat = "${format}"\npath = "${path}"\n${format === 'beir' ? 'qrels = "qrels.tsv"\n[scoring]\npreset = "evidence"' : '[scoring]\npreset = "answer"'}\n`
      const files = { 'corpus.jsonl': passages, 'qrels.tsv': '1\td1\t1\n2\td1\t1\n3\td2\t1\n', [path]: text }
      await expect(load(`rows-${format}`, toml, files)).rejects.toMatchObject({ code: 'TASK_INVALID' })
      const refused: string[] = []
      const onRefused = (name: string) => void refused.push(name)
      const tasks = await environment.load(join(directory, `rows-${format}`), { onRefused })
      expect([tasks.map(({ name }) => name), refused]).toEqual([there, told])
      const [one] = await environment.load(join(directory, `rows-${format}`, there[1]))
      expect(one?.name).toBe(there[1])
    },
  )

  test.each([
    ['no judgements', retrieval('trec', 'topics.txt', 'nowhere.txt'), 'nowhere.txt'],
    ['a judgement of two words', retrieval('trec', 'topics.txt', 'broken.txt'), 'broken.txt:2'],
    ['no topic', retrieval('trec', 'broken.txt', 'qrels.txt'), 'topic'],
    ['an unknown passage', retrieval('trec', 'topics.txt', 'other.txt'), 'no passage d9'],
    [
      'answers asked of a collection without',
      retrieval('trec', 'topics.txt', 'qrels.txt').replace('"evidence"', '"grounded"'),
      'needs golden_answers',
    ],
    ['an unknown format', retrieval('squad', 'topics.txt', 'qrels.txt'), 'questions.format'],
  ])('%s is one clear error', async (_what, toml, said) => {
    const files = {
      'corpus.jsonl': passages,
      'topics.txt': '1\tmills\n',
      'qrels.txt': '1 0 d1 1\n',
      'broken.txt': '1 0 d1 1\n1 d2\n',
      'other.txt': '1 0 d9 1\n',
    }
    await expect(load(`bad-${said.replaceAll(/\W/g, '')}`, toml, files)).rejects.toMatchObject({
      code: 'TASK_INVALID',
      message: expect.stringContaining(said),
    })
  })
})
