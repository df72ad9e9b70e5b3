import Docker from 'dockerode'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { requireDocker } from '../../testing/sandbox/index.ts'
import { type Box, dockerProvider, type SandboxProvider } from '../index.ts'
import { UpperDirectories } from './touched.ts'

const unfit = { code: 'BOX_FILES_UNFIT', family: 'agent' }

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
    expect(await box.getFiles('/workspace')).toMatchObject({ entries: [], refused })
    await sh('mv /etc/kept /etc/group; rm -f /etc/passwd; mkfifo /etc/passwd')
    expect(await box.getFiles('/workspace')).toMatchObject({ entries: [], refused })
  })

  it('leave nothing of the containers that they were compared with', async () => {
    const filters = { label: ['paddock=work', `paddock.owner`] }
    const left = await new Docker().listContainers({ all: true, filters })
    expect(left.filter(({ Labels }) => Labels['paddock.owner']?.startsWith(`${process.pid}:`))).toEqual([])
  })
})

it('more files than anybody should list are the fault of whoever made them, but for places that are left out', async () => {
  const upper = await mkdtemp(join(tmpdir(), 'paddock-test-'))
  onTestFinished(() => rm(upper, { recursive: true }))
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
