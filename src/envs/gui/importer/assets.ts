import { createHash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'

/** RFC 4122's name space of addresses. */
const urlSpace = Buffer.from('6ba7b8119dad11d180b400c04fd430c8', 'hex')

/**
 * The file that a task would download, from a folder of the user's: as OSWorld's own cache keeps it
 * (`[<task id>/]<uuid5 of the address>_<name>`, or `[<task id>/]<name>`; desktop_env/controllers/setup.py and
 * evaluators/getters/file.py), or by host and path of its address. Null: it is not there.
 */
export async function assetFile(
  assets: string,
  o: { readonly id: string; readonly url: string; readonly name: string },
): Promise<string | null> {
  const name = basename(o.name)
  const cached = `${uuid5(o.url)}_${name}`
  const url = URL.parse(o.url)
  const byAddress = url === null ? [] : [join(url.hostname, decodeURIComponent(url.pathname))]
  for (const candidate of [join(o.id, cached), cached, join(o.id, name), ...byAddress]) {
    const path = join(assets, candidate)
    if (path.startsWith(join(assets, '/')) && (await stat(path).catch(() => null))?.isFile() === true) return path
  }
  return null
}

/** {@link assetFile}'s content; null when it is not there. */
export async function asset(...given: Parameters<typeof assetFile>): Promise<Buffer | null> {
  const path = await assetFile(...given)
  return path === null ? null : readFile(path)
}

/** Version 5 of an address (RFC 4122, section 4.3). */
export function uuid5(url: string): string {
  const bytes = createHash('sha1').update(urlSpace).update(url).digest().subarray(0, 16)
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x50
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}
