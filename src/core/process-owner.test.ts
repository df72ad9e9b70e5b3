/** Who is alive, said from namespaces of their own: a Paddock in a container and one on the host share a daemon and no numbers. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setImmediate } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { isOwnerAlive, thisOwner } from './process-owner.ts'

const source = JSON.stringify(new URL('./process-owner.ts', import.meta.url).href)

/** A process in a pid namespace of its own that says who it is, and then answers who is alive; null where none may be made. */
async function elsewhere(): Promise<{
  readonly owner: string
  seesAlive(owner: string): Promise<boolean>
  kill(): Promise<void>
} | null> {
  const program = `
    const { isOwnerAlive, thisOwner } = await import(${source})
    console.log(thisOwner())
    process.stdin.on('data', (owner) => console.log(isOwnerAlive(String(owner).trim())))`
  const root = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user']
  const args = [
    ...root,
    '--pid',
    '--fork',
    '--kill-child',
    '--mount-proc',
    process.execPath,
    '--input-type=module',
    '-e',
    program,
  ]
  const child: ChildProcess = spawn('unshare', args, { stdio: ['pipe', 'pipe', 'ignore'] })
  if (child.stdout === null) throw new Error('no output')
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const first = await lines.next()
  if (first.done === true) return null
  return {
    owner: first.value,
    async seesAlive(owner) {
      child.stdin?.write(`${owner}\n`)
      return (await lines.next()).value === 'true'
    },
    async kill() {
      const ended = once(child, 'close')
      child.kill('SIGKILL')
      await ended
    },
  }
}

it('nobody in a namespace takes a live process outside of it, or in another one, for dead', async () => {
  const [one, other] = [await elsewhere(), await elsewhere()]
  if (one === null || other === null) return
  expect(await one.seesAlive(thisOwner())).toBe(true)
  expect(await one.seesAlive(other.owner)).toBe(true)
  expect(await one.seesAlive(one.owner)).toBe(true)
  expect(isOwnerAlive(one.owner)).toBe(true)
  await one.kill()
  // From the first namespace of a machine all others are seen.
  // A killed process has closed its files a moment before it is gone.
  if (process.getuid?.() === 0 && thisOwner().includes(':4026531836'))
    while (isOwnerAlive(one.owner)) await setImmediate()
  expect(isOwnerAlive(other.owner)).toBe(true)
  expect(await other.seesAlive(one.owner)).toBe(true)
  await other.kill()
})

it('a process of this namespace is known by its start, and one of an earlier uptime of this machine is gone', () => {
  const [pid, boot, start, namespace, machine] = thisOwner().split(':')
  expect(isOwnerAlive(`${pid}:${boot}:${start}:${namespace}`)).toBe(true)
  expect(isOwnerAlive(`${pid}:${boot}:1:${namespace}`)).toBe(false)
  expect(isOwnerAlive(`${pid}:another-boot:${start}:${namespace}`)).toBe(false)
  expect(isOwnerAlive(`${pid}:another-boot:${start}:${namespace}:${machine}`)).toBe(false)
  // Of another machine that shares the daemon: it cannot be looked into from here.
  expect(isOwnerAlive(`${pid}:another-boot:${start}:${namespace}:0123456789ab`)).toBe(true)
  expect(isOwnerAlive('who knows')).toBe(true)
})
