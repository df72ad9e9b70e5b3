import { mkdirSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { workDirectory } from './host-dirs.ts'

/** The daemon does not know when an image was last used; an empty file per image does. */
function useDirectory(): string {
  const directory = join(workDirectory(), 'image-use')
  mkdirSync(directory, { recursive: true })
  return directory
}

/** Notes that a box starts from this image. */
export function noteImageUse(tag: string, at: Date): void {
  const path = join(useDirectory(), encodeURIComponent(tag))
  writeFileSync(path, '', { flag: 'a' })
  utimesSync(path, at, at)
}

/** When a box last started from each image, in milliseconds since the epoch. */
export function imageUses(): ReadonlyMap<string, number> {
  const directory = useDirectory()
  const names = readdirSync(directory)
  return new Map(names.map((name) => [decodeURIComponent(name), statSync(join(directory, name)).mtimeMs]))
}
