import { closeSync, openSync, readSync, writeSync } from 'node:fs'
import { PaddockError } from '../../core/index.ts'
import { generationsOf, headBytes, headOf, journalFile, markedEnd } from '../journal/index.ts'

const chunkBytes = 2 ** 20

/** A journal's file, up to where it was written when it was looked at. Open, so that an owner who removes it takes nothing away. */
export interface HeldJournal {
  readonly generation: number
  readonly end: number
  readonly fd: number
}

/** The generations from `first` on, as far as they are written now. Throws `STORE_CORRUPT` for a head that cannot be read. */
export function holdJournals(logFile: string, first: number): readonly HeldJournal[] {
  const held: HeldJournal[] = []
  try {
    for (const generation of generationsOf(logFile).filter((one) => one >= first)) {
      const fd = openSync(journalFile(logFile, generation), 'r')
      held.push({ generation, fd, end: endOf(logFile, generation) })
    }
    return held
  } catch (error) {
    releaseJournals(held)
    throw error
  }
}

export function releaseJournals(held: readonly HeldJournal[]): void {
  for (const { fd } of held) closeSync(fd)
}

/** Writes what is held, and not what came behind it, beside another log. */
export function copyJournals(held: readonly HeldJournal[], logFile: string): void {
  for (const { generation, end, fd } of held) {
    const to = openSync(journalFile(logFile, generation), 'wx', 0o600)
    try {
      writeSync(to, headOf(generation, end), 0, headBytes, 0)
      const chunk = Buffer.alloc(chunkBytes)
      for (let at = headBytes; at < end;) {
        const read = readSync(fd, chunk, 0, Math.min(chunkBytes, end - at), at)
        if (read === 0) throw damaged(generation, `it ends at ${at} and was written up to ${end}`)
        for (let done = 0; done < read;) done += writeSync(to, chunk, done, read - done, at + done)
        at += read
      }
    } finally {
      closeSync(to)
    }
  }
}

/** Its writer changes the head in place, and a look may meet that in the middle. */
function endOf(logFile: string, generation: number): number {
  for (let left = 100; ; left -= 1) {
    const end = markedEnd(logFile, generation)
    if (typeof end === 'number') return end
    if (left === 0) throw damaged(generation, 'its head cannot be read')
  }
}

function damaged(generation: number, what: string): PaddockError {
  return new PaddockError('STORE_CORRUPT', `journal ${generation}: ${what}`, {
    fix: 'See `paddock fsck`; what is whole is taken over by `paddock salvage`.',
  })
}
