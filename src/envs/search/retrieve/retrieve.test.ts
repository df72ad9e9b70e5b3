import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { decode, encode } from '@msgpack/msgpack'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { tempDir } from '../../../../test/fixtures/temp-dir.ts'
import { type Corpus, openCorpus } from '../corpus/index.ts'
import { type Retriever, serveRetrieve } from './index.ts'

const passages = [
  { id: '1', title: 'Old Mill', text: 'The old mill of Goxby was built in 1871.' },
  { id: '2', title: 'Goxby', text: 'Goxby lies on the river Anna.' },
  { id: '3', title: 'New Mill', text: 'A mill on the Anna, and another mill.' },
]

let directory: string
let corpus: Corpus
let retriever: Retriever
beforeAll(async () => {
  directory = tempDir()
  const path = join(directory, 'corpus.jsonl')
  await writeFile(path, passages.map((one) => JSON.stringify(one)).join('\n'))
  corpus = await openCorpus(join(directory, 'corpora'), { kind: 'jsonl', path })
  retriever = await serveRetrieve(corpus)
})
afterAll(async () => {
  await retriever[Symbol.asyncDispose]()
  await corpus[Symbol.asyncDispose]()
})

async function post(body: unknown, path = '/retrieve') {
  const response = await fetch(new URL(path, retriever.url), { method: 'POST', body: JSON.stringify(body) })
  return { status: response.status, body: (await response.json()) as never }
}

const mill = { id: '1', title: 'Old Mill', text: passages[0]?.text, contents: `"Old Mill"\n${passages[0]?.text}` }

describe('Search-R1, verl, slime', () => {
  test('with scores: one ranking per query, in their order, best first', async () => {
    const { body } = await post({ queries: ['old mill', 'river', 'zebra'], topk: 2, return_scores: true })
    expect(body).toMatchObject({
      result: [
        [{ document: mill, score: expect.any(Number) }, { document: { id: '3' } }],
        [{ document: { id: '2', contents: '"Goxby"\nGoxby lies on the river Anna.' } }],
        [],
      ],
    })
    const [[first, second]] = (body as { result: [[{ score: number }, { score: number }]] }).result
    expect(first.score).toBeGreaterThan(second.score)
  })

  // The reference server fails here, and with two queries takes the hits of the second for scores.
  test.each([1, 2, 3])('without scores, %i queries give plain documents', async (count) => {
    const queries = ['old mill', 'river', 'mill'].slice(0, count)
    const { status, body } = await post({ queries, topk: 1, return_scores: false })
    expect(status).toBe(200)
    const { result } = body as { result: readonly (readonly { id: string }[])[] }
    expect(result.map((hits) => hits.map(({ id }) => id))).toEqual([['1'], ['2'], ['3']].slice(0, count))
    expect(result[0]?.[0]).toMatchObject({ ...mill, document: mill })
    expect(result[0]?.[0]).not.toHaveProperty('score')
  })

  test.each(['top_k', 'k', 'top_n'])('as many as `%s` says, as servers of this family call it', async (key) => {
    const { body } = await post({ queries: ['mill Goxby Anna'], [key]: 1, return_score: true })
    expect(body).toMatchObject({ result: [[{ score: expect.any(Number) }]] })
    expect((body as { result: [unknown[]] }).result[0]).toHaveLength(1)
  })

  test('no topk means three, and no queries no rankings', async () => {
    const { body } = await post({ queries: ['mill Goxby Anna'] })
    expect((body as { result: [unknown[]] }).result[0]).toHaveLength(3)
    expect((await post({ queries: [] })).body).toEqual({ result: [] })
  })
})

test('SkyRL: one query, nested result', async () => {
  const { body } = await post({ query: 'old mill', topk: 1, return_scores: true })
  expect(body).toMatchObject({ result: [[{ document: mill, score: expect.any(Number) }]] })
})

test.each(['top_k', 'k'])('rLLM: `%s` and a flat list', async (key) => {
  const { body } = await post({ query: 'old mill', [key]: 2 })
  expect(body).toMatchObject({
    query: 'old mill',
    method: 'bm25',
    num_results: 2,
    results: [{ id: '1', content: mill.contents, score: expect.any(Number) }, { id: '3' }],
  })
})

describe('ZeroSearch: rLLM’s body, a bare list of texts', () => {
  const expected = [
    { text: `"Old Mill"\n${passages[0]?.text}`, id: '1' },
    { text: `"New Mill"\n${passages[2]?.text}`, id: '3' },
  ]

  test('at a path of its own', async () => {
    const { body } = await post({ query: 'old mill', top_k: 2 }, '/zerosearch/retrieve')
    expect(body).toMatchObject(expected)
    expect(body).toHaveLength(2)
  })

  test('at /retrieve where the server is told so; batches stay what they are', async () => {
    await using told = await serveRetrieve(corpus, { dialect: 'zerosearch' })
    const ask = async (asked: object) =>
      (await fetch(told.url, { method: 'POST', body: JSON.stringify(asked) })).json() as Promise<unknown>
    expect(await ask({ query: 'old mill', top_k: 2 })).toMatchObject(expected)
    expect(await ask({ queries: ['old mill'], topk: 1 })).toMatchObject({ result: [[{ id: '1' }]] })
  })
})

