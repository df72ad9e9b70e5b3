/** The files of a journal: one per generation, beside the log that they belong to. */
import { readdirSync, rmSync } from 'node:fs'
import { basename, dirname } from 'node:path'

/** A point between two frames. */
export interface Place {
  readonly generation: number
  readonly offset: number
}

/** The file of a generation, for the log in `logFile`. */
export function journalFile(logFile: string, generation: number): string {
  return `${logFile}-journal-${generation}`
}

/** The generations that are there, oldest first. */
export function generationsOf(logFile: string): number[] {
  const prefix = basename(journalFile(logFile, 0)).slice(0, -1)
  return readdirSync(dirname(logFile))
    .filter((name) => name.startsWith(prefix) && /^\d+$/.test(name.slice(prefix.length)))
    .map((name) => Number(name.slice(prefix.length)))
    .sort((a, b) => a - b)
}

/** Removes the generations before `generation`. */
export function removeBefore(logFile: string, generation: number): void {
  for (const old of generationsOf(logFile)) {
    if (old < generation) rmSync(journalFile(logFile, old), { force: true })
  }
}

export function isBefore(one: Place, other: Place): boolean {
  return one.generation < other.generation || (one.generation === other.generation && one.offset < other.offset)
}
