import { PaddockError } from '../../core/index.ts'

/** The error of a place that cannot be taken in. */
export function invalid(place: string, problem: string): PaddockError {
  return new PaddockError('IMPORT_INVALID', `${place}: ${problem}`, {
    fix: 'Correct the file, or name another `--format`. Nothing of it was taken in.',
    data: { place },
  })
}
