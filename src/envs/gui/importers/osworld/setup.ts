import { readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { z } from 'zod'
import { gui, PaddockError } from '../../../../kits/environment.ts'
import type { Step } from './data.ts'
import { sameUrl } from './metrics/index.ts'

/** Where a task is worked on, and what its steps leave for its getters. */
export interface Stage {
  readonly id: string
  readonly machine: gui.Machine & gui.MachineBrowser
  /** Absolute; null: none. */
  readonly assets: string | null
  /** What commands wrote for `cache_file`, by name. */
  readonly cache: Map<string, Buffer>
  readonly signal: AbortSignal
}

const command = z.union([z.string(), z.array(z.string())])
/** Some files write `"shell": "true"`, which Python takes for true as well. */
const shell = z.union([z.boolean(), z.string().transform((text) => text !== '')]).default(false)
const windowShape = z.object({
  window_name: z.string(),
  strict: z.boolean().default(false),
  by_class: z.boolean().default(false),
})
const until = z.object({
  returncode: z.number().optional(),
  stdout: z.string().optional(),
  stderr: z.string().optional(),
})
const execute = z.object({
  command,
  shell,
  stdout: z.string().default(''),
  stderr: z.string().default(''),
  until: until.default({}),
})
/** Steps by name, with the parameters that they take (desktop_env/controllers/setup.py, the `_<type>_setup` methods). */
const shapes = {
  download: z.object({ files: z.array(z.object({ url: z.string(), path: z.string() })) }),
  upload_file: z.object({ files: z.array(z.object({ local_path: z.string(), path: z.string() })) }),
  launch: z.object({ command, shell }),
  open: z.object({ path: z.string() }),
  execute,
  command: execute,
  sleep: z.object({ seconds: z.number().min(0).max(600) }),
  activate_window: windowShape,
  close_window: windowShape,
  chrome_open_tabs: z.object({ urls_to_open: z.array(z.string()) }),
  chrome_close_tabs: z.object({ urls_to_close: z.array(z.string()) }),
} as const
type StepName = keyof typeof shapes

/** What keeps a step from being run here; null: nothing. */
export function stepProblem({ type, parameters }: Step): string | null {
  if (!isStep(type)) return `there is no set-up step ${type} here (${Object.keys(shapes).join(', ')})`
  const parsed = shapes[type].safeParse(parameters)
  const [issue] = parsed.error?.issues ?? []
  return issue === undefined ? null : `${type}: ${issue.path.join('.')}: ${issue.message}`
}

/** Files that a step needs from the user's assets. */
export function neededBy({ type, parameters }: Step): readonly { readonly url: string; readonly name: string }[] {
  const files = type === 'download' ? shapes.download.safeParse(parameters).data?.files : undefined
  return (files ?? []).map(({ url, path }) => ({ url, name: path }))
}

/**
 * Runs steps one after the other. `before` an attempt a step that fails throws `ENVIRONMENT_SETUP_FAILED`; `after` it the
 * agent's work may be why, and it goes on as OSWorld does. Throws `TASK_UNSUPPORTED` and faults of the machine, naming the step.
 */
export async function runSteps(steps: readonly Step[], stage: Stage, when: 'before' | 'after'): Promise<void> {
  for (const step of steps) {
    stage.signal.throwIfAborted()
    const failed = await runStep(step, stage)
    if (failed === null || when === 'after') continue
    throw new PaddockError('ENVIRONMENT_SETUP_FAILED', `The task ${stage.id} of OSWorld: ${failed}`, {
      data: { task: stage.id, step: step.type },
    })
  }
}

/** What failed, in words; null: nothing. */
async function runStep({ type, parameters }: Step, stage: Stage): Promise<string | null> {
  const { machine } = stage
  switch (type) {
    case 'download':
      for (const { url, path } of shapes.download.parse(parameters).files) {
        const data = stage.assets === null ? null : await gui.asset(stage.assets, { id: stage.id, url, name: path })
        if (data === null) throw unsupported(stage, `${url} is not among the assets`)
        await machine.upload(path, data)
      }
      return null
    case 'upload_file':
      for (const { local_path: local, path } of shapes.upload_file.parse(parameters).files) {
        if (stage.assets === null) throw unsupported(stage, `${local} needs a folder of assets`)
        const source = join(stage.assets, local)
        // A task file must not bring other files of this machine into its box.
        if (!source.startsWith(join(stage.assets, '/'))) throw unsupported(stage, `${local} is outside of the assets`)
        await machine.upload(path, await readFile(source))
      }
      return null
    case 'launch': {
      const given = shapes.launch.parse(parameters)
      await machine.launch(filled(given.command, machine), given.shell)
      return null
    }
    case 'open': {
      const { path } = shapes.open.parse(parameters)
      await machine.launch((await machine.file(path)) === null ? [path] : ['xdg-open', path], false)
      const window = { name: basename(path), strict: false, byClass: false }
      const opened = await untilHeld(() => machine.activateWindow(window), stage.signal)
      return opened ? null : `no window of ${path} has opened`
    }
    case 'execute':
    case 'command':
      return runCommand(execute.parse(parameters), stage)
    case 'sleep':
      await new Promise((resolve) => setTimeout(resolve, shapes.sleep.parse(parameters).seconds * 1000))
      return null
    case 'activate_window': {
      const { window_name: name, strict, by_class: byClass } = windowShape.parse(parameters)
      // A program that was launched before may not have opened it yet.
      const there = await untilHeld(() => machine.activateWindow({ name, strict, byClass }), stage.signal)
      return there ? null : `there is no window ${JSON.stringify(name)} to activate`
    }
    case 'close_window': {
      const { window_name: name, strict, by_class: byClass } = windowShape.parse(parameters)
      await machine.closeWindow({ name, strict, byClass })
      return null
    }
    case 'chrome_open_tabs':
      await machine.openTabs(shapes.chrome_open_tabs.parse(parameters).urls_to_open)
      return null
    case 'chrome_close_tabs': {
      const { urls_to_close: urls } = shapes.chrome_close_tabs.parse(parameters)
      await machine.closeTabs((url) => urls.some((other) => sameUrl(url, other)))
      return null
    }
    default:
      throw unsupported(stage, stepProblem({ type, parameters }) ?? type)
  }
}

/** As there: up to five failures, until what is waited for holds. What failed, in words; null: nothing. */
async function runCommand(given: z.infer<typeof execute>, { machine, cache, signal }: Stage): Promise<string | null> {
  const line = filled(given.command, machine)
  const rooted = typeof line === 'string' && !machine.hasSudo ? gui.withoutSudo(line) : null
  const wanted = given.until
  const waits = Object.values(wanted).some((value) => value !== undefined)
  for (let failures = 1; ; failures += 1) {
    signal.throwIfAborted()
    const { returncode, output, error } = await machine.execute(rooted ?? line, {
      shell: given.shell,
      asRoot: rooted !== null,
    })
    if (given.stdout !== '') cache.set(given.stdout, Buffer.from(output))
    if (given.stderr !== '') cache.set(given.stderr, Buffer.from(error))
    const held =
      returncode === wanted.returncode ||
      (wanted.stdout !== undefined && output.includes(wanted.stdout)) ||
      (wanted.stderr !== undefined && error.includes(wanted.stderr))
    const told = `${JSON.stringify(given.command).slice(0, 200)} ended with ${returncode}: ${error.slice(-300).trim()}`
    if (!waits) return returncode === 0 ? null : told
    if (held) return null
    if (failures === 5) return `${told}; it never came to ${JSON.stringify(wanted)}`
    await new Promise((resolve) => setTimeout(resolve, 300))
  }
}

/** The words that task files leave open (setup.py, `replace_screen_env_in_command`). */
function filled<T extends string | readonly string[]>(given: T, { screen }: gui.Machine): string | readonly string[] {
  const words: Readonly<Record<string, string>> = {
    CLIENT_PASSWORD: 'password',
    SCREEN_WIDTH_HALF: String(Math.floor(screen.width / 2)),
    SCREEN_HEIGHT_HALF: String(Math.floor(screen.height / 2)),
    SCREEN_WIDTH: String(screen.width),
    SCREEN_HEIGHT: String(screen.height),
  }
  const fill = (text: string) => text.replaceAll(/\{([A-Z_]+)\}/g, (whole, name: string) => words[name] ?? whole)
  return typeof given === 'string' ? fill(given) : given.map(fill)
}

/** False: it did not hold for twenty seconds. */
async function untilHeld(test: () => Promise<boolean>, signal: AbortSignal): Promise<boolean> {
  for (let time = 0; time < 100; time += 1) {
    if (await test()) return true
    signal.throwIfAborted()
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
  return false
}

function isStep(type: string): type is StepName {
  return type in shapes
}

function unsupported({ id }: Stage, what: string): PaddockError {
  return new PaddockError('TASK_UNSUPPORTED', `The task ${id} of OSWorld: ${what}`, { data: { task: id } })
}
