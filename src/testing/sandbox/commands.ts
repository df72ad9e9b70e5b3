import { createHash, randomBytes } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Box } from '../../sandbox/index.ts'
import { nastyCommands } from './nasty.ts'
import { type SharedBoxParts, text } from './parts.ts'

/** The part of the sandbox contract about commands: how they end, what they get and give, and that nothing outlives them. */
export function commandsContract(parts: SharedBoxParts, options: { readonly nasty?: number }): void {
  const { createBox, sh } = parts
  let box: Box
  beforeAll(() => {
    box = parts.box()
  })

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
      const none = await box.exec({ command: ['/etc/passwd'] })
      expect(none).toMatchObject({ kind: 'exited', code: 126, notStarted: 'cannot run /etc/passwd: Permission denied' })
      const lost = await box.exec({ command: ['true'], cwd: '/nowhere' })
      expect(lost).toMatchObject({ kind: 'exited', code: 126 })
      expect(text(lost.stderr)).toContain('/nowhere')
      const faked = await sh("echo 'paddock: cannot run x: No such file or directory' >&2; exit 127")
      expect(faked).toMatchObject({ kind: 'exited', code: 127 })
      expect(faked.notStarted).toBeUndefined()
    })

    it('is timed_out at the deadline, also for a command that exits 0 on TERM', async () => {
      expect(await sh('sleep 100', { timeoutMs: 100 })).toMatchObject({ kind: 'timed_out' })
      // Long enough for a shell to come as far as its trap on a busy machine.
      const polite = await sh('trap "echo bye; exit 0" TERM; while :; do sleep 0.02; done', { timeoutMs: 2500 })
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
      const result = await sh('head -c 400000000 /dev/zero; echo end >&2', { maxOutputBytes: 1000, timeoutMs: 60_000 })
      expect(result).toMatchObject({ kind: 'exited', code: 0, truncated: { stdout: 399_999_000, stderr: 0 } })
      expect(result.stdout.byteLength).toBe(1000)
      expect(text(result.stderr)).toBe('end\n')
      // Of 400 MB; the rest is room for what the heap of a test process grows by itself.
      expect(process.memoryUsage().rss - before).toBeLessThan(128 << 20)
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

    it('and what had only just begun counts as killed', async () => {
      // One in a hundred was reaped by its own keeper, which was being killed too.
      for (let round = 0; round < 150; round += 1) {
        const left = await sh('(setsid sh -c "sleep 1234" &); true')
        expect(left.kind).toBe('exited')
        expect(left.killed, `round ${round}`).toBeGreaterThan(0)
      }
      expect(await sh('true')).toMatchObject({ killed: 0 })
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
}

/** Processes of a box that belong to no running command, as the box itself sees them. */
async function survivors(box: Box): Promise<string[]> {
  const listing = await box.exec({ command: ['ps', '-eo', 'pid=,ppid=,stat=,args='] })
  expect(listing).toMatchObject({ kind: 'exited', code: 0 })
  return text(listing.stdout)
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.includes('supervisor') && !line.includes('ps -eo'))
}
