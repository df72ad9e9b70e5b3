import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { tempDir } from '../../../../test/fixtures/temp-dir.ts'
import type { Box } from '../../../sandbox/index.ts'
import type { Hit } from '../corpus/index.ts'
import { searchEnvironment } from '../index.ts'
import { recordOf, toArtifact } from '../record.ts'
import { fuse, noiseAt, withNoise } from './index.ts'

const { signal } = new AbortController()
const hit = (id: string, score = 1): Hit => ({ id, title: id, text: '', score })
const ids = (hits: readonly Hit[]) => hits.map(({ id }) => id)

describe('reciprocal-rank fusion', () => {
  test('sums 1 / (k + rank); what both rankings have wins, ties keep the order of the first', () => {
    const fused = fuse(
      [
        [hit('a'), hit('b'), hit('c')],
        [hit('d'), hit('b')],
      ],
      60,
      10,
    )
    expect(ids(fused)).toEqual(['b', 'a', 'd', 'c'])
    expect(fused.map(({ score }) => score)).toEqual([1 / 62 + 1 / 62, 1 / 61, 1 / 61, 1 / 63])
    expect(ids(fuse([[hit('a'), hit('b')], []], 60, 1))).toEqual(['a'])
  })
})

describe('noise', () => {
  const ranking = Array.from({ length: 25 }, (_, i) => hit(`p${i}`))
  const noisy = (share: number, query = 'a query', spared: readonly string[] = []) =>
    ids(withNoise(ranking, { query, share, topk: 5, spared: new Set(spared) }))

  test('takes a share of the places, the same ones for the same query, and never the evidence', () => {
    expect(noisy(0)).toEqual(['p0', 'p1', 'p2', 'p3', 'p4'])
    expect(noisy(1)).toEqual(['p24', 'p23', 'p22', 'p21', 'p20'])
    expect(noisy(1, 'a query', ['p1', 'p23'])).toEqual(['p24', 'p1', 'p22', 'p21', 'p20'])
    expect(noisy(0.5)).toEqual(noisy(0.5))
    const queries = Array.from({ length: 200 }, (_, i) => `query ${i}`)
    const kept = queries.flatMap((query) => noisy(0.3, query)).filter((id) => Number(id.slice(1)) < 5)
    expect(kept.length / 1000).toBeGreaterThan(0.65)
    expect(kept.length / 1000).toBeLessThan(0.75)
    // A place that a small share hits is hit by a larger one too: stages of a curriculum build on each other.
    for (const query of queries) {
      const [small, large] = [noisy(0.3, query), noisy(0.6, query)]
      for (const [i, id] of small.entries()) if (id !== `p${i}`) expect(large[i]).not.toBe(`p${i}`)
    }
  })
})

describe('a curriculum of noise', () => {
  const grows = { from: 0.1, to: 0.5, steps: 100, base: 4, seed: 0 }

  test('grows as ZeroSearch says, from its first share to its last, and stays there', () => {
    expect(noiseAt(grows, 0)).toBe(0.1)
    expect(noiseAt(grows, 50)).toBeCloseTo(0.1 + 0.4 / 3, 12)
    expect(noiseAt(grows, 100)).toBe(0.5)
    expect(noiseAt(grows, 10_000)).toBe(0.5)
    expect(noiseAt({ ...grows, base: 1 }, 25)).toBeCloseTo(0.2, 12)
    const shares = Array.from({ length: 101 }, (_, step) => noiseAt(grows, step))
    expect(shares).toEqual(shares.toSorted((a, b) => a - b))
  })

  test('is of the set, goes by the step of the run, and stands in record and verdict', async () => {
    const directory = tempDir()
    const passages = Array.from({ length: 80 }, (_, i) => ({
      id: `p${i}`,
      title: `Mill ${i}`,
      text: `a mill ${'by '.repeat(i)}`,
    }))
    await writeFile(join(directory, 'passages.jsonl'), passages.map((one) => JSON.stringify(one)).join('\n'))
    const question = { id: 'q', question: 'Which?', golden_answers: ['Mill 0'], evidence: ['p0'] }
    await writeFile(join(directory, 'questions.jsonl'), JSON.stringify(question))
    const toml = (noise: string) => `[corpus]\nkind = "jsonl"\npath = "passages.jsonl"\n[search]\n${noise}`
    await writeFile(join(directory, 'search.toml'), toml('noise_curriculum = { to = 1.0, steps = 10, seed = 3 }'))
    const environment = searchEnvironment({ directory: join(directory, 'corpora') })
    const [task] = await environment.load(directory)
    if (task === undefined) throw new Error('no task')
    const hitsAt = async (trainingStep?: number) => {
      const box = { died: new Promise(() => undefined) } as unknown as Box
      await environment.setup({
        task,
        attempt: { id: 'attempt' },
        box,
        signal,
        emit: () => undefined,
        trainingStep: trainingStep ?? null,
      })
      await environment
        .tools(task)
        .find(({ name }) => name === 'search')
        ?.run({ task, attempt: { id: 'attempt' }, box, signal }, { query: 'mill', topk: 10 })
      const artifacts = { items: [toArtifact(recordOf(box))] }
      const openBox = () => Promise.reject(new Error('no box'))
      const verdict = await environment.verify({ task, artifacts, openBox, signal, emit: () => undefined })
      return { hits: recordOf(box).searches[0]?.hits ?? [], noise: verdict.components['noise'] }
    }
    const [none, middle, again, all] = [await hitsAt(), await hitsAt(5), await hitsAt(5), await hitsAt(10)]
    expect([none.noise, all.noise]).toEqual([0, 1])
    expect(middle).toEqual(again)
    const spoilt = (one: typeof none) => one.hits.filter((id, i) => id !== none.hits[i]).length
    expect(spoilt(middle)).toBeGreaterThan(0)
    expect(spoilt(middle)).toBeLessThan(spoilt(all))
    await writeFile(join(directory, 'search.toml'), toml('noise = 0.5\nnoise_curriculum = { to = 1.0, steps = 10 }'))
    await expect(environment.load(directory)).rejects.toMatchObject({ code: 'TASK_INVALID' })
  })
})

