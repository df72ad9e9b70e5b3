/** Archives of strangers: refused by the name of what is wrong, and nothing of what is taken can lead out of its directory. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, realpathSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { type Header, pack } from 'tar-stream'
import { describe, expect, it } from 'vitest'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import { readForeignArchive } from './foreign-archive.ts'

type Entry = Partial<Header> & { readonly name: string; readonly body?: string }

async function tarOf(entries: readonly Entry[]): Promise<Buffer> {
  const tar = pack()
  for (const { body, ...header } of entries) tar.entry(header, body ?? '')
  tar.finalize()
  return buffer(tar)
}

const refused = (reason: string) => ({ code: 'WORK_REFUSED', data: { reason } })
const file = { name: 'app/a', body: 'x' }

describe('an archive of a stranger', () => {
  it.each<[string, readonly Entry[], string]>([
    ['an absolute name', [{ name: '/etc/passwd', body: 'x' }], 'absolute_path'],
    ['a name that goes up', [{ name: '../etc/passwd', body: 'x' }], 'parent_path'],
    ['a name that goes up in its middle', [{ name: 'app/../../etc/passwd', body: 'x' }], 'parent_path'],
    ['a name that only seems to go up', [{ name: 'app/b/../a', body: 'x' }], 'parent_path'],
    ['an absolute link', [{ name: 'app/l', type: 'symlink', linkname: '/etc/passwd' }], 'link_out'],
    ['a link out', [{ name: 'app/l', type: 'symlink', linkname: '../../etc/passwd' }], 'link_out'],
    ['a link to nothing', [{ name: 'app/l', type: 'symlink', linkname: '' }], 'link_out'],
    ['a link that turns on its way', [{ name: 'app/l', type: 'symlink', linkname: 'm/../../..' }], 'link_out'],
    [
      'a link that leads out by another one',
      [
        { name: 'app/b/c/up', type: 'symlink', linkname: '../..' },
        { name: 'app/l', type: 'symlink', linkname: 'b/c/up/../etc' },
      ],
      'link_out',
    ],
    [
      'a file through a link',
      [
        { name: 'app/l', type: 'symlink', linkname: 'b' },
        { name: 'app/l/f', body: 'x' },
      ],
      'through_link',
    ],
    [
      'a link in place of a directory',
      [
        { name: 'app/b/f', body: 'x' },
        { name: 'app/b', type: 'symlink', linkname: 'c' },
      ],
      'duplicate',
    ],
    ['a hard link', [file, { name: 'app/h', type: 'link', linkname: 'app/a' }], 'hard_link'],
    ['a hard link out', [{ name: 'app/h', type: 'link', linkname: '/etc/passwd' }], 'hard_link'],
    ['a character device', [{ name: 'app/null', type: 'character-device', devmajor: 1, devminor: 3 }], 'device'],
    ['a block device', [{ name: 'app/sda', type: 'block-device', devmajor: 8, devminor: 0 }], 'device'],
    ['a fifo', [{ name: 'app/pipe', type: 'fifo' }], 'device'],
    ['a name twice', [file, { name: './app//a', body: 'y' }], 'duplicate'],
    ['a file below a file', [file, { name: 'app/a/b', body: 'y' }], 'duplicate'],
    ['a name that no file system takes', [{ name: `app/${'n'.repeat(256)}`, body: 'x' }], 'unreadable'],
    ['a file without a name', [{ name: '', body: 'x' }], 'unreadable'],
    ['no entries', [], 'unreadable'],
  ])('is refused with %s', async (_what, entries, reason) => {
    await expect(readForeignArchive(await tarOf(entries))).rejects.toMatchObject(refused(reason))
    await expect(readForeignArchive(gzipSync(await tarOf(entries)))).rejects.toMatchObject(refused(reason))
  })

  it('is refused by size, count, and what its gzip would become', async () => {
    const limits = { maxBytes: 100_000, maxEntries: 20 }
    const many = Array.from({ length: 21 }, (_, i) => ({ name: `app/${i}`, body: 'x' }))
    await expect(readForeignArchive(await tarOf(many), limits)).rejects.toMatchObject(refused('too_many'))
    const large = await tarOf([{ name: 'app/a', body: 'x'.repeat(100_001) }])
    await expect(readForeignArchive(large, limits)).rejects.toMatchObject(refused('too_large'))
    const bomb = gzipSync(Buffer.alloc(64 << 20))
    expect(bomb.length).toBeLessThan(100_000)
    await expect(readForeignArchive(bomb, limits)).rejects.toMatchObject(refused('too_large'))
    expect(await readForeignArchive(await tarOf([{ name: 'app/a', body: 'x'.repeat(100_000) }]), limits)).toHaveLength(
      1,
    )
  })

  it('is refused where it is cut, damaged or none', async () => {
    const whole = await tarOf([{ name: 'app/a', body: 'x'.repeat(2000) }])
    for (const bytes of [
      whole.subarray(0, 1000),
      Buffer.from('PK and no tar '.repeat(100)),
      gzipSync(whole).subarray(0, 60),
    ])
      await expect(readForeignArchive(bytes)).rejects.toMatchObject(refused('unreadable'))
  })

  it('what is taken ends inside when a real tar unpacks it', async () => {
    const part = fc.constantFrom('a', 'b', 'c', '..', '.', '')
    const path = fc.array(part, { minLength: 1, maxLength: 5 }).map((parts) => parts.join('/'))
    const entry = fc.record({
      name: path,
      type: fc.constantFrom('file', 'directory', 'symlink', 'link', 'fifo'),
      linkname: path,
    }) as fc.Arbitrary<Entry>
    let taken = 0
    const here = tempDir()
    await fc.assert(
      fc.asyncProperty(fc.array(entry, { minLength: 1, maxLength: 4 }), async (entries) => {
        const found = await readForeignArchive(await tarOf(entries)).catch(() => null)
        if (found === null) return
        const bytes = await tarOf(
          found.map(({ path: name, ...one }) => ({
            name,
            type: one.type,
            ...(one.type === 'symlink' ? { linkname: one.target } : {}),
          })),
        )
        taken += 1
        const root = mkdtempSync(join(here, 'box-'))
        const inside = join(root, 'in')
        execFileSync('mkdir', [inside])
        execFileSync('tar', ['-x', '-f', '-', '-C', inside], { input: bytes })
        expect(readdirSync(root)).toEqual(['in'])
        // This one follows no links: `readdirSync` walks two links to their own directory in 2^40 ways (Node 24).
        for (const { parentPath, name } of await readdir(inside, { recursive: true, withFileTypes: true })) {
          const end = realOf(join(parentPath, name))
          if (end !== null)
            expect(`${end}/`.startsWith(`${realpathSync(inside)}/`), `${name} ends at ${end}`).toBe(true)
        }
      }),
      { numRuns: 600 },
    )
    expect(taken).toBeGreaterThan(20)
  })
})

/** Null: it dangles, or goes round. */
function realOf(path: string): string | null {
  try {
    return realpathSync(path)
  } catch {
    return null
  }
}
