import { readFile } from 'node:fs/promises'
import { PaddockError } from '../../../core/index.ts'

/**
 * Judged passages by question, those of relevance above 0 only. Two forms: TREC's `qid 0 docid relevance`, and BEIR's
 * `query-id<TAB>corpus-id<TAB>score` under a head. Throws `TASK_INVALID` with the line.
 */
export async function readQrels(path: string): Promise<ReadonlyMap<string, readonly string[]>> {
  const found = new Map<string, string[]>()
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw invalid(path, 'cannot be read', cause)
  })
  for (const [i, line] of text.split('\n').entries()) {
    if (line.trim() === '' || (i === 0 && /^query-id\s/.test(line))) continue
    const fields = line.trim().split(/\s+/)
    const [question, passage, relevance] = fields.length === 4 ? [fields[0], fields[2], fields[3]] : fields
    if (question === undefined || passage === undefined || !/^-?\d+(?:\.\d+)?$/.test(relevance ?? '')) {
      throw invalid(`${path}:${i + 1}`, 'is no judgement')
    }
    if (Number(relevance) <= 0) continue
    const list = found.get(question)
    if (list === undefined) found.set(question, [passage])
    else if (!list.includes(passage)) list.push(passage)
  }
  return found
}

function invalid(place: string, what: string, cause?: unknown): PaddockError {
  return new PaddockError('TASK_INVALID', `${place}: ${what}`, {
    cause,
    data: { place },
    fix: 'Lines are `qid 0 docid relevance` (TREC) or `query-id<TAB>corpus-id<TAB>score` (BEIR).',
  })
}
