import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Box } from '../../sandbox/index.ts'
import { type SharedBoxParts, text } from './parts.ts'

/** The part of the sandbox contract about files that go in and come out. */
export function filesContract(parts: SharedBoxParts): void {
  const { sh } = parts
  let box: Box
  beforeAll(() => {
    box = parts.box()
  })

  describe('files', () => {
    it('go in and come out with content and mode', async () => {
      const blob = randomBytes(3 << 20)
      await box.putFiles('/workspace/deep/er', [
        { path: 'bin/run', data: '#!/bin/sh\necho ran\n', mode: 0o755 },
        { path: 'blob', data: blob },
      ])
      const ran = await sh('deep/er/bin/run && stat -c %U deep/er/blob deep && ln -s blob deep/er/link')
      expect(text(ran.stdout)).toBe('ran\nagent\nagent\n')
      const out = await box.getFiles('/workspace/deep')
      const byPath = Object.fromEntries(out.entries.map((entry) => [entry.path, entry]))
      const back = byPath['er/blob']
      expect(back).toMatchObject({ type: 'file', mode: 0o644 })
      // Compared here, because a matcher walks megabytes byte by byte.
      expect(back?.type === 'file' && Buffer.compare(back.data, blob)).toBe(0)
      expect(byPath['er/bin/run']).toMatchObject({ type: 'file', mode: 0o755 })
      expect(byPath['er/link']).toEqual({ type: 'symlink', path: 'er/link', target: 'blob' })
      expect(out.refused).toEqual([])
      const one = await box.getFiles('/workspace/deep/er/bin/run')
      expect(one.entries.map((entry) => entry.path)).toEqual(['run'])
    })

    it('are directories too, which stay as they are where they are', async () => {
      await sh('mkdir -m 700 kept')
      await box.putFiles('/workspace', [
        { path: 'kept/', data: '' },
        { path: 'fresh/below/', data: '' },
      ])
      await box.putFiles('/workspace/kept', [])
      expect(text((await sh("stat -c '%a %U' kept fresh fresh/below")).stdout)).toBe(
        '700 agent\n755 agent\n755 agent\n',
      )
    })

    it('are told as not found', async () => {
      expect(await box.getFiles('/workspace/nowhere')).toMatchObject({ found: false, entries: [] })
    })

    it('never lead out: links, devices, sizes and counts are refused by name', async () => {
      await sh(`mkdir evil && cd evil && ln -s /etc/passwd abs && ln -s ../../etc/shadow climb && ln -s . dot
        mkfifo pipe && echo a > one && ln one two && truncate -s 10G sparse && mkdir many && cd many && touch $(seq 200)`)
      const out = await box.getFiles('/workspace/evil', { maxBytes: 1 << 20 })
      const refused = Object.fromEntries(out.refused.map((entry) => [entry.path, entry.reason]))
      expect(refused).toMatchObject({ abs: 'link_out', climb: 'link_out', pipe: 'device', sparse: 'too_large' })
      expect(out.cutShort).toBe(true)
      expect(out.entries.filter((entry) => entry.path === 'one' || entry.path === 'two')).toHaveLength(1)
      expect(out.totalBytes).toBeLessThanOrEqual(1 << 20)
      const few = await box.getFiles('/workspace/evil/many', { maxEntries: 100 })
      expect(few.entries).toHaveLength(100)
      expect(few.refused[0]?.reason).toBe('too_many')
    })

    it('are refused on the way in when they would leave their place', async () => {
      for (const path of ['../x', '/x', 'a/../../x', '']) {
        await expect(box.putFiles('/workspace', [{ path, data: '' }])).rejects.toMatchObject({ code: 'PATH_UNSAFE' })
      }
    })

    it('come from a directory of the host', async () => {
      const host = await mkdtemp(join(tmpdir(), 'paddock-test-'))
      try {
        await writeFile(join(host, 'run.sh'), 'echo tree', { mode: 0o750 })
        await box.putFiles('/workspace/tree', { fromDirectory: host })
        expect(text((await sh('stat -c %a tree/run.sh; ./tree/run.sh')).stdout)).toBe('750\ntree\n')
      } finally {
        await rm(host, { recursive: true })
      }
    })

    it('can be taken from a frozen box, whose deadlines stand still', async () => {
      const started = Promise.withResolvers<void>()
      const go = Promise.withResolvers<Uint8Array>()
      // Time enough before and after on a busy machine, and all of it passes while the box is frozen.
      const timeoutMs = 3000
      const command = sh('echo x > state; echo on; read -r word; echo "$word"', {
        stdin: (async function* () {
          yield await go.promise
        })(),
        timeoutMs,
        onStdout: () => started.resolve(),
      })
      await started.promise
      await box.freeze()
      await new Promise((resolve) => setTimeout(resolve, timeoutMs))
      expect((await box.getFiles('/workspace/state')).totalBytes).toBe(2)
      await box.thaw()
      go.resolve(Buffer.from('end\n'))
      expect(await command).toMatchObject({ kind: 'exited', code: 0, stdout: Buffer.from('on\nend\n') })
    })
  })
}
