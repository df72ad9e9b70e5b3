/** Files that somebody brought, sorted to the places that a task takes them from. */
import { buffer } from 'node:stream/consumers'
import { type Header, pack } from 'tar-stream'
import { describe, expect, it } from 'vitest'
import { broughtItems } from './brought.ts'

async function tarOf(entries: readonly (Partial<Header> & { readonly name: string; readonly body?: string })[]) {
  const tar = pack()
  for (const { body, ...header } of entries) tar.entry(header, body ?? '')
  tar.finalize()
  return buffer(tar)
}
const places = ['/app', '/app/logs', '/etc/motd']
const shapeOf = (items: Awaited<ReturnType<typeof broughtItems>>) =>
  items.map(({ path, content }) => [path, content.entries.map((entry) => `${entry.type} ${entry.path}`)])

describe('files that are brought', () => {
  it('stand at their places as a box would give them, directories above them included', async () => {
    const archive = await tarOf([
      { name: 'app/', type: 'directory', mode: 0o700 },
      { name: 'app/src/deep/main.py', body: 'x', mode: 0o4755 },
      { name: 'app/logs/run.log', body: 'y' },
      { name: 'app/link', type: 'symlink', linkname: 'src/deep' },
      { name: 'etc/', type: 'directory' },
      { name: 'etc/motd', body: 'hello' },
    ])
    const items = await broughtItems(archive, places)
    expect(shapeOf(items)).toEqual([
      [
        '/app',
        [
          'directory src',
          'directory src/deep',
          'directory logs',
          'directory .',
          'file src/deep/main.py',
          'file logs/run.log',
          'symlink link',
        ],
      ],
      ['/app/logs', ['directory .', 'file run.log']],
      ['/etc/motd', ['file motd']],
    ])
    // Neither owner nor the bits that make a program somebody else come along.
    const modes = items[0]?.content.entries.flatMap((entry) => (entry.type === 'file' ? [entry.mode.toString(8)] : []))
    expect(modes).toEqual(['755', '644'])
  })

  it.each([
    ['of no place', [{ name: 'tests/test.sh', body: 'exit 0' }], 'no_place'],
    ['beside a place', [{ name: 'app2/a', body: 'x' }], 'no_place'],
    ['above a place', [{ name: 'etc', body: 'x' }], 'no_place'],
    ['of what the host notes', [{ name: '.paddock/signs.json', body: '{}' }], 'no_place'],
    ['that make a place a link', [{ name: 'app', type: 'symlink' as const, linkname: 'etc' }], 'link_out'],
    [
      'that lead from one place to another',
      [{ name: 'app/logs/l', type: 'symlink' as const, linkname: '../x' }],
      'link_out',
    ],
    [
      'that lead out of their place',
      [{ name: 'app/l', type: 'symlink' as const, linkname: '../etc/motd' }],
      'link_out',
    ],
  ])('%s are refused by name', async (_what, entries, reason) => {
    await expect(broughtItems(await tarOf(entries), places)).rejects.toMatchObject({
      code: 'WORK_REFUSED',
      message: expect.stringContaining(entries[0]?.name ?? '') as string,
      data: { reason },
    })
  })
})
