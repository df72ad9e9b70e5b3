import { dirname } from 'node:path/posix'
import { buffer } from 'node:stream/consumers'
import { extract, pack } from 'tar-stream'
import { PaddockError, sha256 } from '../core/index.ts'
import type { ArchiveEntry, Artifact, Box } from '../sandbox/index.ts'
import type { ArtifactItem, PackedArtifact } from './contract.ts'

const epoch = new Date(0)

/**
 * One blob of an artifact item: a tar whose entries are sorted and whose times and owners are zero, so that equal
 * files give equal bytes and `rescore` can bring them back with {@link unpackArtifact}.
 */
export async function packArtifact(item: ArtifactItem): Promise<PackedArtifact> {
  const data = await toTar(item.content.entries, 0)
  return { path: item.path, sha256: sha256(data), sizeBytes: data.length, data }
}

/** The item that {@link packArtifact} packed. Throws `STORE_CORRUPT` when the bytes are not such a tar. */
export async function unpackArtifact(packed: Pick<PackedArtifact, 'path' | 'data'>): Promise<ArtifactItem> {
  const entries: ArchiveEntry[] = []
  const unpack = extract()
  const done = (async () => {
    for await (const entry of unpack) {
      const data = await buffer(entry)
      const { name, mode, type, linkname } = entry.header
      const path = name.replace(/\/$/, '')
      if (type === 'file') entries.push({ type, path, mode, data })
      else if (type === 'directory') entries.push({ type, path, mode })
      else if (type === 'symlink') entries.push({ type, path, target: linkname ?? '' })
    }
  })()
  unpack.end(packed.data)
  try {
    await done
  } catch (cause) {
    throw new PaddockError('STORE_CORRUPT', `The stored artifact of ${packed.path} is not a tar`, { cause })
  }
  const totalBytes = entries.reduce((sum, entry) => sum + (entry.type === 'file' ? entry.data.length : 0), 0)
  return {
    path: packed.path,
    content: { found: entries.length > 0, entries, refused: [], cutShort: false, totalBytes },
  }
}

/**
 * Puts an item at its own path in a fresh `root` box: a directory is emptied first, a file's parents are made.
 * Entries went through the safe-tar rules when they were taken, so they stay below the path. Throws `VERIFIER_FAILED`
 * when the box cannot unpack (no `tar` in the image) and `BOX_DEAD` when it died.
 */
export async function restoreArtifact(
  box: Box,
  item: ArtifactItem,
  o: { readonly owner: number; readonly signal: AbortSignal },
): Promise<void> {
  if (!item.content.found) return
  const target = isSingleFile(item) ? dirname(item.path) : item.path
  const clear = isSingleFile(item) ? 'rm -rf -- "$3"' : 'find "$1" -mindepth 1 -delete'
  const script = `mkdir -p -- "$1" && chown -- "$2" "$1" && ${clear} && exec tar -x -p -f - -C "$1" --same-owner`
  const result = await box.exec(
    {
      command: ['/bin/sh', '-c', script, 'sh', target, `${o.owner}:${o.owner}`, item.path],
      cwd: '/',
      stdin: await toTar(item.content.entries, o.owner),
      timeoutMs: 120_000,
    },
    { signal: o.signal },
  )
  if (result.kind === 'box_dead') throw new PaddockError('BOX_DEAD', `The box died: ${result.why.detail}`)
  if (result.kind !== 'exited' || result.code !== 0) {
    const said = new TextDecoder().decode(result.stderr).trim().slice(-400)
    throw new PaddockError('VERIFIER_FAILED', `The artifact ${item.path} could not be restored: ${said}`, {
      fix: 'The image of the verifier needs sh, find and tar.',
    })
  }
}

/** Drops the entries that a pattern names, with all below them, as `tar --exclude` does. */
export function withoutExcluded(content: Artifact, patterns: readonly string[]): Artifact {
  if (patterns.length === 0) return content
  const tests = patterns.map(toRegExp)
  const entries = content.entries.filter((entry) => !tests.some((test) => test.test(entry.path)))
  const totalBytes = entries.reduce((sum, entry) => sum + (entry.type === 'file' ? entry.data.length : 0), 0)
  return { ...content, entries, totalBytes }
}

// GNU tar's default for --exclude: unanchored, wildcards match slashes, a matched directory takes what is below it.
function toRegExp(pattern: string): RegExp {
  const body = pattern
    .replace(/\/+$/, '')
    .replace(/[.+^${}()|[\]\\]/g, String.raw`\$&`)
    .replaceAll('*', '.*')
    .replaceAll('?', '.')
  return new RegExp(`(?:^|/)${body}(?:/|$)`, 's')
}

// A directory is archived with itself as the entry `.`; a file stands alone under its own name.
function isSingleFile(item: ArtifactItem): boolean {
  return !item.content.entries.some((entry) => entry.path === '.')
}

async function toTar(entries: readonly ArchiveEntry[], owner: number): Promise<Buffer> {
  const archive = pack()
  const bytes = buffer(archive)
  for (const entry of entries.toSorted((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path)))) {
    const common = { name: entry.path, mtime: epoch, uid: owner, gid: owner }
    if (entry.type === 'file') {
      archive.entry({ ...common, mode: entry.mode & 0o7777, size: entry.data.length }, Buffer.from(entry.data))
    } else if (entry.type === 'directory') {
      archive.entry({ ...common, type: 'directory', mode: entry.mode & 0o7777 })
    } else {
      archive.entry({ ...common, type: 'symlink', linkname: entry.target, mode: 0o777 })
    }
  }
  archive.finalize()
  return bytes
}
