import { describe, expect, it } from 'vitest'
import { type Box, type EgressAttempt, egressGate, isProxyRequest } from '../../sandbox/index.ts'
import { type ContractParts, text } from './parts.ts'

/** The part of the sandbox contract beyond commands and files: forks, boxes made ahead, pauses, terminals, the way out. */
export function capabilitiesContract({ provider, image, createBox }: ContractParts): void {
  const sh = async (box: Box, command: string): Promise<string> => text((await box.exec({ command })).stdout)

  describe('a snapshot', () => {
    it('starts forks with the files of its box, apart from each other, and knows where it came from', async () => {
      const box = await createBox()
      await sh(box, 'mkdir -m 700 made && echo one > made/file')
      await using snapshot = await box.snapshot()
      await sh(box, 'echo later > made/file')
      const forks = await Promise.all([createBox({ image: snapshot.image }), createBox({ image: snapshot.image })])
      const seen = await Promise.all(
        forks.map((fork, i) => sh(fork, `echo ${i} >> made/file; cat made/file; stat -c '%a %U' made`)),
      )
      expect(seen).toEqual(['one\n0\n700 agent\n', 'one\n1\n700 agent\n'])
      expect(await sh(box, 'cat made/file')).toBe('later\n')
      expect(snapshot).toMatchObject({ parent: image().tag, depth: 1 })
      await using second = await (forks[0] ?? box).snapshot()
      expect(second).toMatchObject({ parent: snapshot.image.tag, depth: 2 })
      await Promise.all([box, ...forks].map((one) => one.destroy()))
    })

    it('leaves a box frozen that was', async () => {
      const box = await createBox()
      await box.freeze()
      await using _snapshot = await box.snapshot()
      const command = box.exec({ command: 'echo on' })
      expect(await settledAtOnce(command)).toBe(false)
      await box.thaw()
      expect(text((await command).stdout)).toBe('on\n')
      await box.destroy()
    })
  })

  it('a box tells which files differ from its image, frozen or not', async () => {
    const box = await createBox({ profile: 'root' })
    await sh(box, 'echo x > /etc/motd; rm /etc/issue; mkdir /opt/new && touch /opt/new/file')
    // What tells names is its own to change and no part of it.
    expect(await sh(box, 'echo 10.9.8.7 mine | tee -a /etc/hosts /etc/resolv.conf; getent hosts mine')).toMatch(
      /^10\.9\.8\.7 mine\n10\.9\.8\.7 +mine\n$/,
    )
    await box.freeze()
    const kinds = new Map((await box.changes()).map(({ path, kind }) => [path, kind]))
    expect(
      Object.fromEntries(['/etc/motd', '/etc/issue', '/opt/new', '/opt/new/file'].map((p) => [p, kinds.get(p)])),
    ).toEqual({ '/etc/motd': 'modified', '/etc/issue': 'deleted', '/opt/new': 'added', '/opt/new/file': 'added' })
    for (const path of ['/etc/passwd', '/etc/hosts', '/etc/resolv.conf']) expect(kinds.has(path)).toBe(false)
    expect(
      await Promise.all(['/opt/new/file', '/etc/issue', '/opt/new/file/x'].map((path) => box.exists(path))),
    ).toEqual([true, false, false])
    const touched = await box.touched()
    for (const path of touched === null ? [] : ['/etc/motd', '/etc/issue', '/opt/new/file']) {
      expect(touched).toContain(path)
    }
    expect(touched ?? []).not.toContain('/etc/hosts')
    await box.destroy()
  })

  it('a box of the same image is brought to where the layer of another was taken, within limits', async () => {
    const [box, other] = await Promise.all([createBox({ profile: 'root' }), createBox({ profile: 'root' })])
    const work = `mkdir -m 1777 /opt/new && cd /opt/new && echo a > file && chown agent file && chmod 4750 file
      ln -s /etc/passwd link && ln file twin && rm /etc/issue && echo more >> /etc/motd && chmod 700 /srv`
    await sh(box, work)
    await box.freeze()
    expect(await box.takeLayer({ maxBytes: 3 })).toBeNull()
    // A name that no list can carry is no way to make the taking fail.
    await box.thaw()
    await sh(box, "touch $'/srv/\\xff'")
    expect(await box.takeLayer()).toBeNull()
    await sh(box, "rm $'/srv/\\xff'; mkdir /srv/odd; touch $'/srv/odd/\\xff'")
    expect(await box.takeLayer()).toBeNull()
    await sh(box, 'rm -r /srv/odd')
    await box.freeze()
    const layer = await box.takeLayer()
    if (layer === null) throw new Error('no layer')
    await other.applyLayer(layer)
    const look =
      "cd /opt/new; stat -c '%a %u %g %h %F %N' . file link twin /srv; cat file; tail -1 /etc/motd; ls /etc/issue 2>&1"
    await box.thaw()
    expect(await sh(other, look)).toBe(await sh(box, look))
    expect(await sh(other, look)).toContain("4750 1000 0 2 regular file 'file'")
    await Promise.all([box.destroy(), other.destroy()])
  })

  describe('boxes made ahead', () => {
    it('are fresh, and serve the socket of whoever asks', async () => {
      const spec = { image: image(), profile: 'user' as const, env: { KIND: 'ahead' } }
      using _wish = provider().prefetch({ ...spec, labels: { role: 'agent' }, modelPath: {} })
      await using socket = await provider().openModelSocket()
      socket.serve({ request: (_request, response) => void response.end('mine') })
      const box = await createBox({ ...spec, labels: { role: 'agent' }, modelPath: { socket } })
      expect(await sh(box, `ls -A; echo $KIND; curl -sS ${box.modelUrl}/`)).toBe('ahead\nmine')
      await box.destroy()
    })
  })

  describe('a pause', () => {
    it('stops agents, and no one else, and no deadline runs meanwhile', async () => {
      const [agent, other] = await Promise.all([createBox({ labels: { role: 'agent' } }), createBox()])
      const started = Promise.withResolvers<void>()
      const go = Promise.withResolvers<Uint8Array>()
      const work = agent.exec({
        command: 'echo on; read -r word; echo "$word"',
        stdin: (async function* () {
          yield await go.promise
        })(),
        timeoutMs: pausedMs,
        onStdout: () => started.resolve(),
      })
      await started.promise
      const pause = await provider().pauseBoxes()
      const nested = await provider().pauseBoxes()
      go.resolve(Buffer.from('end\n'))
      expect(await sh(other, `sleep ${pausedMs / 1000}; echo free`)).toBe('free\n')
      await pause[Symbol.asyncDispose]()
      await pause[Symbol.asyncDispose]()
      expect(await settledAtOnce(work)).toBe(false)
      await nested[Symbol.asyncDispose]()
      expect(await work).toMatchObject({ kind: 'exited', code: 0, stdout: Buffer.from('on\nend\n') })
      await Promise.all([agent.destroy(), other.destroy()])
    })

    it('leaves a box frozen that its user froze', async () => {
      const agent = await createBox({ labels: { role: 'agent' } })
      const pause = await provider().pauseBoxes()
      await agent.freeze()
      await pause[Symbol.asyncDispose]()
      const command = agent.exec({ command: 'echo on' })
      expect(await settledAtOnce(command)).toBe(false)
      await agent.thaw()
      expect((await command).kind).toBe('exited')
      await agent.destroy()
    })
  })

  it('a terminal takes keys, has a size and shows what a person would see', async () => {
    const box = await createBox()
    await using terminal = box.openTerminal({ columns: 60, rows: 10, command: ['bash', '--norc'], env: { PS1: '> ' } })
    await terminal.screenWhere(({ lines }) => lines[0] === '>')
    terminal.write('printf "a\\rB\\n"; stty size\r')
    expect((await terminal.screenWhere(({ lines }) => lines.includes('10 60'))).lines).toContain('B')
    terminal.resize(100, 30)
    terminal.write('clear; stty size\r')
    await terminal.screenWhere(({ lines }) => lines[0] === '30 100')
    await terminal.close()
    await box.destroy()
  })

  describe('the way out', () => {
    it('is what the policy says at each moment, and tells each attempt', async () => {
      const attempts: EgressAttempt[] = []
      const gate = egressGate({
        policy: { allow: ['nowhere.test'] },
        onAttempt: (attempt) => attempts.push(attempt),
        resolve: async () => ['127.0.0.1'],
      })
      await using socket = await provider().openModelSocket()
      socket.serve({
        request: (request, response) =>
          isProxyRequest(request) ? gate.request(request, response) : void response.end('the model'),
        connect: (request, socket, head) => gate.connect(request, socket, head),
      })
      const box = await createBox({ modelPath: { socket }, egress: { allow: ['nowhere.test'] } })
      expect(await sh(box, `curl -sS ${box.modelUrl}/`)).toBe('the model')
      expect(await sh(box, 'curl -sS http://nowhere.test/ 2>&1')).toContain('loopback address')
      expect(await sh(box, 'curl -sS http://169.254.169.254/latest 2>&1')).toContain('metadata address')
      gate.set('none')
      expect(await sh(box, 'curl -sS http://nowhere.test/ 2>&1')).toContain('(none)')
      const direct = "curl -sS -m 5 --noproxy '*' -o /dev/null"
      // Where connections are caught they are told too; where they are not, nothing leaves.
      await sh(box, `${direct} http://10.0.0.1/ 2>/dev/null; ${direct} http://169.254.169.254/ 2>/dev/null`)
      const asked = ['nowhere.test', '169.254.169.254', 'nowhere.test']
      const caught = box.wayOut === 'transparent' ? ['10.0.0.1', '169.254.169.254'] : []
      expect(attempts.map(({ host, allowed }) => [host, allowed])).toEqual(
        [...asked, ...caught].map((host) => [host, false]),
      )
      gate.close()
      await box.destroy()
    })

    it('is none unless it was asked for', async () => {
      const box = await createBox()
      expect(box.wayOut).toBe('none')
      await box.destroy()
    })
  })
}

/** As long as the deadline of what is paused, which is to have time enough before and after on a busy machine. */
const pausedMs = 3000

/** Whether a promise settles while the sandbox answers something else; a frozen box's does not. */
async function settledAtOnce(promise: Promise<unknown>): Promise<boolean> {
  let settled = false
  void promise.finally(() => (settled = true)).catch(() => undefined)
  // Long against a command (about 2 ms), short against a test.
  await new Promise((resolve) => setTimeout(resolve, 150))
  return settled
}
