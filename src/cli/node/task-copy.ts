import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { chmod, mkdir, rename, rm, stat, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Digest, newId, PaddockError } from '../../core/index.ts'
import { insideLink, insidePath, type TaskFiles } from '../../rollout/index.ts'

/** Where the files come from. */
export interface FilesThere {
  list(): Promise<TaskFiles>
  /** Writes the file of a digest. */
  file(digest: Digest, to: string): Promise<void>
}

/**
 * Files of tasks in a directory of the node, fetched once for each state of them. Resolves with their path. Throws `NODE_UNFIT` for a file
 * that is another than was listed, `PATH_UNSAFE`, `TASK_UNSUPPORTED`.
 */
export async function copyOfTasks(there: FilesThere, directory: string): Promise<string> {
  const list = await there.list()
  // A task is called after its folder.
  const whole = join(directory, list.digest, insidePath(list.name))
  const path = list.single === null ? whole : join(whole, insidePath(list.single))
  if (await isThere(whole)) return path
  const making = join(directory, `${newId()}.part`)
  try {
    await mkdir(making, { recursive: true })
    await fill(there, list, making)
    await mkdir(dirname(whole), { recursive: true })
    await rename(making, whole).catch(async (error: unknown) => {
      if (!(await isThere(whole))) throw error
    })
  } finally {
    await rm(making, { recursive: true, force: true })
  }
  return path
}

async function fill(there: FilesThere, { files }: TaskFiles, making: string): Promise<void> {
  // Links last: nothing is ever written through one.
  for (const file of files) {
    if (!('sha256' in file)) continue
    const to = join(making, insidePath(file.path))
    await mkdir(dirname(to), { recursive: true })
    await there.file(file.sha256, to)
    if ((await sha256Of(to)) !== file.sha256) {
      throw new PaddockError('NODE_UNFIT', `the file ${file.path} of the tasks is another than the coordinator listed`)
    }
    if (file.executable) await chmod(to, 0o755)
  }
  for (const file of files) {
    if (!('link' in file)) continue
    const to = join(making, insidePath(file.path))
    await mkdir(dirname(to), { recursive: true })
    await symlink(insideLink(file.path, file.link), to)
  }
}

async function sha256Of(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer)
  return hash.digest('hex')
}

async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}
