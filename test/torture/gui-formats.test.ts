/** Tasks in the formats of the field, each proven as our own are: oracle 1 twice, null agent 0, cheats 0. */
import { createServer } from 'node:http'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { attempt, serveDesktop, validateTasks } from '../../src/envs/index.ts'
import { writeTasks } from '../../src/envs/gui/importers/cua-bench/cua-bench.fixture.ts'
import { writeCheckout } from '../../src/envs/gui/importers/miniwob/miniwob.fixture.ts'
import { terminalSet, terminalTask } from '../../src/envs/gui/importers/osworld/osworld.fixture.ts'
import { cartSet, cartTask, shoppingState, shopServer } from '../../src/envs/gui/importers/webarena/webarena.fixture.ts'
import { dockerProvider, type SandboxProvider } from '../../src/sandbox/index.ts'
import { requireDocker } from '../../src/testing/sandbox/index.ts'
import { builtInGui } from '../../src/builtin/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'

const signal = new AbortController().signal
const gui = builtInGui({ trustTasks: true })

describe.runIf(await requireDocker())('imported gui tasks', () => {
  const directory = tempDir()
  const write = (name: string, content: unknown) => {
    const path = join(directory, name)
    mkdirSync(join(path, '..'), { recursive: true })
    writeFileSync(path, JSON.stringify(content))
    return path
  }
  let sandbox: SandboxProvider
  beforeAll(() => {
    sandbox = dockerProvider()
  })
  afterAll(async () => {
    await sandbox.close()
  })
  const proven = async (path: string) => {
    const tasks = await gui.load(path)
    const rows = await validateTasks({ environment: gui, tasks, sandbox, signal, parallel: 3 })
    expect(rows.flatMap(({ problems }) => problems)).toEqual([])
    expect(rows.map(({ status }) => status)).toEqual(tasks.map(() => 'proven'))
  }

  it('of MiniWoB++', async () => {
    writeCheckout(join(directory, 'checkout'))
    const press = [
      { tool: 'browser_click', args: { target: 'button "Left"' } },
      { tool: 'computer', args: { action: 'done' } },
    ]
    const set = { format: 'miniwob', directory: 'checkout', pages: ['press-one'], seeds: [1] }
    await proven(write('miniwob.json', { ...set, oracles: { 'press-one-1': press } }))
    // A page may give a part, which counts where the set says so.
    const [part] = await gui.load(write('write.json', { ...set, pages: ['write-word'], score: 'raw' }))
    if (part === undefined) throw new Error('no task')
    const steps = [
      { tool: 'browser_type', args: { target: 'textbox "Word"', text: 'hedgehog' } },
      { tool: 'browser_click', args: { target: 'button "Submit"' } },
    ]
    const script = { name: 'half', weight: 1, script: { steps } }
    expect(await attempt({ environment: gui, task: part, script, sandbox, signal })).toMatchObject({ reward: 0.5 })
  })

  it('of OSWorld, on a desktop of ours', async () => {
    write('osworld/task.json', terminalTask)
    await proven(write('osworld.json', { format: 'osworld', directory: 'osworld', ...terminalSet }))
  })

  it("of OSWorld, on a machine that OSWorld's routes lead to", async () => {
    const screen = { width: 1024, height: 768 }
    await using desktop = await serveDesktop(sandbox, { screen, host: '127.0.0.1', port: 0, sites: [], signal })
    let resets = 0
    const reset = createServer((request, response) => {
      resets += 1
      request.resume()
      // Until the old window is gone: what is opened next waits for a window of its name, and would find this one.
      const gone = 'for n in $(seq 100); do xwininfo -root -tree | grep -qi xterm || break; sleep 0.05; done'
      const script = `pkill xterm; ${gone}; rm -rf ~/Desktop/*; true`
      const headers = { 'content-type': 'application/json' }
      void fetch(`${desktop.url}/run_bash_script`, { method: 'POST', headers, body: JSON.stringify({ script }) }).then(
        (done) => response.writeHead(done.status).end(),
        () => response.writeHead(500).end(),
      )
    })
    const listening = Promise.withResolvers<void>()
    reset.listen(0, '127.0.0.1', listening.resolve)
    await listening.promise
    const address = reset.address()
    const port = typeof address === 'object' ? address?.port : 0
    const machine = { url: desktop.url, reset: `http://127.0.0.1:${port}/` }
    // Sudo is the machine's own there: this one has none.
    const [, ...config] = terminalTask.config
    const folder = { type: 'execute', parameters: { command: 'mkdir ~/Desktop/todo_list_Jan_1', shell: true } }
    write('machine/task.json', { ...terminalTask, config: [folder, ...config] })
    await proven(write('machine.json', { format: 'osworld', directory: 'machine', ...terminalSet, machine }))
    expect(resets).toBe(4)
    reset.close()
  })

  it('of WebArena', async () => {
    const shop = shopServer()
    const listening = Promise.withResolvers<void>()
    shop.listen(0, '127.0.0.1', listening.resolve)
    await listening.promise
    const address = shop.address()
    const sites = { SHOPPING: `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}` }
    write('webarena/tasks.json', [cartTask])
    write('webarena/auth/shopping_state.json', shoppingState)
    await proven(write('webarena/set.json', { format: 'webarena', tasks: 'tasks.json', ...cartSet, sites }))
    shop.close()
    shop.closeAllConnections()
  })

  it('of cua-bench', async () => {
    writeTasks(join(directory, 'cua'))
    await proven(join(directory, 'cua'))
    const [task] = await gui.load(join(directory, 'cua'))
    if (task === undefined) throw new Error('no task')
    // Nobody but a validation may ask for the module's own solution.
    const guess = [
      { tool: 'computer', args: { action: 'solve', word: 'heron' } },
      { tool: 'computer', args: { action: 'done' } },
    ]
    const script = { name: 'guess', weight: 1, script: { steps: guess } }
    expect(await attempt({ environment: gui, task, script, sandbox, signal })).toMatchObject({ reward: 0 })
  })
})