/** A server whose vectors are true by construction: one axis per word of a tiny language of synonyms. */
const axes = [/mill|grinder/i, /river|stream/i, /town|village/i]
const vectorOf = (text: string) => axes.map((axis) => (axis.test(text) ? 1 : 0.01))

describe('search by meaning beside words', () => {
  let directory: string
  let server: Server
  let asked: { readonly input: readonly string[]; readonly authorization: string | undefined }[]
  let answer: (input: readonly string[]) => unknown
  const vectors = (input: readonly string[]) => ({
    // Not in the order that was asked for, as servers may.
    data: input.map((text, index) => ({ object: 'embedding', index, embedding: vectorOf(text) })).toReversed(),
  })

  beforeAll(async () => {
    directory = tempDir()
    asked = []
    answer = vectors
    const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      const body = (await json(request)) as { model: string; input: string[] }
      asked.push({ input: body.input, authorization: request.headers.authorization })
      const said = answer(body.input)
      response.writeHead(said === null ? 500 : 200, { 'content-type': 'application/json' })
      response.end(JSON.stringify(said ?? { error: 'out of memory' }))
    }
    server = createServer((request, response) => void serve(request, response))
    await new Promise<void>((done) => void server.listen(0, '127.0.0.1', done))
    const passages = [
      { id: 'd1', title: 'One', text: 'A grinder of flour.' },
      { id: 'd2', title: 'Two', text: 'The stream is cold.' },
      { id: 'd3', title: 'Three', text: 'A village with a grinder at the stream.' },
      ...Array.from({ length: 70 }, (_, i) => ({
        id: `x${i}`,
        title: `X ${i}`,
        text: 'Something else about nothing.',
      })),
    ]
    await writeFile(join(directory, 'corpus.jsonl'), passages.map((one) => JSON.stringify(one)).join('\n'))
    const question = { id: 'q1', question: 'Which mill?', golden_answers: ['grinder'], evidence: ['d3'] }
    await writeFile(join(directory, 'questions.jsonl'), JSON.stringify(question))
    const { port } = server.address() as AddressInfo
    await writeFile(
      join(directory, 'search.toml'),
      `[corpus]\nkind = "jsonl"\npath = "corpus.jsonl"\n[search.dense]\nurl = "http://127.0.0.1:${port}/v1"\nmodel = "synonyms"\nkey_env = "SYNONYMS_KEY"\nquery_prefix = "query: "\n`,
    )
  })
  afterAll(async () => {
    server.closeAllConnections()
    server.close()
  })

  const open = async () => {
    const environment = searchEnvironment({
      directory: join(directory, 'corpora'),
      environment: { SYNONYMS_KEY: 'secret' },
    })
    const [task] = await environment.load(directory)
    if (task === undefined) throw new Error('no task')
    const box = { died: new Promise(() => undefined) } as unknown as Box
    const search = environment.tools(task).find(({ name }) => name === 'search')
    if (search === undefined) throw new Error('no tool')
    return {
      environment,
      task,
      box,
      ask: (query: string) => search.run({ task, attempt: { id: 'attempt' }, box, signal }, { query, topk: 3 }),
    }
  }

  test('a server that fails, lies about numbers or sizes is infra, and no vectors are kept', async () => {
    for (const [said, why] of [
      [() => null, 'HTTP 500'],
      [() => ({ data: [] }), '0 vectors for 64 texts'],
      [
        (input: readonly string[]) => ({
          data: input.map((_, index) => ({ index, embedding: [1, index].slice(0, 1 + (index % 2)) })),
        }),
        'several sizes',
      ],
      [() => ({ vectors: [] }), 'does not fit'],
    ] as const) {
      answer = said
      const { ask } = await open()
      expect(await ask('mill')).toMatchObject({ status: 'infra', text: expect.stringContaining(why) })
    }
    answer = vectors
    const folders = await readdir(join(directory, 'corpora'))
    const files = (await Promise.all(folders.map((one) => readdir(join(directory, 'corpora', one))))).flat()
    expect(files.filter((name) => name.startsWith('dense-'))).toEqual([])
  })

  test('finds what no word of the query stands in, and asks for the passages once', async () => {
    asked = []
    const { environment, task, box, ask } = await open()
    await environment.setup({ task, attempt: { id: 'attempt' }, box, signal, emit: () => undefined })
    expect(asked.map(({ input }) => input.length)).toEqual([64, 9])
    expect(asked[0]?.authorization).toBe('Bearer secret')
    expect((await ask('mill near a river in a town')).status).toBe('ok')
    expect(recordOf(box).searches[0]?.hits[0]).toBe('d3')
    expect(asked.at(-1)?.input).toEqual(['query: mill near a river in a town'])
    const again = await open()
    expect(await again.ask('mill near a river in a town')).toMatchObject({ status: 'ok' })
    expect(recordOf(again.box).searches).toEqual(recordOf(box).searches)
    // The passages were not asked for anew: one request more, that of the query.
    expect(asked).toHaveLength(4)
  })
})