describe('ReCall and ReSearch, as FlashRAG is served there', () => {
  const [first, , third] = [
    { id: '1', contents: mill.contents },
    null,
    { id: '3', contents: `"New Mill"\n${passages[2]?.text}` },
  ]

  test('/search: one query, a list of documents; with scores a pair', async () => {
    expect((await post({ query: 'old mill', top_n: 2 }, '/search')).body).toEqual([first, third])
    const { body } = await post({ query: 'old mill', top_n: 2, return_score: true }, '/search')
    expect(body).toEqual([
      [first, third],
      [expect.any(Number), expect.any(Number)],
    ])
  })

  test('/batch_search: one list per query; with scores a pair of lists', async () => {
    const query = ['old mill', 'zebra']
    expect((await post({ query, top_n: 1 }, '/batch_search')).body).toEqual([[first], []])
    const { body } = await post({ query, top_n: 1, return_score: true }, '/batch_search')
    expect(body).toEqual([
      [[first], []],
      [[expect.any(Number)], []],
    ])
  })

  test.each([
    ['/search', { query: ' ' }],
    ['/search', { query: ['mill'] }],
    ['/batch_search', { query: 'mill' }],
    ['/batch_search', { query: ['mill'], top_n: 0 }],
  ])('%s refuses %j', async (path, asked) => {
    const { status, body } = await post(asked, path)
    expect(status).toBe(400)
    expect(body).toMatchObject({ error: { code: 'BODY_INVALID_SHAPE' } })
  })
})

test('BrowseComp-Plus has a path of its own', async () => {
  const { body } = await post({ query: 'old mill' }, '/browsecomp-plus/retrieve')
  const { result } = body as { result: readonly object[] }
  expect(result[0]).toEqual({ document: { title: 'Old Mill', text: passages[0]?.text }, docid: '1' })
})

test('Google-style, at a path of its own: a bare list', async () => {
  const { body } = await post({ query: 'old mill', topk: 1 }, '/google/retrieve')
  expect(body).toEqual([{ document: { contents: mill.contents } }])
})

test('GEM: MessagePack in and out, without a content type', async () => {
  const response = await fetch(retriever.url, {
    method: 'POST',
    body: encode({ queries: ['old mill'], topk: 1, return_scores: true }),
  })
  expect(response.headers.get('content-type')).toBe('application/msgpack')
  expect(decode(await response.arrayBuffer())).toMatchObject({ result: [[{ document: mill }]] })
})

test.each([
  ['not json', 400, 'BODY_INVALID_JSON'],
  ['{"queries": "mill"}', 400, 'BODY_INVALID_SHAPE'],
  ['{"topk": 3}', 400, 'BODY_INVALID_SHAPE'],
  ['{"queries": ["mill"], "topk": 0}', 400, 'BODY_INVALID_SHAPE'],
  ['{"query": "mill", "topk": 100000}', 400, 'BODY_INVALID_SHAPE'],
  ['', 400, 'BODY_INVALID_JSON'],
  [`{"query": "${'x'.repeat(9 * 2 ** 20)}"}`, 413, 'BODY_TOO_LARGE'],
])('a bad body is refused by name: %.40s', async (text, status, code) => {
  const response = await fetch(retriever.url, { method: 'POST', body: text })
  expect(response.status).toBe(status)
  expect(await response.json()).toMatchObject({ error: { code } })
})

test('other routes and methods are refused', async () => {
  expect((await fetch(retriever.url)).status).toBe(404)
  expect((await fetch(new URL('/other', retriever.url), { method: 'POST', body: '{}' })).status).toBe(404)
})

test.each([
  { origin: 'https://pages.example' },
  { origin: 'null' },
  { 'sec-fetch-site': 'cross-site' },
  { host: 'pages.example' },
])('a page of a browser is refused: %j', async (headers) => {
  const { hostname, port, pathname } = new URL(retriever.url)
  const asked = request({ hostname, port, path: pathname, method: 'POST', headers }).end('{"query": "mill"}')
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  response.resume()
  expect(response.statusCode).toBe(403)
})

test('equal questions are answered once, also at the same time', async () => {
  const before = { ...corpus.cache, misses: corpus.cache.misses }
  const asked = await Promise.all(Array.from({ length: 20 }, () => post({ query: 'a new question', topk: 3 })))
  expect(new Set(asked.map(({ body }) => JSON.stringify(body))).size).toBe(1)
  expect(corpus.cache.misses - before.misses).toBe(1)
})

test('a taken port is named', async () => {
  const port = Number(new URL(retriever.url).port)
  await expect(serveRetrieve(corpus, { port })).rejects.toMatchObject({ code: 'PORT_IN_USE' })
})
