/** What a start costs is what it loads: no command loads boxes, environments, rollouts or the server before it is run. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

/** Prints the address of each module as it is loaded, on standard error. */
const spy = `import { registerHooks } from 'node:module'
import { writeSync } from 'node:fs'
registerHooks({ load: (url, context, next) => (writeSync(2, url + '\\n'), next(url, context)) })`

it('loads all commands for the help without what only some of them need when they run', () => {
  const main = fileURLToPath(new URL('main.ts', import.meta.url))
  const hook = `data:text/javascript,${encodeURIComponent(spy)}`
  const { status, stderr } = spawnSync(process.execPath, ['--import', hook, main, '--help'], { encoding: 'utf8' })
  const modules = stderr.trim().split('\n')
  expect(status).toBe(0)
  expect(modules.some((url) => url.endsWith('/src/cli/commands/show.ts'))).toBe(true)
  const heavy = modules.filter((url) =>
    /\/src\/(?:server|rollout|envs|reward|sandbox)\/|\/node_modules\/(?:dockerode|openai|express)\//.test(url),
  )
  expect(heavy).toEqual([])
})
