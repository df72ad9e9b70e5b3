/**
 * `./quickstart`: runs the commands that a newcomer would type, and shows each before it runs. Everything goes through
 * `./paddock` and the documented files, so whatever it shows can be done again by hand.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { learn } from './quickstart-learn.ts'
import { about, smallModel } from './quickstart-small.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const { values: options } = parseArgs({
  options: {
    yes: { type: 'boolean', default: false },
    act: { type: 'string' },
    env: { type: 'string', default: 'terminal' },
    learn: { type: 'boolean', default: false },
    model: { type: 'string' },
    data: { type: 'string', default: '.paddock/quickstart' },
    out: { type: 'string', default: 'out/quickstart' },
    help: { type: 'boolean', short: 'h', default: false },
  },
})
const scripted = (): boolean => (process.env.ENGINE_URL ?? '') === ''
const paint = process.stdout.isTTY && process.env.NO_COLOR === undefined
const bold = (text: string): string => (paint ? `\u001b[1m${text}\u001b[0m` : text)
const dim = (text: string): string => (paint ? `\u001b[2m${text}\u001b[0m` : text)
const say = (text = ''): void => console.log(text)
/** What act 2 shows of an environment: quick tasks of different kinds. */
const sets: Readonly<
  Record<string, { readonly path: string; readonly shown: readonly string[]; readonly needs: string }>
> = {
  terminal: {
    path: 'examples/tasks/terminal',
    shown: ['log-forensics', 'failing-test-suite', 'git-archaeology'],
    needs: 'Debian packages (about 700 MB of images)',
  },
  sql: {
    path: 'examples/tasks/sql',
    // One per engine: SQLite, DuckDB, PostgreSQL.
    shown: ['shop-never-ordered', 'orchard-kilos-by-fruit', 'harbor-tonnes-by-quay'],
    needs: 'Debian packages, PostgreSQL among them, and DuckDB from npm (about 2 GB of images)',
  },
  search: {
    path: 'examples/tasks/search',
    shown: ['q001', 'q004', 'q005'],
    needs: 'Debian packages (about 650 MB of images), and a corpus of 4,000 made-up passages',
  },
  gui: {
    path: 'examples/tasks/gui',
    shown: ['sketch-draw-line-1', 'shop-buy-one-1', 'settings-forget-device-1'],
    needs: 'Debian packages, headless Chromium among them (about 1.4 GB of images)',
  },
}
const set = sets[options.env]

/** A command that failed; its own error is on the screen already. */
class StepFailed extends Error {
  readonly code: number
  constructor(command: string, code: number) {
    super(`${command} ended with exit code ${code}`)
    this.code = code
  }
}

const usage = `Usage: ./quickstart [--yes] [--act 1|2] [--env NAME] [--data DIR] [--out DIR]
       ./quickstart --model small [--yes] [--data DIR] [--out DIR]
       ./quickstart --learn [--data DIR] [--out DIR]

  --yes        install and start Docker without asking, where that is needed
  --act 1|2    only this act (default: both; without Docker act 1 only)
  --env NAME   environment of act 2: terminal (default), sql, search or gui
  --model small  act 1 with a real model of 135 million parameters on this CPU (asks before it downloads 130 MB)
  --learn      a small model learns behind a real vLLM, trained on what was recorded (15 minutes; no Docker)
  --data DIR   data directory (default: .paddock/quickstart)
  --out DIR    where the exports go (default: out/quickstart)

Environment: ENGINE_URL (a real vLLM, SGLang or other OpenAI-compatible server, with or without /v1),
ENGINE_API_KEY, MODEL. Without ENGINE_URL the scripted engine answers: it is no language model.`

