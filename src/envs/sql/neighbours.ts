import { PaddockError } from '../../core/index.ts'
import type { SqlData } from './data.ts'
import { engineOf } from './engines/index.ts'
import type { RunnerRequest } from './runner.ts'
import type { RunnerAnswer } from './wire.ts'

/** Shares of rows that the subsets leave out, in turn. */
const fractions = [0.4, 0.15, 0.7]

/**
 * What makes the neighbours of a task's database in a verifier's box: subsets with keys intact, and the same generator
 * with other seeds. A query that is right by accident, or knows the answer by heart, differs from gold there.
 */
export function neighbourRequests({ database, neighbours }: SqlData): readonly RunnerRequest<'subset' | 'build'>[] {
  const engine = engineOf(database)
  const subsets = Array.from({ length: neighbours.subsets }, (_, i): RunnerRequest<'subset'> => {
    const fraction = fractions[i % fractions.length] ?? 0.4
    return { op: 'subset', db: engine.database, out: engine.neighbour('subset', i + 1), seed: i + 1, fraction }
  })
  if (database.kind === 'file') return subsets
  const rebuilds = Array.from({ length: neighbours.rebuilds }, (_, i): RunnerRequest<'build'> => {
    return { op: 'build', script: database.script, out: engine.neighbour('rebuild', i + 1), seed: i + 1 }
  })
  return [...subsets, ...rebuilds]
}

/** Throws `TASK_INVALID` when one of them could not be made. */
export function requireNeighbours(data: SqlData, answers: readonly RunnerAnswer<'subset' | 'build'>[]): void {
  for (const answer of answers) {
    if (answer.status === 'ok') continue
    throw new PaddockError('TASK_INVALID', `A neighbour of ${data.database.name} cannot be made: ${answer.message}`, {
      fix: 'The build script is called as `build.py <file> <seed>` and must work for every seed.',
    })
  }
}
