import { createServer as createHttpServer } from 'node:http'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Box } from '../../sandbox/index.ts'
import { type SharedBoxParts, text } from './parts.ts'

/** The part of the sandbox contract about what a box cannot do: reach, see, gain, outgrow. */
export function isolationContract(parts: SharedBoxParts): void {
  const { createBox, provider, sh } = parts
  let box: Box
  beforeAll(() => {
    box = parts.box()
  })

  describe('isolation', () => {
    it('leaves no network but the model path', async () => {
      const bait = createHttpServer((_request, response) => void response.end('reached')).listen(0, '0.0.0.0')
      const address = bait.address()
      const port = typeof address === 'object' && address !== null ? address.port : 0
      try {
        const lonely = await createBox()
        for (const inside of [box, lonely]) {
          const result = await inside.exec({
            command: `ls /sys/class/net; cat /proc/net/route | tail -n +2; hostname; getent hosts localhost
              for host in 127.0.0.1 172.17.0.1 169.254.169.254 host.docker.internal; do curl -sS -m 1 http://$host:${port}/ 2>/dev/null; done`,
          })
          expect(text(result.stdout)).toMatch(/^lo\nbox\n\S+ +localhost\b.*\n$/)
        }
        expect(lonely.modelUrl).toBeNull()
        await lonely.destroy()
      } finally {
        bait.close()
      }
    })

    it('shows no socket, no key and no foreign process', async () => {
      const other = await provider().openModelSocket()
      const result = await sh(`find / -xdev -type s 2>/dev/null; ls /run/paddock /model /var/run/docker.sock 2>/dev/null
        env | grep -i -E 'key|token|secret'; ls -d /proc/[0-9]* | wc -l`)
      expect(Number(text(result.stdout))).toBeLessThan(10)
      await other.close()
    })

    it('gives a user box no capability and no way to gain one', async () => {
      const status = text((await sh('cat /proc/self/status')).stdout)
      expect(status).toMatch(/CapEff:\s+0+\n/)
      expect(status).toMatch(/CapBnd:\s+0+\n/)
      expect(status).toMatch(/NoNewPrivs:\s+1/)
      expect(status).toMatch(/Seccomp:\s+2/)
      for (const forbidden of [
        'mount -t tmpfs x /mnt',
        'unshare -r true',
        'chown root /workspace',
        'kill -9 1 && kill -0 1; cat /proc/1/environ',
        'prlimit --pid 1 --nofile=1:1',
        'kill -STOP $PPID',
      ]) {
        expect(await sh(forbidden)).not.toMatchObject({ kind: 'exited', code: 0 })
      }
    })

    it('gives a root box what set-up needs, a hidden supervisor and users to drop to', async () => {
      const root = await createBox({ profile: 'root', workdir: '/srv/made/here' })
      const setup = await root.exec({ command: 'touch a && chown agent a && su agent -c id && pwd' })
      expect(text(setup.stdout)).toMatch(/uid=1000\(agent\)[^]*\/srv\/made\/here/)
      expect(await root.exec({ command: 'cat /proc/1/fd/0 /proc/1/mem' })).not.toMatchObject({ code: 0 })
      expect(await root.exec({ command: 'mount -t tmpfs x /mnt' })).not.toMatchObject({ code: 0 })
      expect(await root.exec({ command: 'mknod /tmp/d b 8 0' })).not.toMatchObject({ code: 0 })
      const dropped = await root.exec({ command: 'id -un; echo $HOME; kill -9 $PPID || echo no', user: 'agent' })
      expect(text(dropped.stdout)).toBe('agent\n/home/agent\nno\n')
      await root.destroy()
    })

    it('contains a fork bomb by its process limit', async () => {
      const tight = await createBox({ pids: 64 })
      const bomb = await tight.exec({ command: ':(){ :|:& };: 2>/dev/null; sleep 100', timeoutMs: 500, graceMs: 0 })
      expect(bomb.kind).toMatch(/timed_out|exited/)
      expect(await tight.exec({ command: 'echo fine' })).toMatchObject({ kind: 'exited', code: 0 })
      await tight.destroy()
    })

    it('limits the size of a file', async () => {
      const tight = await createBox({ fileMb: 1 })
      const piped = await tight.exec({ command: ['head', '-c', '2000000', '/dev/zero'] })
      expect([piped.kind, piped.stdout.byteLength]).toEqual(['exited', 2_000_000])
      expect(await tight.exec({ command: 'exec head -c 2000000 /dev/zero > big' })).toMatchObject({ signal: 'SIGXFSZ' })
      await tight.destroy()
    })

    it('mounts bundles read-only', async () => {
      const bundle = await provider().ensureBundle({
        name: 'contract-test',
        version: '1',
        build: (directory) => writeFile(join(directory, 'tool'), '#!/bin/sh\necho tool', { mode: 0o755 }),
      })
      const with_ = await createBox({ mounts: [{ bundle, target: '/opt/tool' }] })
      expect(text((await with_.exec({ command: '/opt/tool/tool; touch /opt/tool/x || echo ro' })).stdout)).toBe(
        'tool\nro\n',
      )
      await with_.destroy()
      const again = await provider().ensureBundle({
        name: 'contract-test',
        version: '1',
        build: () => Promise.reject(),
      })
      expect(again).toEqual({ volume: bundle.volume, fresh: false })
    })
  })
}
