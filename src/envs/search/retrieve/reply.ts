import type { Hit } from '../corpus/index.ts'
import type { RetrieveRequest } from './request.ts'

/**
 * The answer in the request's dialect, one ranking per query, in their order. Documents carry every name that a client of
 * the field reads: `contents` (Search-R1, GEM: the title in quotes on the first line), `title` and `text` (verl and the
 * demo corpora), `id`.
 */
export function retrieveReply(request: RetrieveRequest, rankings: readonly (readonly Hit[])[]): object {
  const [first = []] = rankings
  switch (request.dialect) {
    case 'search-r1':
    case 'skyrl':
      return { result: rankings.map((hits) => hits.map((hit) => ranked(hit, request.returnScores))) }
    case 'browsecomp-plus':
      return { result: first.map(({ id, title, text }) => ({ document: { title, text }, docid: id })) }
    case 'google':
      return first.map((hit) => ({ document: { contents: contentsOf(hit) } }))
    case 'zerosearch':
      return first.map((hit) => ({ id: hit.id, title: hit.title, text: contentsOf(hit), score: hit.score }))
    case 'recall': {
      const lists = rankings.map((hits) => hits.map((hit) => ({ id: hit.id, contents: contentsOf(hit) })))
      const scores = rankings.map((hits) => hits.map(({ score }) => score))
      const documents = request.batch === true ? lists : (lists[0] ?? [])
      return request.returnScores ? [documents, request.batch === true ? scores : (scores[0] ?? [])] : documents
    }
    case 'rllm': {
      const results = first.map((hit) => ({ id: hit.id, content: contentsOf(hit), score: hit.score }))
      return { query: request.queries[0] ?? '', method: 'bm25', results, num_results: results.length }
    }
  }
}

/**
 * Without scores the hit is the document itself, as the reference server means it. Agent-lightning reads `document` in
 * both cases, so a plain hit carries that too.
 */
function ranked(hit: Hit, scores: boolean): object {
  const { id, title, text, score } = hit
  const document = { id, title, text, contents: contentsOf(hit) }
  return scores ? { document, score } : { ...document, document }
}

function contentsOf({ title, text }: Hit): string {
  return `"${title}"\n${text}`
}
