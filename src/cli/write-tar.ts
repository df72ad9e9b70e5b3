import { createReadStream, createWriteStream } from 'node:fs'
import { readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { pack } from 'tar-stream'

/** Writes the folder `name` of `parent` as a tar file, which has its name only when it is whole. */
export async function writeTar(parent: string, name: string, file: string): Promise<void> {
  const tar = pack()
  const unfinished = `${file}.${process.pid}.unfinished`
  try {
    const writing = pipeline(tar, createWriteStream(unfinished, { flags: 'wx', mode: 0o600 }))
    const filling = fill(tar, parent, name).catch((error: unknown) => {
      tar.destroy(error instanceof Error ? error : new Error(String(error)))
      throw error
    })
    await Promise.all([writing, filling])
    await rename(unfinished, file)
  } catch (error) {
    await rm(unfinished, { force: true })
    throw error
  }
}

async function fill(tar: ReturnType<typeof pack>, parent: string, name: string): Promise<void> {
  for (const entry of await readdir(join(parent, name), { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const path = join(entry.parentPath, entry.name)
    const { size, mtime } = await stat(path)
    const inTar = path.slice(parent.length + 1)
    const sink = tar.entry({ name: inTar, size, mtime, mode: 0o600 })
    await pipeline(createReadStream(path), sink)
  }
  tar.finalize()
}
