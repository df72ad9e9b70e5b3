import { constants } from 'node:fs'
import { copyFile, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { areElsewhere, DirectoryBlobReader, DirectoryBlobs, openBlobReader } from '../blobs/index.ts'
import { openReader } from '../store/index.ts'

export interface BlobsCopied {
  readonly count: number
  readonly sizeBytes: number
}

/** Copies the blobs of a data directory, wherever they are, into a copy that has its databases already. */
export function copyBlobs(from: string, to: string): Promise<BlobsCopied> {
  return areElsewhere(from) ? fetchBlobs(from, to) : copyFiles(join(from, 'blobs'), join(to, 'blobs'))
}

async function copyFiles(from: string, to: string): Promise<BlobsCopied> {
  let [count, sizeBytes] = [0, 0]
  await mkdir(to, { recursive: true, mode: 0o700 })
  for await (const blob of new DirectoryBlobReader(from).list()) {
    const folder = join(to, blob.digest.slice(0, 2), blob.digest.slice(2, 4))
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const place = join(blob.digest.slice(0, 2), blob.digest.slice(2, 4), blob.digest)
    await copyFile(join(from, place), join(to, place), constants.COPYFILE_FICLONE)
    count += 1
    sizeBytes += blob.sizeBytes
  }
  return { count, sizeBytes }
}

/** A store may list late what it has: what the catalogue names is asked for by name. */
async function fetchBlobs(from: string, to: string): Promise<BlobsCopied> {
  const source = openBlobReader(from)
  const target = new DirectoryBlobs(join(to, 'blobs'))
  let [count, sizeBytes] = [0, 0]
  const fetchOne = async (digest: string): Promise<void> => {
    const content = await source.get(digest)
    await target.put(content)
    count += 1
    sizeBytes += content.length
  }
  await mkdir(join(to, 'blobs'), { recursive: true, mode: 0o700 })
  for await (const { digest } of source.list()) await fetchOne(digest)
  await using copy = await openReader(to)
  for (const { id: runId } of await copy.catalogue.runs()) {
    for (const { work, verdicts } of await copy.catalogue.rollouts({ runId })) {
      const named = [...(work?.artifacts ?? []), ...verdicts.flatMap(({ artifacts }) => artifacts)]
      for (const { sha256 } of named) if (!(await target.has(sha256))) await fetchOne(sha256)
    }
  }
  return { count, sizeBytes }
}
