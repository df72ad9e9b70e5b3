/** What every store starts loads little: each process and each test that opens one pays for it twice. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')

/** Names of the packages that a module loads with all that it imports. */
async function packagesOf(module: string): Promise<string[]> {
  const script = `
    import { registerHooks } from 'node:module'
    const names = new Set()
    registerHooks({ load: (url, context, next) => {
      const [, name] = /node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(url) ?? []
      if (name !== undefined) names.add(name)
      return next(url, context)
    } })
    // A thread's file refuses to run outside of one, once it is loaded.
    await import(${JSON.stringify(join(root, module))}).catch(() => {})
    console.log(JSON.stringify([...names].sort()))`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script])
  return JSON.parse(stdout) as string[]
}

it.each(['src/trajectory/store/side-worker.ts', 'src/trajectory/recorder/worker.ts'])(
  'the thread %s loads its driver and no other package',
  async (thread) => {
    expect(await packagesOf(thread)).toEqual(['better-sqlite3'])
  },
)
