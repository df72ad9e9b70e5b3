import { createHash } from 'node:crypto'
import { readdir, readFile, readlink, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Digest } from '../../core/index.ts'

/**
 * SHA-256 over the files below a directory: relative paths, executable bits, links and contents, in byte order of the
 * paths. Two directories with the same digest verify the same. A directory that does not exist has the digest of none.
 */
export async function directoryDigest(directory: string): Promise<Digest> {
  const hash = createHash('sha256')
  for (const path of (await filesBelow(directory, '')).toSorted(byBytes)) {
    const full = join(directory, path.name)
    if (path.link) {
      record(hash, 'link', path.name, Buffer.from(await readlink(full)))
    } else {
      const executable = ((await stat(full)).mode & 0o111) !== 0
      record(hash, executable ? 'program' : 'file', path.name, await readFile(full))
    }
  }
  return hash.digest('hex')
}

interface Found {
  readonly name: string
  readonly link: boolean
}

async function filesBelow(directory: string, prefix: string): Promise<Found[]> {
  const found: Found[] = []
  const entries = await readdir(join(directory, prefix), { withFileTypes: true }).catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
    throw error
  })
  for (const entry of entries) {
    const name = prefix === '' ? entry.name : `${prefix}/${entry.name}`
    if (entry.isDirectory()) found.push(...(await filesBelow(directory, name)))
    else if (entry.isSymbolicLink()) found.push({ name, link: true })
    else if (entry.isFile()) found.push({ name, link: false })
  }
  return found
}

function byBytes(a: Found, b: Found): number {
  return Buffer.compare(Buffer.from(a.name), Buffer.from(b.name))
}

// Lengths are part of what is hashed, so that no two lists of files run together into the same bytes.
function record(hash: ReturnType<typeof createHash>, kind: string, name: string, data: Uint8Array): void {
  hash.update(`${kind}\0${Buffer.byteLength(name)}\0${name}\0${data.length}\0`)
  hash.update(data)
}
