import Docker from 'dockerode'
import { mkdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import { requireDocker } from '../../testing/sandbox/index.ts'
import { type Box, dockerProvider, type SandboxProvider } from '../index.ts'
import { UpperDirectories } from './touched.ts'

const unfit = { code: 'BOX_FILES_UNFIT', family: 'agent' }

/** What the daemon was asked to pack or unpack of a container since then. */
async function archivesOf(id: string, since: number): Promise<readonly string[]> {
  const filters = JSON.stringify({ container: [id], event: ['archive-path', 'extract-to-dir'] })
  const until = Date.now() / 1000
  const events = await text(await new Docker().getEvents({ since: since / 1000, until, filters }))
  return [...events.matchAll(/"status":"([a-z-]+)"/g)].map(([, status = '']) => status)
}

describe.runIf(await requireDocker())('files that an agent left to make the host fail', () => {
  let provider: SandboxProvider
  let box: Box
  const sh = async (command: string): Promise<void> => {
    const result = await box.exec({ command: ['bash', '-c', command], cwd: '/' })
    expect(Buffer.from(result.stderr).toString()).toBe('')
  }

  beforeAll(async () => {
    provider = dockerProvider({ warmBoxes: 0 })
    const image = await provider.ensureImage({ kind: 'paddock-base' })
    box = await provider.createBox({ image, profile: 'root', diskMb: 64, labels: { role: 'probe' } })
  })
  afterAll(() => provider.close())

  it('come out by the program in the box as by the daemon, and go in so', async () => {
    const since = Date.now()
    await box.putFiles('/srv/in', [
      { path: 'deep/er/run', data: '#!/bin/sh', mode: 0o4750, uid: 1000, gid: 7 },
      { path: `${'long'.repeat(30)}/\u00e4`, data: Buffer.alloc(3_000_000, 'x') },
      { path: 'empty/', data: '' },
    ])
    await box.putFiles('/srv/in/deep', [{ path: 'er/run', data: 'anew' }])
    await box.putFiles('/srv/in/empty', { fromDirectory: import.meta.dirname, uid: 3 })
    await sh(`cd /srv/in; [ "$(stat -c '%a %u %g %s %n' * deep/er/run long*/*)" = "755 0 0 4096 deep
755 0 0 4096 empty
755 0 0 4096 ${'long'.repeat(30)}
644 0 0 4 deep/er/run
644 0 0 3000000 ${'long'.repeat(30)}/\u00e4" ] || stat -c '%a %u %g %s %n' * deep/er/run long*/* >&2
      [ "$(stat -c '%u %s' empty/box.ts)" = "3 ${(await stat(join(import.meta.dirname, 'box.ts'))).size}" ] || echo tree >&2
      rm -rf long*; ln -s run deep/er/link; ln deep/er/run deep/er/twin; ln -s /etc out; mkfifo pipe; mknod null c 1 3 2>/dev/null
      truncate -s 100M deep/sparse; mkdir -m 000 shut; printf x > shut/in`)
    const limits = { maxBytes: 1 << 20 }
    expect(await archivesOf(box.id, since)).toEqual([])
    const large = await box.getFiles('/srv/in', limits)
    expect(await archivesOf(box.id, since)).toEqual(['archive-path'])
    await sh('rm /srv/in/deep/sparse')
    const inside = [await box.getFiles('/srv/in', limits), await box.getFiles('/srv/in/deep/er/run')]
    expect(await archivesOf(box.id, since)).toEqual(['archive-path'])
    await box.freeze()
    const outside = [await box.getFiles('/srv/in', limits), await box.getFiles('/srv/in/deep/er/run')]
    expect(inside).toEqual(outside)
    expect(large.refused).toContainEqual({ path: 'deep/sparse', reason: 'too_large' })
    await box.putFiles('/srv/in', [{ path: 'still', data: 'x' }])
    await box.thaw()
    await sh('[ "$(cat /srv/in/still)" = x ] && rm -r /srv/in')
  })

  it('are taken, or left out by name: links to themselves, pipes, sockets, names that are no text, no rights', async () => {
    await sh(`cd /workspace; ln -s loop loop; ln -s b a; ln -s a b; mkfifo pipe; mkdir -m 000 closed; touch closed/f
      python3 -c "import socket; socket.socket(socket.AF_UNIX).bind('sock')"
      printf x > $'line\\nbreak'; mkdir $'\\xff'; printf x > $'\\xff/\\xfe'; ln -s /nowhere /one; ln -s /two /two`)
    const all = await box.getFiles('/workspace')
    expect(all.entries.map(({ path }) => path)).toEqual(expect.arrayContaining(['line\nbreak', 'closed/f', 'loop']))
    expect(all.refused.find(({ path }) => path === 'pipe')?.reason).toBe('device')
    expect(await box.getFiles('/two')).toMatchObject({ found: true, refused: [{ path: 'two', reason: 'unreadable' }] })
    expect(await box.getFiles('/two/below')).toMatchObject({ entries: [], refused: [{ reason: 'unreadable' }] })
    expect(await box.touched()).toEqual(expect.arrayContaining(['/workspace/line\nbreak', '/two']))
    expect((await box.changes()).map(({ path }) => path)).toContain('/two')
    expect(await box.takeLayer()).toBeNull()
    await expect(box.putFiles('/two', [{ path: 'x', data: '' }])).rejects.toMatchObject(unfit)
    await (await box.snapshot())[Symbol.asyncDispose]()
    await sh('rm -rf /workspace/* /one /two')
  })

  it('are told as theirs where the daemon cannot list them: directories in directories', async () => {
    await sh(`cd /workspace; python3 -c "
import os
for _ in range(600): os.mkdir('nested-dir'); os.chdir('nested-dir')"`)
    expect((await box.getFiles('/workspace')).found).toBe(true)
    await expect(box.changes()).rejects.toMatchObject(unfit)
    expect((await box.touched())?.length).toBeGreaterThan(300)
    await sh('rm -rf /workspace/nested-dir')
    expect(await box.changes()).not.toEqual([])
  })

  it('are no snapshot beyond the disk of the box, as large as they say they are', async () => {
    await sh('cd /workspace; for i in 1 2 3; do truncate -s 30M hole$i; done')
    await expect(box.snapshot()).rejects.toMatchObject({ ...unfit, message: expect.stringMatching(/9\d MB.* 64 MB/) })
    await sh('rm /workspace/hole1 /workspace/hole2')
    await (await box.snapshot())[Symbol.asyncDispose]()
    await sh('rm /workspace/*')
  })

  it('are not waited for: a pipe where the daemon looks up names', async () => {
    await sh('mv /etc/group /etc/kept; mkfifo /pipe; ln -s /pipe /etc/group')
    const refused = [{ path: 'workspace', reason: 'unreadable' }]
    await box.freeze()
    expect(await box.getFiles('/workspace')).toMatchObject({ entries: [], refused })
    await box.thaw()
    await sh('mv /etc/kept /etc/group; rm -f /etc/passwd; mkfifo /etc/passwd')
    await box.freeze()
    expect(await box.getFiles('/workspace')).toMatchObject({ entries: [], refused })
  })

  it('leave nothing of the containers that they were compared with', async () => {
    const filters = { label: ['paddock=work', `paddock.owner`] }
    const left = await new Docker().listContainers({ all: true, filters })
    expect(left.filter(({ Labels }) => Labels['paddock.owner']?.startsWith(`${process.pid}:`))).toEqual([])
  })
})

it('more files than anybody should list are the fault of whoever made them, but for places that are left out', async () => {
  const upper = tempDir()
  await mkdir(join(upper, 'work'))
  for (const name of ['a', 'b', 'work/c', 'work/d']) await writeFile(join(upper, name), '')
  const docker = Object.assign(new Docker(), {
    info: async () => ({ Driver: 'overlay2', DriverStatus: [['Native Overlay Diff', 'true']] }),
  })
  const container = Object.assign(docker.getContainer('x'), {
    inspect: async () => ({ GraphDriver: { Name: 'overlay2', Data: { UpperDir: upper } } }),
  })
  const few = new UpperDirectories(docker, 4)
  await expect(few.paths(container)).rejects.toMatchObject(unfit)
  expect((await few.paths(container, ['/work']))?.toSorted()).toEqual(['/a', '/b', '/work'])
})
