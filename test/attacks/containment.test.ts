import { once } from 'node:events'
import { createServer } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { dockerProvider, type SandboxProvider } from '../../src/sandbox/index.ts'
import { requireDocker } from '../../src/testing/sandbox/index.ts'

describe.runIf(await requireDocker())('attacks on what is around a box', () => {
  let sandbox: SandboxProvider
  beforeAll(() => {
    sandbox = dockerProvider()
  })
  afterAll(() => sandbox.close())

  it('find no host, no other session and no more rights, also as root', async () => {
    const control = createServer((_request, response) => void response.end('control')).listen(0, '127.0.0.1')
    await once(control, 'listening')
    const address = control.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    const image = await sandbox.ensureImage({ kind: 'paddock-base' })
    const [mine, other] = [await sandbox.openModelSocket(), await sandbox.openModelSocket()]
    other.serve({ request: (_request, response) => void response.end('other session') })
    mine.serve({ request: (_request, response) => void response.end('my session') })
    const labels = { role: 'probe' as const }
    await using box = await sandbox.createBox({ image, profile: 'root', labels, modelPath: { socket: mine } })
    await using beside = await sandbox.createBox({ image, profile: 'root', labels, modelPath: { socket: other } })
    const sh = async (command: string): Promise<string> => {
      const result = await box.exec({ command, timeoutMs: 300_000 })
      return Buffer.concat([result.stdout, result.stderr]).toString()
    }
    try {
      // Loopback, the bridge, the metadata service, other ports of the own loopback; by CONNECT and absolute form too.
      const reached =
        await sh(`for h in 127.0.0.1:${port} 172.17.0.1:${port} 169.254.169.254 [::1]:${port} localhost:2375; do
        curl -sS -m 1 http://$h/; curl -sS -m 1 -x ${box.modelUrl} -p http://$h/; done 2>/dev/null; curl -sS ${box.modelUrl}/`)
      expect(reached).toBe('my session')
      // Escapes: devices, kernel interfaces, other processes, mounts, the programs that guard it.
      const escaped = await sh(`set +e
        for f in /proc/sysrq-trigger /proc/sys/kernel/core_pattern /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max /sys/fs/cgroup/pids/pids.max /.paddock/supervisor; do (test -e $f && echo 0 > $f) 2>/dev/null && echo wrote $f; done
        mknod /tmp/disk b 254 0 2>/dev/null && cat /tmp/disk | head -c 1 && echo read a disk
        mount -o remount,rw /.paddock 2>/dev/null && echo remounted; mount --bind / /mnt 2>/dev/null && echo bound
        unshare -Ur true 2>/dev/null && echo namespaced; nsenter -t 1 -a true 2>/dev/null && echo entered
        gcc -x c -o /tmp/k - <<<'#include <sys/syscall.h>
#include <unistd.h>
#include <stdio.h>
int main(){ if (syscall(SYS_keyctl,0,-3,0)>=0) puts("keyring"); if (syscall(SYS_bpf,0,0,0)==0) puts("bpf"); return 0; }' && /tmp/k
        ls /run/paddock /var/run/docker.sock /model 2>/dev/null; cat /proc/1/environ 2>/dev/null | tr '\\0' '\\n' | grep -iE 'key|token'; true`)
      expect(escaped).toBe('')
      expect(await beside.exec({ command: 'true' })).toMatchObject({ kind: 'exited', code: 0 })
    } finally {
      control.close()
    }
  })

  it.each(['user', 'root'] as const)(
    'open sockets of four families only, in every way of asking (%s)',
    async (profile) => {
      const image = await sandbox.ensureImage({ kind: 'paddock-base' })
      await using box = await sandbox.createBox({ image, profile, labels: { role: 'probe' } })
      const sh = async (command: string): Promise<string> => {
        const result = await box.exec({ command, timeoutMs: 60_000 })
        return Buffer.concat([result.stdout, result.stderr]).toString()
      }
      // 1 AF_UNIX, 2 AF_INET, 10 AF_INET6, 16 AF_NETLINK; the kernel knows 46, AF_VSOCK (40) and AF_ALG (38) among them.
      const opened = await sh(`python3 - <<'X'
import errno, socket
refused = set()
for family in range(256):
    for kind in (1, 2, 3, 4, 5):
        for make in (socket.socket, socket.socketpair):
            try: make(family, kind)
            except OSError as error: refused.add((family, errno.errorcode.get(error.errno)))
print([f for f in range(256) if (f, 'EPERM') not in refused])
X`)
      expect(opened.trim().split('\n').at(-1)).toBe('[1, 2, 10, 16]')
      const program = (body: string) => `gcc -x c -o /tmp/k - <<'X'
#include <stdio.h>
#include <errno.h>
#include <unistd.h>
#include <sys/syscall.h>
int main(void) { long got = -1; ${body}
  printf("%s\\n", got >= 0 ? "opened" : errno == EPERM ? "refused" : "other"); return 0; }
X
/tmp/k 2>/dev/null; echo $?`
      expect(await sh(program('got = syscall(SYS_socket, (1L << 32) | 40, 1, 0);'))).toBe('refused\n0\n')
      // io_uring opens sockets past the call \`socket\`.
      expect(await sh(program('char p[120] = {0}; got = syscall(425, 1, p);'))).toBe('refused\n0\n')
      if (process.arch !== 'x64') return
      // The tables of ia32 and x32 call the same by other numbers; \`socketcall\` (102) hides the family.
      const ia32 =
        'int r; __asm__ volatile("int $0x80" : "=a"(r) : "a"(359), "b"(40), "c"(1), "d"(0) : "memory"); got = r;'
      expect(await sh(program(ia32))).toContain('159\n')
      expect(await sh(program(ia32.replace('359', '102')))).toContain('159\n')
      expect(await sh(program('got = syscall(0x40000000 | 41, 40, 1, 0);'))).toContain('159\n')
    },
  )

  it('cannot fill the disk with many files; what is deleted again helps', async () => {
    const image = await sandbox.ensureImage({ kind: 'paddock-base' })
    await using box = await sandbox.createBox({ image, profile: 'user', labels: { role: 'probe' }, diskMb: 100 })
    const bomb = 'for i in $(seq 5000); do head -c 4000000 /dev/zero > f$i; sleep 0.01; done'
    expect(await box.exec({ command: bomb, graceMs: 100 })).toMatchObject({ kind: 'signaled', signal: 'SIGXFSZ' })
    const left = await box.exec({ command: 'rm -f f*; sleep 2.5; echo still here' })
    expect(left).toMatchObject({ kind: 'exited', code: 0, stdout: Buffer.from('still here\n') })
  })

  it('stay inside their limits: forks, memory, files', async () => {
    const image = await sandbox.ensureImage({ kind: 'paddock-base' })
    const limits = { pids: 64, memoryMb: 128, fileMb: 16 }
    await using box = await sandbox.createBox({ image, profile: 'user', labels: { role: 'probe' }, ...limits })
    const bomb = await box.exec({ command: ':(){ :|:& };: 2>/dev/null; sleep 9', timeoutMs: 700, graceMs: 0 })
    expect(bomb.kind).toMatch(/timed_out|exited/)
    expect(await box.exec({ command: "python3 -c 'x=bytearray(1<<30)'" })).toMatchObject({ kind: 'oom' })
    expect(await box.exec({ command: 'exec head -c 50000000 /dev/zero > big' })).toMatchObject({ signal: 'SIGXFSZ' })
    expect(await box.exec({ command: ['prlimit', '--pid', '1', '--nproc=1:1'] })).not.toMatchObject({ code: 0 })
    const after = await box.exec({ command: 'stat -c %s big; ls /proc | grep -c "^[0-9]"' })
    expect(Buffer.from(after.stdout).toString()).toMatch(/^16777216\n[45]\n$/)
  })
})
