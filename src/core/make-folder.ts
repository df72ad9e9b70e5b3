import { mkdir } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

/**
 * Makes a folder and those above it that are missing; one that is there is left alone. Rejects with what mkdir(2) says. Node's own
 * `recursive` never ends where a folder above exists and the one below is still ENOENT, as under /proc.
 */
export async function makeFolder(folder: string, mode = 0o777): Promise<void> {
  const path = resolve(folder)
  const make = () => mkdir(path, { mode })
  const made = await make().then(
    () => null,
    (error: NodeJS.ErrnoException) => error,
  )
  if (made === null) return
  if (made.code !== 'ENOENT' || dirname(path) === path) {
    // With `recursive` mkdir takes a folder that is there, and reports anything else as an error.
    if (made.code !== 'EEXIST') throw made
    await mkdir(path, { recursive: true, mode })
    return
  }
  await makeFolder(dirname(path), mode)
  await make().catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
}