async function main(): Promise<number> {
  if (options.help) {
    say(usage)
    return 0
  }
  if (options.act !== undefined && options.act !== '1' && options.act !== '2') {
    console.error(`USAGE: --act ${options.act} is not an act. Fix: --act 1 or --act 2.`)
    return 2
  }
  if (options.learn && (options.act !== undefined || options.env !== 'terminal')) {
    console.error('USAGE: --learn has no acts and no environments. Fix: leave --act and --env out.')
    return 2
  }
  if (options.learn) return learn({ data: options.data, out: options.out, say })
  if (options.model !== undefined) return small(options.model)
  if (set === undefined) {
    console.error(`USAGE: --env ${options.env} is not shown here. Fix: --env ${Object.keys(sets).join(', --env ')}.`)
    return 2
  }
  plan(set)
  if (!scripted()) await preflight()
  if (options.act !== '2') await actOne()
  if (options.act === '1') return 0
  if (!(await dockerUp())) return options.act === '2' ? 3 : 0
  await actTwo(set)
  await ending()
  return 0
}

function plan({ needs }: { readonly needs: string }): void {
  say(bold('Paddock quickstart'))
  say(`Writes   ${options.data}/ (the store) and ${options.out}/ (exports), nothing else in this folder.`)
  if (options.act !== '2')
    say('Act 1    a 30-line script, recorded token for token. No Docker, no root, a few seconds.')
  if (options.act !== '1') {
    say(`Act 2    rollouts of ${options.env} tasks in Docker boxes. The first time it builds images from`)
    say(`         ${needs},`)
    say('         and fetches Qwen Code from npm (about 350 MB with Node, into a volume).')
  }
  say(
    scripted()
      ? 'Engine   the scripted engine: no language model, it runs prepared steps.'
      : `Engine   ${process.env.ENGINE_URL}`,
  )
  say()
}

/** Act 1 with a model that is fetched for it. */
async function small(model: string): Promise<number> {
  if (model !== 'small' || !scripted() || options.act === '2' || options.env !== 'terminal') {
    console.error(
      'USAGE: --model takes `small`, act 1 and no engine. Fix: ./quickstart --model small, without ENGINE_URL.',
    )
    return 2
  }
  say(bold('Paddock quickstart: act 1 with a real model'))
  for (const line of about) say(line)
  say()
  const server = await smallModel(options)
  if (typeof server === 'number') return server
  await using engine = server
  process.env.ENGINE_URL = engine.url
  await preflight()
  await actOne()
  return 0
}

/** A real server: one tool call, ids and logprobs, before anything else. */
async function preflight(): Promise<void> {
  say(bold('Preflight of the engine'))
  await paddock(['doctor', '--no-docker'])
  say()
}

async function actOne(): Promise<void> {
  say(bold('Act 1: record a script that knows only OPENAI_BASE_URL'))
  const served = await serve()
  try {
    if (served.ready.engineControl !== null) await postScript(served.ready.engineControl)
    say(dim(`$ node examples/harness/agent.mjs   # with OPENAI_BASE_URL=${served.ready.env.OPENAI_BASE_URL}`))
    await run(process.execPath, ['examples/harness/agent.mjs'], { ...process.env, ...served.ready.env })
  } finally {
    served.child.kill('SIGINT')
    await once(served.child, 'exit')
  }
  say()
  const { rolloutId } = served.ready
  await paddock(['show', rolloutId])
  say()
  await paddock([
    'export',
    '--format',
    'jsonl',
    '--rollout',
    rolloutId,
    '--out',
    join(options.out, 'act1'),
    '--replace',
  ])
  say()
}

interface Ready {
  readonly rolloutId: string
  readonly env: Readonly<Record<string, string>>
  readonly engineControl: string | null
}

/** `paddock serve` in the background, once it is ready. */
async function serve(): Promise<{ readonly child: ChildProcess; readonly ready: Ready }> {
  const args = ['--data', options.data, '--json', 'serve', '--port', '0', '--control-port', '0']
  say(dim(`$ ./paddock ${args.filter((arg) => arg !== '--json').join(' ')} &`))
  const child = spawn(join(root, 'paddock'), args, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout })
  for await (const line of lines) {
    const parsed: { type?: string } & Ready = JSON.parse(line)
    if (parsed.type !== 'ready') continue
    for (const [name, value] of Object.entries(parsed.env)) say(`  export ${name}=${value}`)
    child.stdout.resume()
    return { child, ready: parsed }
  }
  const [code] = await once(child, 'exit')
  throw new StepFailed('paddock serve', Number(code ?? 1))
}

