import { z } from 'zod'
import type { Tool, ToolOutcome } from '../contract.ts'
import type { TaskOf } from '../define.ts'
import { defineTool } from '../tool.ts'
import type { Corpus, Hit } from './corpus/index.ts'
import type { SearchData } from './data.ts'
import { recordOf, requireAlive, type SearchRecord } from './record.ts'
import { retrieve, type Retrieval } from './retrieval/index.ts'

/** UTF-16 units that `open` shows at once. */
const pageLength = 8000
const longestQuery = 1000
/** What is read behind the answer says nothing of it: it can ground no citation. */
const answered: ToolOutcome = { status: 'error', text: 'The answer was given; nothing more is looked up.' }

/**
 * The tools of a search task. They run on the host: the corpus is not in the box, and what they did is written into the
 * attempt's record as they do it.
 */
export function searchTools(task: TaskOf<SearchData>, retrievalOf: () => Promise<Retrieval>): readonly Tool[] {
  return [searchTool(task.data, retrievalOf), openTool(async () => (await retrievalOf()).corpus), answerTool()]
}

function searchTool(data: SearchData, retrievalOf: () => Promise<Retrieval>): Tool {
  const { search } = data
  const query = z.string().min(1).max(longestQuery)
  return defineTool({
    name: 'search',
    description:
      `Searches the collection by words (BM25)${search.dense === undefined ? '' : ' and by meaning'} and returns the best passages of each query, ` +
      'each with its id and title.',
    input: z.object({
      query: z.union([query, z.array(query).min(1).max(8)]).describe('What to search for: one query, or a list.'),
      topk: z.int().min(1).max(search.maxTopk).optional().describe(`Passages per query. Default ${search.topk}.`),
    }),
    run: async ({ box, signal }, input) => {
      await requireAlive(box)
      const record = recordOf(box)
      if (record.answer !== null) return answered
      const queries = typeof input.query === 'string' ? [input.query] : input.query
      const { maxSearches } = search
      if (maxSearches !== null && record.started + queries.length > maxSearches) {
        const left = Math.max(0, maxSearches - record.started)
        return { status: 'error', text: `Only ${left} of ${maxSearches} searches are left. Answer with what you have.` }
      }
      record.started += queries.length
      const retrieval = await retrievalOf()
      const results = await Promise.all(
        queries.map(async (text) => ({
          query: text,
          hits: await retrieve(retrieval, data, {
            query: text,
            topk: input.topk ?? search.topk,
            noise: record.noise,
            signal,
          }),
        })),
      )
      signal.throwIfAborted()
      // Asked for beside the answer, and not read when it was given.
      if (hasAnswer(record)) return answered
      for (const result of results) {
        record.searches.push({ query: result.query, hits: result.hits.map(({ id }) => id) })
      }
      const shown = results.map(({ query: text, hits }) => resultText(text, hits, search.snippetLength))
      return { status: 'ok', text: shown.join('\n\n') }
    },
  })
}

function openTool(corpusOf: () => Promise<Corpus>): Tool {
  return defineTool({
    name: 'open',
    description: 'Shows one passage of the collection in full, by its id.',
    input: z.object({
      id: z.string().min(1).describe('Id of the passage, as search shows it.'),
      offset: z.int().min(0).optional().describe('Character to start at, for long passages. Default 0.'),
    }),
    run: async ({ box, signal }, { id, offset = 0 }) => {
      await requireAlive(box)
      const corpus = await corpusOf()
      const found = await corpus.get(id)
      signal.throwIfAborted()
      if (found === null) return { status: 'error', text: `There is no passage ${JSON.stringify(id)}.` }
      const record = recordOf(box)
      if (record.answer !== null) return answered
      if (offset > 0 && offset >= found.text.length) {
        return { status: 'error', text: `Passage ${JSON.stringify(id)} ends at character ${found.text.length}.` }
      }
      if (!record.opened.includes(id)) record.opened.push(id)
      const page = found.text.slice(offset, offset + pageLength)
      const rest = found.text.length - offset - page.length
      const more = rest > 0 ? `\n[${rest} more characters; open with offset ${offset + page.length}]` : ''
      return { status: 'ok', text: `${found.id} | ${found.title}\n${page}${more}` }
    },
  })
}

/** By itself, because it may have come while something was waited for. */
function hasAnswer({ answer }: SearchRecord): boolean {
  return answer !== null
}

function answerTool(): Tool {
  return defineTool({
    name: 'answer',
    description:
      'Gives the final answer. It counts once: the first call is final. Answer with a few words, nothing around them, ' +
      'and cite the ids of the passages that show it.',
    input: z.object({
      answer: z.string().min(1).max(2000).describe('The answer alone: a name, a year, a few words.'),
      citations: z.array(z.string()).max(50).describe('Ids of the passages that show the answer.'),
    }),
    run: async ({ box }, { answer, citations }): Promise<ToolOutcome> => {
      await requireAlive(box)
      const record = recordOf(box)
      if (record.answer !== null) return { status: 'error', text: 'There is an answer already; the first one counts.' }
      record.answer = { text: answer, citations }
      return { status: 'ok', text: 'The answer is recorded. You are done.' }
    },
  })
}

function resultText(query: string, hits: readonly Hit[], snippetLength: number): string {
  const head = `Results for ${JSON.stringify(query)}:`
  if (hits.length === 0) return `${head}\nNothing found.`
  return [head, ...hits.map((hit, i) => `[${i + 1}] ${hit.id} | ${hit.title}\n${snippet(hit, snippetLength)}`)].join(
    '\n',
  )
}

function snippet({ id, text }: Hit, length: number): string {
  if (text.length <= length) return text
  return `${text.slice(0, length)} [… ${text.length - length} more characters; open ${id}]`
}
