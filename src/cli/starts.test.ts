/** What a start costs is what it loads: no command loads boxes, environments, rollouts or the server before it is run. */
import { spawnSync } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { tempDir } from '../../test/fixtures/temp-dir.ts'

/** Prints the address of each module as it is loaded, on standard error. */
const spy = `import { registerHooks } from 'node:module'
import { writeSync } from 'node:fs'
registerHooks({ load: (url, context, next) => (writeSync(2, url + '\\n'), next(url, context)) })`

const heavy = /\/node_modules\/(?:dockerode|openai|undici|http-proxy)\//

/** The modules that node loads for a program of this repository. */
function loadedBy(path: string, ...args: readonly string[]): readonly string[] {
  const hook = `data:text/javascript,${encodeURIComponent(spy)}`
  const program = fileURLToPath(new URL(path, import.meta.url))
  // A file takes all that is written at once; a pipe that is full refuses it.
  const directory = tempDir()
  const told = join(directory, 'stderr')
  const file = openSync(told, 'w')
  try {
    const stdio = ['ignore', 'ignore', file] as const
    const { status } = spawnSync(process.execPath, ['--import', hook, program, ...args], { stdio: [...stdio] })
    const lines = readFileSync(told, 'utf8').trim().split('\n')
    expect([status, status === 0 ? '' : lines.slice(-10)]).toEqual([0, ''])
    return lines
  } finally {
    closeSync(file)
  }
}

it('loads all commands for the help without what only some of them need when they run', () => {
  const modules = loadedBy('main.ts', '--help')
  expect(modules.some((url) => url.endsWith('/src/cli/commands/show.ts'))).toBe(true)
  expect(modules.filter((url) => /\/src\/(?:server|rollout|envs|reward|sandbox)\//.test(url))).toEqual([])
  expect(modules.filter((url) => heavy.test(url) || url.includes('/@opentelemetry/'))).toEqual([])
})

it('loads the packages of boxes, judges, engines behind TLS and consoles with the first of them', () => {
  const modules = loadedBy('../server/index.ts')
  expect(modules.some((url) => url.endsWith('/src/sandbox/docker/daemon.ts'))).toBe(true)
  expect(modules.filter((url) => heavy.test(url))).toEqual([])
})
