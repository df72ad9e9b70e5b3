import { sha256 } from '../../core/index.ts'
import {
  answerContains,
  answerF1,
  answerInEvidence,
  answerMatch,
  citationsGrounded,
  compose,
  type Composition,
  type DraftFacts,
  duplicateQueries,
  evidenceRecall,
  overSearch,
  penalised,
  scored,
  unscored,
  type VerdictDraft,
} from '../../reward/index.ts'
import { packArtifact } from '../artifacts.ts'
import type { VerifyContext } from '../contract.ts'
import type { TaskOf } from '../define.ts'
import { termsOf } from './analysis/index.ts'
import type { Corpus } from './corpus/index.ts'
import type { SearchData } from './data.ts'
import { fromArtifacts, type SearchRecord } from './record.ts'

/** Changes when the same record could get another verdict. */
export const searchVerifierVersion = '1'

/** Longest answer that counts as well formed, in words. */
const longestAnswer = 30

/**
 * How each preset composes. Every one but `answer` is closed to an answer that cites what was never shown: knowing a gold
 * is not finding it.
 */
const compositions: Readonly<Record<SearchData['scoring']['preset'], Composition>> = {
  grounded: { kind: 'gate', gates: { citations_grounded: 1 }, over: { kind: 'product', of: ['em'] } },
  'grounded-f1': { kind: 'gate', gates: { citations_grounded: 1 }, over: { kind: 'product', of: ['f1'] } },
  answer: { kind: 'product', of: ['em'] },
  // Precision counts as much as recall, so that citing everything does not pay.
  evidence: { kind: 'gate', gates: { citations_grounded: 1 }, over: { kind: 'product', of: ['citation_f1'] } },
}

/** Scores the host's own record of an attempt; nothing that the agent could write is looked at. */
export async function verifyRecord(
  context: Omit<VerifyContext, 'task'> & { readonly task: TaskOf<SearchData> },
  corpusOf: () => Promise<Corpus>,
): Promise<VerdictDraft> {
  const { task, artifacts, signal } = context
  signal.throwIfAborted()
  const record = fromArtifacts(artifacts)
  const { components, why } = await measure(record, task.data, await citedTexts(record, await corpusOf()))
  const { golds, evidence, scoring } = task.data
  const noise = record.noise === undefined ? {} : { noise: record.noise }
  const packed = await Promise.all(artifacts.items.map(packArtifact))
  const facts: DraftFacts = {
    verifier: {
      id: `search/${task.name}`,
      version: searchVerifierVersion,
      sha256: sha256(JSON.stringify({ golds, evidence, scoring })),
    },
    trust: 'host',
    components: { ...components, ...noise },
    evidence: why.join('\n'),
    artifacts: packed.map(({ path, sha256: digest, sizeBytes }) => ({ path, sha256: digest, sizeBytes })),
  }
  const composed = compose(components, compositions[scoring.preset])
  if (!composed.ok) return unscored('unscorable', composed.reason, facts)
  return scored(penalised(composed.reward, components, scoring.penalties), facts)
}

async function citedTexts({ answer }: SearchRecord, corpus: Corpus): Promise<ReadonlyMap<string, string>> {
  const found = await Promise.all([...new Set(answer?.citations)].map((id) => corpus.get(id)))
  return new Map(found.flatMap((one) => (one === null ? [] : [[one.id, `${one.title}\n${one.text}`]])))
}

async function measure(
  { searches, opened, answer }: SearchRecord,
  { golds, evidence, scoring }: SearchData,
  cited: ReadonlyMap<string, string>,
): Promise<{ readonly components: Readonly<Record<string, number>>; readonly why: readonly string[] }> {
  const text = answer?.text ?? ''
  const citations = answer?.citations ?? []
  const shown = new Set([...searches.flatMap(({ hits }) => hits), ...opened])
  const read = citations.filter((id) => shown.has(id)).map((id) => cited.get(id) ?? '')
  // A collection without answers has nothing to hold an answer against.
  const answered = golds.length === 0 ? {} : await answerResults(golds, text, read)
  const results = {
    ...answered,
    ...(scoring.preset === 'evidence' ? { citation_f1: citationF1(citations, evidence) } : {}),
    citations_grounded: citationsGrounded(citations, shown),
    evidence_recall: evidenceRecall(evidence, shown),
    evidence_recall_at_3: evidenceRecall(
      evidence,
      searches.flatMap(({ hits }) => hits.slice(0, 3)),
    ),
    format: formatOf(text),
    duplicate_queries: duplicateQueries(searches.map(({ query }) => queryKey(query))),
    over_search: overSearch(searches.length, scoring.allowedSearches),
  }
  const entries = Object.entries(results)
  return {
    components: Object.fromEntries(entries.map(([name, { value }]) => [name, value])),
    why: entries.map(([name, { value, why }]) => `${name} ${value}: ${why}`),
  }
}

async function answerResults(golds: readonly string[], text: string, read: readonly string[]) {
  return {
    em: await answerMatch(golds)(text),
    f1: await answerF1(golds)(text),
    sub_em: await answerContains(golds)(text),
    answer_in_citations: answerInEvidence(text, read),
  }
}

/** Harmonic mean of the share of cited passages that are evidence, and of evidence that is cited. */
function citationF1(citations: readonly string[], evidence: readonly string[]) {
  const cited = new Set(citations)
  const right = evidence.filter((id) => cited.has(id)).length
  const value = cited.size + evidence.length === 0 ? 0 : (2 * right) / (cited.size + evidence.length)
  return { value, why: `${right} of ${evidence.length} judged passages among ${cited.size} cited` }
}

/** Two queries are the same when the index sees the same words, in whatever order. */
function queryKey(query: string): string {
  return termsOf(query).toSorted().join(' ')
}

function formatOf(text: string): { readonly value: number; readonly why: string } {
  if (text.trim() === '') return { value: 0, why: 'no answer was given' }
  const words = text.trim().split(/\s+/).length
  const fits = words <= longestAnswer && !text.includes('\n')
  return { value: fits ? 1 : 0, why: fits ? 'a short answer in one line' : `${words} words or several lines` }
}
