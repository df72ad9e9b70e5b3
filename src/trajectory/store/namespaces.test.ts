import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, it } from 'vitest'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import { openStore } from './index.ts'

const program = (directory: string): string => `
  const { openStore } = await import(${JSON.stringify(new URL('./index.ts', import.meta.url).href)})
  try {
    await (await openStore(${JSON.stringify(directory)})).close()
    console.log('opened')
  } catch (error) {
    console.log(error.code)
  }`

/** What a second owner in namespaces of its own comes to; null where this user may not make them. */
async function secondOwner(directory: string, namespaces: readonly string[]): Promise<string | null> {
  const root = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user']
  const args = [...root, ...namespaces, process.execPath, '--input-type=module', '-e', program(directory)]
  const child = spawn('unshare', args, { stdio: ['ignore', 'pipe', 'pipe'] })
  let [said, complained] = ['', '']
  child.stdout.on('data', (bytes: Buffer) => (said += bytes.toString()))
  child.stderr.on('data', (bytes: Buffer) => (complained += bytes.toString()))
  await once(child, 'close')
  return said === '' && /unshare: /.test(complained) ? null : said.trim() || complained
}

it.for([
  ['pid', ['--pid', '--fork']],
  ['pid with a /proc of its own', ['--pid', '--fork', '--mount-proc']],
  ['network', ['--net']],
] as const)(
  'an owner in another %s namespace is refused while one lives, and let in afterwards',
  async ([what, namespaces], { skip }) => {
    const directory = tempDir()
    const store = await openStore(directory)
    const refused = await secondOwner(directory, namespaces)
    await store.close()
    const after = refused === null ? null : await secondOwner(directory, namespaces)
    skip(refused === null, `this user may not make a namespace: ${what}`)
    expect([refused, after]).toEqual(['STORE_LOCKED', 'opened'])
  },
)
