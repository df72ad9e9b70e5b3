import { spawn } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import Docker from 'dockerode'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newId } from '../../src/core/index.ts'
import { recordBoxEvents } from '../../src/rollout/index.ts'
import { type Box, dockerProvider, type SandboxProvider } from '../../src/sandbox/index.ts'
import { requireDocker } from '../../src/testing/sandbox/index.ts'
import { openStore } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { paddock } from './here.ts'
import { launcher, paddock as paddockProcess } from './paddock.ts'

describe.runIf(await requireDocker())('paddock box, beside the process that owns the box', () => {
  let provider: SandboxProvider
  let box: Box
  let here: string
  const rollout = newId()

  beforeAll(async () => {
    here = tempDir()
    provider = dockerProvider()
    const image = await provider.ensureImage({ kind: 'paddock-base' })
    box = await provider.createBox({ image, profile: 'user', labels: { role: 'agent', rollout } })
    await box.exec({ command: 'mkdir d && echo from inside > d/file && ln -s /etc/shadow d/out' })
  })
  afterAll(async () => {
    await provider.close()
  })

  it('ls tells whose it is', async () => {
    const { code, out } = await paddockProcess(['box', 'ls', '--json'])
    expect(code).toBe(0)
    const { boxes }: { boxes: { id: string }[] } = JSON.parse(out)
    expect(boxes.find(({ id }) => id === box.id)).toMatchObject({
      rollout,
      role: 'agent',
      state: 'running',
      uid: 1000,
      owner: { pid: process.pid, isAlive: true },
    })
  })

  it('exec runs as the user of the box, by a part of the rollout too, and passes failure on', async () => {
    const ran = await paddockProcess(['box', 'exec', rollout.slice(-8), '--', 'sh', '-c', 'id -u; pwd; cat d/file'])
    expect(ran).toMatchObject({ code: 0, out: '1000\n/workspace\nfrom inside\n' })
    const failed = await paddock([
      'box',
      'exec',
      box.id.slice(0, 12),
      '--json',
      '--',
      'sh',
      '-c',
      'echo no >&2; exit 3',
    ])
    expect(failed.code).toBe(1)
    expect(JSON.parse(failed.out)).toMatchObject({ exitCode: 3, stderr: 'no\n' })
    expect(await paddock(['box', 'exec', 'zzzz', '--', 'true'])).toMatchObject({ code: 2 })
    // The owner's own commands go on.
    expect(await box.exec({ command: 'true' })).toMatchObject({ kind: 'exited', code: 0 })
  })

  it('logs tells what was run in it for its rollout, while the owner goes on', async () => {
    const data = join(here, 'data')
    await using store = await openStore(data)
    await using recorded = dockerProvider({ onEvent: recordBoxEvents(store.recorder) })
    const image = await recorded.ensureImage({ kind: 'paddock-base' })
    const id = newId()
    const logged = await recorded.createBox({ image, profile: 'user', labels: { role: 'agent', rollout: id } })
    await logged.exec({ command: 'echo first words; exit 3', eventRole: 'setup' })
    await logged.exec({ command: 'echo of no account' })
    await store.recorder.flush()
    const shown = await paddock(['--data', data, 'box', 'logs', id.slice(-8)])
    expect(shown.code).toBe(0)
    expect(shown.out).toMatch(/created/)
    expect(shown.out).toMatch(/echo first words; exit 3/)
    expect(shown.out).not.toContain('of no account')
    const json = await paddock(['--data', data, 'box', 'logs', logged.id.slice(0, 12), '--json'])
    const { events }: { events: { kind: string; exitCode?: number; stdout?: string }[] } = JSON.parse(json.out)
    expect(events).toMatchObject([{ kind: 'box' }, { kind: 'exec', exitCode: 3, stdout: 'first words\n' }])
    // A box of no rollout has nobody who kept anything.
    const nobody = await recorded.createBox({ image, profile: 'user', labels: { role: 'probe' } })
    expect(await paddock(['--data', data, 'box', 'logs', nobody.id.slice(0, 12)])).toMatchObject({
      code: 2,
      err: expect.stringContaining('belongs to no rollout'),
    })
  })

  it('cp brings files both ways, and never what leads out', async () => {
    const out = join(here, 'out')
    const copied = await paddock(['box', 'cp', `${box.id.slice(0, 12)}:/workspace/d`, out])
    expect(copied).toMatchObject({ code: 1, out: '2 copied\nleft out: out (link_out)\n' })
    expect(await readFile(join(out, 'file'), 'utf8')).toBe('from inside\n')
    await writeFile(join(here, 'note'), 'from outside')
    await paddock(['box', 'cp', join(here, 'note'), `${box.id.slice(0, 12)}:/workspace`])
    expect(await box.exec({ command: 'cat note; stat -c %U note' })).toMatchObject({
      stdout: Buffer.from('from outsideagent\n'),
    })
  })

  it('snap keeps its files as an image that no sweep takes', async () => {
    const name = `test-${rollout.slice(-6)}`
    try {
      expect(await paddock(['box', 'snap', box.id.slice(0, 12), name])).toMatchObject({ code: 0 })
      const { out } = await paddock(['box', 'gc', '--dry-run', '--json'])
      const { removed, kept }: { removed: { id: string }[]; kept: { id: string }[] } = JSON.parse(out)
      expect(removed.map(({ id }) => id)).not.toContain(`paddock-kept:${name}`)
      expect(kept.map(({ id }) => id)).toContain(box.id)
      await using again = await provider.createBox({
        image: `paddock-kept:${name}`,
        profile: 'user',
        labels: { role: 'probe' },
      })
      expect(await again.exec({ command: 'cat d/file' })).toMatchObject({ stdout: Buffer.from('from inside\n') })
    } finally {
      await new Docker().getImage(`paddock-kept:${name}`).remove({ force: true })
    }
  })

  it('attach is a shell in a terminal, and refuses to be one without', async () => {
    expect(await paddock(['box', 'attach', box.id.slice(0, 12)])).toMatchObject({ code: 2 })
    // script(1) gives it a terminal.
    const command = `${launcher} box attach ${box.id.slice(0, 12)}`
    const child = spawn('script', ['-qefc', command, '/dev/null'], { stdio: ['pipe', 'pipe', 'inherit'] })
    let seen = ''
    const prompt = Promise.withResolvers<void>()
    child.stdout.on('data', (chunk: Buffer) => {
      seen += chunk.toString()
      if (seen.includes('$ ')) prompt.resolve()
    })
    await prompt.promise
    child.stdin.write('echo $((6*7)); tty; exit\r')
    const code = await new Promise((resolve) => child.on('close', resolve))
    expect(seen).toMatch(/42\r+\n\/dev\/pts\/\d/)
    expect(code).toBe(0)
  })
})