async function postScript(control: string): Promise<void> {
  const body = await readFile(join(root, 'examples/harness/script.json'), 'utf8')
  const answer = await fetch(`${control}/scripts`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  })
  if (!answer.ok) throw new Error(`the scripted engine refused the script: ${await answer.text()}`)
}

async function dockerUp(): Promise<boolean> {
  const yes = options.yes ? ['--yes'] : []
  const packages = await exitCodeOf('sh', ['scripts/machine', 'quickstart', ...yes])
  const code = packages === 0 ? await exitCodeOf('sh', ['scripts/docker-up', '--quiet', ...yes]) : packages
  if (code === 0) return true
  say()
  say('Act 2 needs a Docker daemon and debootstrap (see above). Go on with one of:')
  say('  ./quickstart --yes            installs and starts Docker where that is possible (root, Debian)')
  say('  start your own daemon, then   ./quickstart --act 2')
  return false
}

async function actTwo({ path, shown }: { readonly path: string; readonly shown: readonly string[] }): Promise<void> {
  say(bold('Act 2: groups of rollouts in boxes, verified'))
  const { env } = options
  const runWith = (harness: string, n: number, names: readonly string[]) => {
    const only = names.flatMap((name) => ['--task', name])
    const name = `quickstart-${env === 'terminal' ? '' : `${env}-`}${harness}`
    return paddock(['run', path, '--env', env, ...only, '--harness', harness, '--n', String(n), '--name', name])
  }
  await runWith('reference', 4, shown)
  say()
  // Its tools, where the environment has any, come to it over MCP.
  await runWith('qwen-code', 2, shown.slice(0, 2))
  say()
  const out = join(options.out, 'act2')
  await paddock(['export', '--format', 'verl', '--env', env, '--out', join(out, 'verl'), '--replace'])
  await paddock(['export', '--format', 'jsonl', '--env', env, '--out', join(out, 'jsonl'), '--replace'])
  say()
}

async function ending(): Promise<void> {
  say(bold('Done'))
  for (const directory of ['act1', 'act2/verl', 'act2/jsonl']) {
    const path = join(options.out, directory)
    if (existsSync(join(root, path))) say(`  ${path}/  ${(await readdir(join(root, path))).join('  ')}`)
  }
  say(
    'Left running: nothing of Paddock. The Docker daemon runs on; images and the harness volume stay for the next time',
  )
  say(`(\`./paddock gc --dry-run\` lists what could go). The store is ${options.data}/.`)
  say()
  say('Next:')
  say(`  ./paddock --data ${options.data} list                 what was recorded, then: show <rollout>`)
  say('  ./paddock serve                                     point your own harness at the printed base URL')
  say('  docs/guides/README.md                               run your tasks, write one, export to your trainer')
  say()
  say('See it in a browser, with its tokens and verdicts:')
  say(bold(`  ./paddock view ${options.data}`))
}

/** Shows and runs a paddock command on the quickstart's store. */
async function paddock(args: readonly string[]): Promise<void> {
  const all = ['--data', options.data, ...args]
  say(dim(`$ ./paddock ${all.join(' ')}`))
  await run(join(root, 'paddock'), all, process.env)
}

async function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  const code = await exitCodeOf(command, args, env)
  if (code !== 0) throw new StepFailed([relative(root, command), ...args].join(' '), code)
}

async function exitCodeOf(
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): Promise<number> {
  const child = spawn(command, args, { cwd: root, env, stdio: 'inherit' })
  // The children are in our terminal's process group and see Ctrl-C themselves; we wait for them to clean up.
  const [code, signal] = await once(child, 'exit')
  return typeof code === 'number' ? code : signal === 'SIGINT' ? 130 : 1
}

process.on('SIGINT', () => undefined)
try {
  process.exitCode = await main()
} catch (error) {
  if (!(error instanceof StepFailed)) throw error
  console.error(`\nThe quickstart stops here: ${error.message}. What was recorded is kept in ${options.data}.`)
  process.exitCode = error.code
}
