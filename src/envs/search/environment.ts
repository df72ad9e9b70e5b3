import type { Environment } from '../contract.ts'
import { defineEnvironment, type TaskOf } from '../define.ts'
import { plainBox } from '../plain-box.ts'
import type { Corpus } from './corpus/index.ts'
import { type SearchData, searchDataSchema } from './data.ts'
import { worldsGenerator } from './generator.ts'
import { loadQuestions, sourceOf } from './load.ts'
import { cheatsOf, distractorsOf, oracleOf } from './scripts.ts'
import { outsideWork } from './outside.ts'
import { recordOf, toArtifact } from './record.ts'
import { DenseCache } from './dense-cache.ts'
import { noiseAt, type Retrieval } from './retrieval/index.ts'
import { CorpusCache } from './corpus-cache.ts'
import { searchTools } from './tools.ts'
import { searchVerifierVersion, verifyRecord } from './verify.ts'

/** Options of {@link searchEnvironment}. */
export interface SearchOptions {
  /** Directory in which built corpora are kept; made at first use. Default `.paddock/corpora`. */
  readonly directory?: string
  /** Where the keys of embeddings servers are looked up. Default: the process's own environment variables. */
  readonly environment?: Readonly<Record<string, string | undefined>>
}

/**
 * Questions over a local collection of passages: the agent searches (BM25), opens passages, and answers with citations.
 * Corpus, index and record of the attempt are on the host; the box holds none of them.
 */
export function searchEnvironment(options: SearchOptions = {}): Environment {
  const cache = new CorpusCache(options.directory ?? '.paddock/corpora')
  const corpusOf = (task: TaskOf<SearchData>): Promise<Corpus> =>
    cache.open(sourceOf(task.data.corpus.source, task.source))
  const dense = new DenseCache(options.environment ?? process.env)
  const retrievalOf = async (task: TaskOf<SearchData>): Promise<Retrieval> => {
    const corpus = await corpusOf(task)
    return { corpus, dense: await dense.open(task, corpus) }
  }
  return defineEnvironment({
    name: 'search',
    apiVersion: 1,
    verifierVersion: searchVerifierVersion,
    task: searchDataSchema,
    generators: [worldsGenerator(cache)],
    load: (path, o) => loadQuestions(path, { ...o, cache }),
    box: () => plainBox,
    setup: async ({ task, box, trainingStep }) => {
      await retrievalOf(task)
      const record = recordOf(box)
      const { curriculum } = task.data.search
      if (curriculum !== undefined) record.noise = noiseAt(curriculum, trainingStep ?? 0)
    },
    tools: (task) => searchTools(task, () => retrievalOf(task)),
    systemPrompt: ({ data }) => (data.scoring.preset === 'evidence' ? evidencePrompt : answerPrompt),
    collect: async ({ box }) => ({ items: [toArtifact(recordOf(box))] }),
    verify: (context) => verifyRecord(context, () => corpusOf(context.task)),
    outside: outsideWork,
    scripts: { oracle: oracleOf, cheats: cheatsOf, distractors: distractorsOf },
  })
}

const common =
  'a collection of passages that only the tool `search` can reach. Search step by step: what one passage says tells you ' +
  'what to search for next.'
const answerPrompt =
  `You answer a question from ${common} Give the answer once, with the tool \`answer\`, and cite ` +
  'the passages that show it. What you remember does not count.'
const evidencePrompt =
  `You find the passages that answer a question in ${common} Hand them in once, with the tool \`answer\`: cite all of ` +
  'them and no other.'
