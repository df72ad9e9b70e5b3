import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { dockerProvider } from '../../src/sandbox/index.ts'
import { requireDocker, sandboxContract } from '../../src/testing/sandbox/index.ts'
import { type SecondDocker, secondDocker } from './second-docker.ts'

describe.runIf(await requireDocker())('boxes of a daemon that sees none of our files', () => {
  let daemon: SecondDocker
  beforeAll(async () => {
    daemon = await secondDocker()
    await daemon.bringBase()
  })
  afterAll(() => daemon?.[Symbol.asyncDispose]())

  const spec = { profile: 'user', labels: { role: 'probe' } } as const

  describe('pass the contract', () => {
    sandboxContract({ make: async () => dockerProvider({ host: daemon.host, tls: daemon.tls }), nasty: 1 })
  })

  test('keep their relay though they ask for much and read nothing', async () => {
    await using sandbox = dockerProvider({ host: daemon.host, tls: daemon.tls, warmBoxes: 0 })
    await using socket = await sandbox.openModelSocket()
    const much = Buffer.alloc(8 << 20, 'x')
    socket.serve({ request: (request, response) => response.end(request.url === '/much' ? much : 'still here') })
    const image = await sandbox.ensureImage({ kind: 'paddock-base' })
    await using box = await sandbox.createBox({ ...spec, image, modelPath: { socket } })
    const hoard = `import socket, sys
held = [socket.create_connection(('127.0.0.1', ${new URL(box.modelUrl ?? '').port})) for _ in range(500)]
for one in held: one.sendall(b'GET /much HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')
for one in held: one.recv(1)
print('all began', flush=True)
sys.stdin.read()`
    const began = Promise.withResolvers<void>()
    const asked = Promise.withResolvers<Uint8Array>()
    const hoarding = box.exec({
      command: ['python3', '-c', hoard],
      onStdout: () => began.resolve(),
      stdin: (async function* () {
        yield await asked.promise
      })(),
    })
    await Promise.race([began.promise, hoarding])
    const other = await box.exec({ command: `curl -sS ${box.modelUrl}/other` })
    expect(other).toMatchObject({ kind: 'exited', code: 0, stdout: Buffer.from('still here') })
    asked.resolve(Buffer.from('\n'))
    expect(await hoarding).toMatchObject({ kind: 'exited', code: 0, stdout: Buffer.from('all began\n') })
    const again = await box.exec({ command: `curl -sS ${box.modelUrl}/much | wc -c` })
    expect(again).toMatchObject({ code: 0, stdout: Buffer.from(`${much.length}\n`) })
  })
})
