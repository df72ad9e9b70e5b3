import { PaddockError } from '../../core/index.ts'
import type { Box } from '../../sandbox/index.ts'
import { databasePath } from './box.ts'
import type { SqlData } from './data.ts'
import { askAll, type RunnerRequest, verifierLimits } from './runner.ts'

/** Shares of rows that the subsets leave out, in turn. */
const fractions = [0.4, 0.15, 0.7]

/**
 * Makes the neighbours of a task's database in a verifier's box and gives their paths: subsets with keys intact, and the
 * same generator with other seeds. A query that is right by accident, or knows the answer by heart, differs from gold
 * there. Throws `TASK_INVALID` when a generator fails.
 */
export async function makeNeighbours(box: Box, data: SqlData, signal: AbortSignal): Promise<readonly string[]> {
  const { database, neighbours, limits } = data
  const subsets = Array.from({ length: neighbours.subsets }, (_, i): RunnerRequest<'subset'> => {
    const fraction = fractions[i % fractions.length] ?? 0.4
    return { op: 'subset', db: databasePath, out: `/tmp/subset-${i + 1}.sqlite`, seed: i + 1, fraction }
  })
  const rebuilds =
    database.kind === 'script'
      ? Array.from({ length: neighbours.rebuilds }, (_, i): RunnerRequest<'build'> => {
          return { op: 'build', script: database.script, out: `/tmp/rebuild-${i + 1}.sqlite`, seed: i + 1 }
        })
      : []
  const requests = [...subsets, ...rebuilds]
  if (requests.length === 0) return []
  const answers = await askAll<'subset' | 'build'>(box, requests, {
    limits: { ...verifierLimits, timeoutMs: Math.max(limits.verifyMs, 30_000) },
    role: 'verifier',
    shown: `sql: ${requests.length} neighbours`,
    signal,
  })
  for (const answer of answers) {
    if (answer.status === 'error') {
      throw new PaddockError('TASK_INVALID', `A neighbour of ${database.name} cannot be made: ${answer.message}`, {
        fix: 'The build script is called as `build.py <file> <seed>` and must work for every seed.',
      })
    }
  }
  return requests.map(({ out }) => out)
}
