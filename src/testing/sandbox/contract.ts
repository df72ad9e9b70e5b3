import { createHash, randomBytes } from 'node:crypto'
import { createServer as createHttpServer } from 'node:http'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Box, BoxSpec, ExecResult, ImageRef, SandboxProvider, Slot } from '../../sandbox/index.ts'
import { nastyCommands } from './nasty.ts'

/** What the suite needs to know of a provider. */
export interface SandboxContractOptions {
  /** A fresh provider; the suite closes it. */
  make(): Promise<SandboxProvider>
  /** How many of the commands that try to survive are run. Default: all. */
  readonly nasty?: number
}

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8')

/** Everything that a sandbox provider promises, against the real thing. The image `paddock-base` must be to be had. */
export function sandboxContract(options: SandboxContractOptions): void {
  let provider: SandboxProvider
  let image: ImageRef
  let box: Box
  let slot: Slot
  const open = new Set<Box>()

  const createBox = async (spec: Partial<BoxSpec> = {}): Promise<Box> => {
    const made = await provider.createBox({ image, profile: 'user', labels: { role: 'probe' }, ...spec })
    open.add(made)
    return made
  }

  beforeAll(async () => {
    provider = await options.make()
    image = await provider.ensureImage({ kind: 'paddock-base' })
    slot = await provider.openSlot()
    box = await createBox({ modelPath: { slot }, pids: 256 })
  }, 300_000)

  afterAll(async () => {
    await provider?.close()
  })

  /** One command in the shared box, which must survive it. */
  const sh = async (command: string, more: Partial<Parameters<Box['exec']>[0]> = {}): Promise<ExecResult> => {
    const result = await box.exec({ command, timeoutMs: 10_000, ...more })
    expect(result.kind).not.toBe('box_dead')
    return result
  }

  describe('the end of a command', () => {
    it('is an exit code', async () => {
      expect(await sh('exit 0')).toMatchObject({ kind: 'exited', code: 0 })
      expect(await sh('exit 37')).toMatchObject({ kind: 'exited', code: 37 })
    })

    it('is a code of 128 and more only when the command chose it', async () => {
      expect(await sh('exit 137')).toMatchObject({ kind: 'exited', code: 137 })
      expect(await sh('exit 124')).toMatchObject({ kind: 'exited', code: 124 })
    })

    it('is a signal', async () => {
      expect(await sh('kill -SEGV $$')).toMatchObject({ kind: 'signaled', signal: 'SIGSEGV' })
      expect(await sh('kill -KILL $$')).toMatchObject({ kind: 'signaled', signal: 'SIGKILL' })
      expect(await sh('kill -TERM $$')).toMatchObject({ kind: 'signaled', signal: 'SIGTERM' })
    })

    it('is 127 for a program that is not there and 126 for one that is none', async () => {
      expect(await box.exec({ command: ['/nowhere'] })).toMatchObject({ kind: 'exited', code: 127 })
      expect(await box.exec({ command: ['/etc/passwd'] })).toMatchObject({ kind: 'exited', code: 126 })
      const lost = await box.exec({ command: ['true'], cwd: '/nowhere' })
      expect(lost).toMatchObject({ kind: 'exited', code: 126 })
      expect(text(lost.stderr)).toContain('/nowhere')
    })

    it('is timed_out at the deadline, also for a command that exits 0 on TERM', async () => {
      expect(await sh('sleep 100', { timeoutMs: 100 })).toMatchObject({ kind: 'timed_out' })
      const polite = await sh('trap "echo bye; exit 0" TERM; while :; do sleep 0.02; done', { timeoutMs: 150 })
      expect(polite).toMatchObject({ kind: 'timed_out' })
      expect(text(polite.stdout)).toBe('bye\n')
    })

    it('is oom for its own memory limit, seen through a shell too, and exit 137 stays an exit', async () => {
      const small = await createBox({ memoryMb: 64 })
      const eat = 'x = bytearray(200 << 20)'
      expect(await small.exec({ command: ['python3', '-c', eat] })).toMatchObject({ kind: 'oom', oomKills: 1 })
      expect(await small.exec({ command: `python3 -c '${eat}'; exit $?` })).toMatchObject({ kind: 'oom' })
      const survived = await small.exec({ command: `python3 -c '${eat}'; echo went on` })
      expect(survived).toMatchObject({ kind: 'exited', code: 0, oomKills: 1 })
      expect(await small.exec({ command: 'exit 137' })).toMatchObject({ kind: 'exited', code: 137, oomKills: 0 })
      await small.destroy()
    })

    it('is box_dead when the box dies, and for every command after that', async () => {
      const mortal = await createBox()
      const started = Promise.withResolvers<void>()
      const command = mortal.exec({ command: 'echo on; sleep 100', onStdout: () => started.resolve() })
      await started.promise
      await mortal.destroy()
      expect(await command).toMatchObject({ kind: 'box_dead', why: { why: 'destroyed' }, stdout: Buffer.from('on\n') })
      expect(await mortal.exec({ command: 'true' })).toMatchObject({ kind: 'box_dead' })
      expect((await mortal.died).why).toBe('destroyed')
      await mortal.destroy()
    })

    it('rejects with the reason of an abort, after the kill', async () => {
      const stop = new AbortController()
      const command = box.exec(
        { command: 'echo on; exec sleep 12345', onStdout: () => stop.abort(new Error('enough')) },
        { signal: stop.signal },
      )
      await expect(command).rejects.toThrow('enough')
      expect(text((await sh('ps -eo args')).stdout)).not.toContain('sleep 12345')
    })
  })

  describe('a command', () => {
    it('has its own streams, input, environment and directory', async () => {
      const result = await sh('cat; echo err >&2; echo "$A|$PWD"', {
        stdin: 'in\0put',
        env: { A: 'ünï=1' },
        cwd: '/tmp',
      })
      expect(text(result.stdout)).toBe('in\0putünï=1|/tmp\n')
      expect(text(result.stderr)).toBe('err\n')
    })

    it('runs beside others without mixing', async () => {
      const results = await Promise.all(
        Array.from({ length: 24 }, (_, i) => sh(`cat; exit ${i}`, { stdin: `input ${i}` })),
      )
      expect(results.map((r) => [r.kind === 'exited' && r.code, text(r.stdout)])).toEqual(
        Array.from({ length: 24 }, (_, i) => [i, `input ${i}`]),
      )
    })

    it('takes input larger than any buffer, and ends though it does not read it', async () => {
      const input = randomBytes(8 << 20)
      const sum = createHash('sha256').update(input).digest('hex')
      expect(text((await sh('sha256sum', { stdin: input })).stdout)).toContain(sum)
      expect(await sh('true', { stdin: input })).toMatchObject({ kind: 'exited', code: 0 })
    })

    it('is cut at its output limit, with the rest counted and memory bounded', async () => {
      const before = process.memoryUsage().rss
      const result = await sh('head -c 400000000 /dev/zero; echo end >&2', { maxOutputBytes: 1000 })
      expect(result).toMatchObject({ kind: 'exited', code: 0, truncated: { stdout: 399_999_000, stderr: 0 } })
      expect(result.stdout.byteLength).toBe(1000)
      expect(text(result.stderr)).toBe('end\n')
      expect(process.memoryUsage().rss - before).toBeLessThan(64 << 20)
    })

    it('gives all its output when it fits, and its own end', async () => {
      const script = 'head -c 3000000 /dev/zero; head -c 2000000 /dev/zero >&2; exit 5'
      for (const background of ['kill', 'keep'] as const) {
        for (let round = 0; round < 5; round++) {
          const result = await sh(script, { background })
          const sizes = [result.stdout.byteLength, result.stderr.byteLength]
          expect({ kind: result.kind, code: result.kind === 'exited' && result.code, sizes }).toEqual({
            kind: 'exited',
            code: 5,
            sizes: [3_000_000, 2_000_000],
          })
          expect(result.truncated).toEqual({ stdout: 0, stderr: 0 })
        }
      }
    })

    it('is refused when it is malformed or for a user that this box cannot become', async () => {
      await expect(async () => box.exec({ command: [] })).rejects.toMatchObject({ code: 'BOX_COMMAND_REFUSED' })
      await expect(async () => box.exec({ command: 'a\0b' })).rejects.toMatchObject({ code: 'BOX_COMMAND_REFUSED' })
      await expect(sh('id', { user: 'root' })).rejects.toMatchObject({ code: 'BOX_COMMAND_REFUSED' })
      await expect(sh('id', { user: 'nobody-here' })).rejects.toMatchObject({ code: 'BOX_COMMAND_REFUSED' })
    })
  })

  describe('nothing outlives its command', () => {
    it.each(nastyCommands.slice(0, options.nasty))('$name', async ({ command, leaves }) => {
      const result = await sh(command, { timeoutMs: leaves ? 5000 : 250, graceMs: 100, maxOutputBytes: 1 << 16 })
      if (!leaves) expect(result.kind).toBe('timed_out')
      expect(await survivors(box)).toEqual([])
    })

    it('spares what runs beside it', async () => {
      const started = Promise.withResolvers<void>()
      const enough = Promise.withResolvers<Uint8Array>()
      // Lives until it is told, so that the others are never alone in the box.
      const beside = sh('echo on; cat; echo alive', {
        timeoutMs: 30_000,
        onStdout: () => started.resolve(),
        stdin: (async function* () {
          yield await enough.promise
        })(),
      })
      await started.promise
      await sh('setsid sleep 1000 & kill -9 $PPID')
      await sh(':(){ :|:& };: 2>/dev/null; sleep 1000', { timeoutMs: 200, graceMs: 50 })
      const deaf = 'trap "" TERM; setsid -f sleep 1000; while :; do sleep 0.02; done'
      expect((await sh(deaf, { timeoutMs: 100, graceMs: 50 })).kind).toBe('timed_out')
      await sh('kill -STOP $(ps -o ppid= -p $$); setsid -f bash -c \'trap "" TERM; sleep 1000\'')
      expect((await survivors(box)).filter((line) => !line.includes('echo alive') && !line.endsWith(' cat'))).toEqual(
        [],
      )
      enough.resolve(Buffer.from('told\n'))
      expect(text((await beside).stdout)).toBe('on\ntold\nalive\n')
      expect(await survivors(box)).toEqual([])
    })

    it('except what it may keep until the end of the phase', async () => {
      const kept = await sh('sleep 1234 & echo $!', { background: 'keep' })
      expect(kept).toMatchObject({ kind: 'exited', code: 0, killed: 0 })
      await sh('true')
      expect(await sh(`kill -0 ${text(kept.stdout)}`)).toMatchObject({ kind: 'exited', code: 0 })
      await box.killBackground()
      expect(await survivors(box)).toEqual([])
    })
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
      const command = sh('echo x > state; echo on; sleep 0.3; echo end', {
        timeoutMs: 900,
        onStdout: () => started.resolve(),
      })
      await started.promise
      await box.freeze()
      await new Promise((resolve) => setTimeout(resolve, 1000))
      expect((await box.getFiles('/workspace/state')).totalBytes).toBe(2)
      await box.thaw()
      expect(await command).toMatchObject({ kind: 'exited', code: 0, stdout: Buffer.from('on\nend\n') })
    })
  })

  describe('the model path', () => {
    it('carries requests and answers of any size', async () => {
      slot.serve({
        request: (request, response) => {
          const hash = createHash('sha256')
          request.on('data', (chunk: Buffer) => hash.update(chunk))
          request.on('end', () => response.end(`${request.url} ${hash.digest('hex')}`))
        },
      })
      const result = await sh(
        `head -c 5000000 /dev/zero > body; sha256sum < body; curl -sS --data-binary @body $URL/v1/x`,
        {
          env: { URL: box.modelUrl ?? '' },
        },
      )
      const [sum, answer] = text(result.stdout).split('  -\n')
      expect(answer).toBe(`/v1/x ${sum}`)
    })

    it('streams: a piece arrives before the next one is written', async () => {
      const seen = Promise.withResolvers<void>()
      slot.serve({
        request: (_request, response) => {
          response.write('first\n')
          void seen.promise.then(() => response.end('second\n'))
        },
      })
      const result = await sh(`curl -sSN ${box.modelUrl}/`, { onStdout: () => seen.resolve() })
      expect(text(result.stdout)).toBe('first\nsecond\n')
    })

    it('passes a half-closed connection and an abort on', async () => {
      slot.serve({ request: (request, response) => void request.resume().on('end', () => response.end('done')) })
      const port = new URL(box.modelUrl ?? '').port
      const half = await sh(`printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -N 127.0.0.1 ${port}`)
      expect(text(half.stdout)).toContain('done')
      const aborted = Promise.withResolvers<void>()
      slot.serve({ request: (_request, response) => void response.on('close', () => aborted.resolve()) })
      await sh(`curl -sS -m 0.2 ${box.modelUrl}/`)
      await aborted.promise
    })

    it('serves nothing unless something is bound, and no CONNECT unless that is served too', async () => {
      slot.unbind()
      expect(text((await sh(`curl -sS -o /dev/null -w '%{http_code}' ${box.modelUrl}/`)).stdout)).toBe('503')
      const tunnel = `curl -sS -o /dev/null -w '%{http_connect}' -p -x ${box.modelUrl} http://198.51.100.1/`
      expect(text((await sh(tunnel)).stdout)).toBe('403')
      slot.serve({
        request: (_request, response) => void response.end(),
        connect: (request, socket) => void socket.end(`HTTP/1.1 418 ${request.url?.replace(':80', '')}\r\n\r\n`),
      })
      expect(text((await sh(tunnel)).stdout)).toBe('418')
    })
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
            command: `ls /sys/class/net; cat /proc/net/route | tail -n +2
              for host in 127.0.0.1 172.17.0.1 169.254.169.254 host.docker.internal; do curl -sS -m 1 http://$host:${port}/ 2>/dev/null; done`,
          })
          expect(text(result.stdout)).toBe('lo\n')
        }
        expect(lonely.modelUrl).toBeNull()
        await lonely.destroy()
      } finally {
        bait.close()
      }
    })

    it('shows no socket, no key and no foreign process', async () => {
      const other = await provider.openSlot()
      const result = await sh(`find / -xdev -type s 2>/dev/null; ls /run/paddock /slot /var/run/docker.sock 2>/dev/null
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
      const bundle = await provider.ensureBundle({
        name: 'contract-test',
        version: '1',
        build: (directory) => writeFile(join(directory, 'tool'), '#!/bin/sh\necho tool', { mode: 0o755 }),
      })
      const with_ = await createBox({ mounts: [{ bundle, target: '/opt/tool' }] })
      expect(text((await with_.exec({ command: '/opt/tool/tool; touch /opt/tool/x || echo ro' })).stdout)).toBe(
        'tool\nro\n',
      )
      await with_.destroy()
      const again = await provider.ensureBundle({ name: 'contract-test', version: '1', build: () => Promise.reject() })
      expect(again).toEqual({ volume: bundle.volume, fresh: false })
    })
  })

  describe('the life of a box', () => {
    it('ends at its own deadline', async () => {
      const brief = await createBox({ deadlineMs: 300 })
      expect(await brief.exec({ command: 'sleep 100' })).toMatchObject({ kind: 'box_dead', why: { why: 'deadline' } })
      expect((await brief.died).why).toBe('deadline')
    })

    it('ends though it is frozen', async () => {
      const frozen = await createBox()
      await frozen.freeze()
      await frozen.destroy()
      expect((await frozen.died).why).toBe('destroyed')
    })

    it('makes the directory that it works in', async () => {
      const made = await createBox({ workdir: '/srv/not/there' })
      expect(await made.exec({ command: 'touch mine; pwd' })).toMatchObject({ stdout: Buffer.from('/srv/not/there\n') })
      expect((await made.getFiles('/srv/not/there/mine')).found).toBe(true)
      await made.destroy()
    })

    it('refuses what it cannot do', async () => {
      // The type allows only what exists; a configuration file does not know types.
      const open_ = { egress: 'open' } as unknown as Partial<BoxSpec>
      await expect(createBox(open_)).rejects.toMatchObject({ code: 'SANDBOX_CAPABILITY' })
      await expect(createBox({ image: 'paddock-no-such-image:1' })).rejects.toMatchObject({ family: 'infra' })
    })

    it('does not begin when the caller has given up', async () => {
      await expect(
        provider.createBox({ image, profile: 'user', labels: { role: 'probe' } }, { signal: AbortSignal.abort() }),
      ).rejects.toThrow(/abort/i)
    })
  })
}

/** Processes of a box that belong to no running command, as the box itself sees them. */
async function survivors(box: Box): Promise<string[]> {
  const listing = await box.exec({ command: ['ps', '-eo', 'pid=,ppid=,stat=,args='] })
  expect(listing).toMatchObject({ kind: 'exited', code: 0 })
  return text(listing.stdout)
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.includes('supervisor') && !line.includes('ps -eo'))
}
