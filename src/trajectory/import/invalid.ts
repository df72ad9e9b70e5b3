import { PaddockError } from '../../core/index.ts'

/** The error of a place that cannot be imported. */
export function invalid(place: string, problem: string): PaddockError {
  return new PaddockError('IMPORT_INVALID', `${place}: ${problem}`, {
    fix: 'Correct the file, or name another `--format`. Nothing of it was imported.',
    data: { place },
  })
}
