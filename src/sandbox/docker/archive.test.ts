import fc from 'fast-check'
import { posix } from 'node:path'
import { Readable } from 'node:stream'
import { pack, type Header } from 'tar-stream'
import { describe, expect, it } from 'vitest'
import { packFiles } from './archive-in.ts'
import { readArchive, staysInside } from './archive-out.ts'

/** A tar as a hostile box could make the daemon send it. */
function tarOf(entries: readonly (Partial<Header> & { name: string; body?: string })[]): Readable {
  const tar = pack()
  for (const { body, ...header } of entries) tar.entry(header, body ?? '')
  tar.finalize()
  return Readable.from(tar)
}

describe('a hostile tar', () => {
  it.each([
    ['/etc/passwd', 'absolute_path'],
    ['out/../../etc/passwd', 'parent_path'],
    ['../etc/passwd', 'parent_path'],
    ['out/a/..', 'parent_path'],
  ])('%s is refused', async (name, reason) => {
    const artifact = await readArchive(tarOf([{ name, body: 'x' }]))
    expect(artifact.entries).toEqual([])
    expect(artifact.refused[0]?.reason).toBe(reason)
  })

  it('cannot write through a link, hard or soft, nor twice to one path', async () => {
    const artifact = await readArchive(
      tarOf([
        { name: 'out/dir', type: 'directory' },
        { name: 'out/link', type: 'symlink', linkname: 'dir' },
        { name: 'out/link/file', body: 'x' },
        { name: 'out/hard', type: 'link', linkname: 'out/dir' },
        { name: 'out/dev', type: 'block-device', devmajor: 8, devminor: 0 },
        { name: 'out/dir/file', body: 'first' },
        { name: 'out/./dir//file', body: 'second' },
      ]),
    )
    expect(artifact.refused.map((entry) => entry.reason)).toEqual(['through_link', 'hard_link', 'device', 'duplicate'])
    const file = artifact.entries.find((entry) => entry.path === 'dir/file')
    expect(file).toMatchObject({ type: 'file', data: Buffer.from('first') })
  })

  it('is refused beyond its limits, and cut when it goes on', async () => {
    const big = { name: 'out/big', body: 'x'.repeat(1000) }
    const small = { name: 'out/small', body: 'x' }
    const artifact = await readArchive(tarOf([big, small, { ...big, name: 'out/big2' }, small]), { maxBytes: 1500 })
    expect(artifact).toMatchObject({
      totalBytes: 1001,
      refused: [{ path: 'big2', reason: 'too_large' }, { path: 'small' }],
    })
    const long = await readArchive(tarOf([big, big, big, small]), { maxBytes: 500 })
    expect(long).toMatchObject({ entries: [], cutShort: true, refused: [{ path: 'big', reason: 'too_large' }] })
  })

  it('that ends inside a file is an error, never a shorter file', async () => {
    const whole: Buffer[] = []
    for await (const chunk of tarOf([{ name: 'out/a', body: 'x'.repeat(5000) }])) whole.push(Buffer.from(chunk))
    const cut = Buffer.concat(whole).subarray(0, 2000)
    await expect(readArchive(Readable.from([cut]))).rejects.toThrow()
  })
})

describe('properties', () => {
  const segment = fc.constantFrom('a', 'b', '..', '.', 'c d', '')
  const path = fc.array(segment, { maxLength: 6 }).map((parts) => parts.join('/'))

  it('an accepted link never resolves outside, whatever its text', () => {
    fc.assert(
      fc.property(path, path, (at, target) => {
        fc.pre(!at.split('/').includes('..') && !at.startsWith('/') && at !== '')
        const resolved = posix.resolve('/root/tree', posix.dirname(at), target)
        if (staysInside(posix.normalize(at), target)) expect(`${resolved}/`.startsWith('/root/tree/')).toBe(true)
      }),
    )
  })

  it('no accepted entry has a path that leaves the artifact', async () => {
    const names = fc.array(path, { minLength: 1, maxLength: 8 })
    await fc.assert(
      fc.asyncProperty(names, async (list) => {
        const artifact = await readArchive(tarOf(list.map((name) => ({ name: `out/${name}`, body: 'x' }))))
        for (const entry of artifact.entries) {
          expect(`${posix.resolve('/t', entry.path)}/`.startsWith('/t/')).toBe(true)
        }
      }),
      { numRuns: 60 },
    )
  })

  it('what is packed is what is read', async () => {
    const files = fc.uniqueArray(
      fc.record({ path: fc.stringMatching(/^[a-z]{1,3}(\/[a-z]{1,3}x){0,2}\.t$/), data: fc.uint8Array() }),
      {
        selector: (file) => file.path,
        maxLength: 6,
      },
    )
    await fc.assert(
      fc.asyncProperty(files, async (list) => {
        const under = list.map((file) => ({ ...file, path: `top/${file.path}` }))
        const artifact = await readArchive(packFiles(under, 0, 0))
        const read = artifact.entries.flatMap((entry) => (entry.type === 'file' ? [[entry.path, [...entry.data]]] : []))
        expect(new Map(read as [string, number[]][])).toEqual(new Map(list.map((file) => [file.path, [...file.data]])))
      }),
      { numRuns: 40 },
    )
  })
})
