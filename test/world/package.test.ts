/** The package as npm gives it: packed, installed into an empty project, used there with plugins of the project's own. */
import { execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { chromium } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { chat, type Ended, paddock, serve } from '../cli/paddock.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { chromiumProgram } from './viewer.ts'

const root = join(import.meta.dirname, '../..')
const run = promisify(execFile)
/** Other versions of Node that the package is for. npm has each as a package with the program alone. */
const otherNodes = ['22', '26']
/** One that is too old. */
const oldNode = '20'
const nodeAlias = (major: string): string => `node-${major}@npm:node-linux-${process.arch}@${major}`

/** What judges the package from outside, in a folder of its own. */
const judges = [
  'typescript-5@npm:typescript@5.9.3',
  'typescript-7@npm:typescript@7.0.2',
  'publint@0.3.25',
  '@arethetypeswrong/cli@0.18.5',
]

let directory: string
let tarball: string
let project: string
let tools: string
let place: { readonly program: string; readonly cwd: string }
beforeAll(async () => {
  directory = tempDir()
  project = join(directory, 'project')
  tools = join(directory, 'tools')
  await mkdir(project)
  await cp(join(root, 'examples/plugins'), project, { recursive: true, filter: (path) => !path.endsWith('.test.ts') })
  await writeFile(join(project, 'package.json'), '{"private":true,"type":"module"}')
  await run('npm', ['pack', '--silent', '--pack-destination', directory], { cwd: root })
  const { version, peerDependencies } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  const peers = Object.entries(peerDependencies).map(([name, range]) => `${name}@${String(range)}`)
  tarball = join(directory, `paddock-rl-${version}.tgz`)
  const flags = ['--silent', '--prefer-offline', '--no-audit', '--no-fund']
  await run('npm', ['install', ...flags, tarball, ...peers, ...[...otherNodes, oldNode].map(nodeAlias)], {
    cwd: project,
  })
  await mkdir(tools)
  await writeFile(join(tools, 'package.json'), '{"private":true}')
  await run('npm', ['install', ...flags, ...judges], { cwd: tools })
  place = { program: join(project, 'node_modules/.bin/paddock'), cwd: project }
})

/** One command of the installed program in the project, which must end well. */
async function ran(...args: readonly string[]): Promise<Ended> {
  const ended = await paddock(args, {}, place)
  expect(ended, ended.err).toMatchObject({ code: 0 })
  return ended
}

it.each(otherNodes)('doctor finds nothing broken on Node %s, the scripted engine included', (major) => {
  const node = join(project, `node_modules/node-${major}/bin/node`)
  const options = { cwd: project, encoding: 'utf8' } as const
  expect(spawnSync(node, ['--version'], options).stdout).toMatch(new RegExp(`^v${major}\\.`))
  const ended = spawnSync(node, [place.program, 'doctor', '--no-docker', '--json'], options)
  expect(ended.status, ended.stderr).toBe(0)
  const { findings } = JSON.parse(ended.stdout)
  expect(findings).toContainEqual({ about: 'engine', status: 'ok', what: 'gives token ids, logprobs, tool calls' })
})

describe('what a stranger installs', () => {
  it('needs no compiler: no package runs a program of its own', async () => {
    const bare = join(directory, 'bare')
    const bin = join(directory, 'bin')
    for (const folder of [bare, bin]) await mkdir(folder)
    await writeFile(join(bare, 'package.json'), '{"private":true}')
    const { stdout } = await run('sh', ['-c', 'command -v npm sh env'])
    for (const path of [process.execPath, ...stdout.trim().split('\n')])
      await symlink(path, join(bin, path.replace(/.*\//, '')))
    const env = { ...process.env, PATH: bin, npm_config_foreground_scripts: 'true', npm_config_ignore_scripts: 'false' }
    const installed = await run('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', tarball], {
      cwd: bare,
      env,
    })
    expect(installed.stdout + installed.stderr).not.toMatch(/^> \S+ (?:pre|post)?install/m)
    const { packages } = JSON.parse(await readFile(join(bare, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, { hasInstallScript?: boolean }>
    }
    const names = Object.keys(packages).map((path) => path.replace(/.*node_modules\//, ''))
    console.log(
      `the package brings ${(await readdir(join(bare, 'node_modules'), { recursive: true })).length} files in ${names.length - 2} packages`,
    )
    expect(names).toContain('better-sqlite3')
    expect(names.filter((name) => /^(?:ssh2|cpu-features|protobufjs|dockerode|@grpc\/.*)$/.test(name))).toEqual([])
    expect(
      Object.entries(packages)
        .filter(([, { hasInstallScript }]) => hasInstallScript === true)
        .map(([path]) => path),
    ).toEqual([])
    const ran = await paddock(['quickstart'], {}, { program: join(bare, 'node_modules/.bin/paddock'), cwd: bare })
    expect(ran, ran.err).toMatchObject({ code: 0, out: expect.stringContaining('\n  npx paddock view --annotate\n') })
  })

  it('has types that hold where the types of packages are checked too, of each import', async () => {
    const { exports } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as {
      exports: Record<string, unknown>
    }
    const doors = Object.keys(exports).filter((path) => path !== './package.json')
    expect(doors.length).toBeGreaterThan(8)
    const strict = join(project, 'strict')
    await mkdir(strict)
    const source = doors.map((path, at) => `export * as door${at} from '${path.replace('.', 'paddock-rl')}'\n`).join('')
    await writeFile(join(strict, 'all.ts'), source)
    const options = { module: 'nodenext', target: 'es2024', lib: ['es2024', 'esnext.disposable'], types: ['node'] }
    const compilerOptions = { ...options, strict: true, noEmit: true, skipLibCheck: false }
    await writeFile(join(strict, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['all.ts'] }))
    for (const version of ['5', '7']) {
      const tsc = (): string =>
        spawnSync(process.execPath, [join(tools, `node_modules/typescript-${version}/bin/tsc`), '-p', strict], {
          encoding: 'utf8',
        }).stdout
      expect(tsc()).toBe('')
      await writeFile(
        join(strict, 'all.ts'),
        `${source}import { defineSelector } from 'paddock-rl/selector'\ndefineSelector({ name: 1 })\n`,
      )
      expect(tsc()).toContain('all.ts(')
      await writeFile(join(strict, 'all.ts'), source)
    }
  })

  it('is found right by publint and by arethetypeswrong', () => {
    const judged = (name: string, args: readonly string[]) =>
      spawnSync(join(tools, 'node_modules/.bin', name), args, { encoding: 'utf8', cwd: directory })
    const lint = judged('publint', [tarball, '--strict'])
    expect(lint.status, lint.stdout + lint.stderr).toBe(0)
    // The package is ESM, which `require` of Node 22.19 loads.
    const types = judged('attw', [tarball, '--profile', 'esm-only', '--format', 'ascii'])
    expect(types.status, types.stdout + types.stderr).toBe(0)
  })

  it.each(['', '/environment', '/reward', '/exporter', '/harness', '/selector', '/engine', '/sandbox', '/testing'])(
    'paddock-rl%s says on Node 20 in one line that it is too old',
    (path) => {
      const node = join(project, `node_modules/node-${oldNode}/bin/node`)
      const script = `import('paddock-rl${path}').catch((error) => console.error(String(error.stack)))`
      const ended = spawnSync(node, ['-e', script], { cwd: project, encoding: 'utf8' })
      expect(ended.stderr).toMatch(
        /^Error: paddock-rl: Node 20\.[\d.]+ is too old; 22\.19 is the least\. Fix: install Node 24\.\n$/,
      )
    },
  )
})

it('records a call', async () => {
  const serving = await serve(join(directory, 'data'), [], {}, place)
  const answer = await chat(serving.ready, { messages: [{ role: 'user', content: 'Say hello.' }], max_tokens: 16 })
  expect(answer.status).toBe(200)
  expect(await serving.nextCall()).toMatchObject({ type: 'call' })
  await serving.stop()
  const shown = await ran('show', serving.ready.sessionId, '--json', '--data', join(directory, 'data'))
  expect(shown.out).toMatch(/"trained": ?true/)
})

it('shows what it recorded, without anything from outside', async () => {
  const child = spawn(place.program, ['view', '--json', '--data', join(directory, 'data')], { cwd: project })
  try {
    const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
    const { origin } = JSON.parse(line) as { origin: string }
    const page = await fetch(origin)
    expect(page.status).toBe(200)
    const [, script = ''] = /<script[^>]* src="([^"]+)"/.exec(await page.text()) ?? []
    expect((await fetch(new URL(script, origin))).headers.get('content-type')).toContain('javascript')
  } finally {
    child.kill('SIGINT')
    await once(child, 'exit')
  }
})

it('brings the example tasks and what it owes to others', async () => {
  const installed = join(project, 'node_modules/paddock-rl')
  const wrong = await paddock(['validate', 'examples/tasks/sql', '--env', 'sums'], {}, place)
  expect(wrong.err).toContain(join(installed, 'examples/tasks/sql'))
  const owed = await readFile(join(installed, 'dist/THIRD_PARTY.md'), 'utf8')
  for (const name of ['zod', 'tokenizers', 'preact', '@preact/signals-core']) expect(owed).toContain(`| ${name} |`)
})

describe('plugins of the project', () => {
  it('have types', async () => {
    const options = { module: 'nodenext', target: 'es2024', lib: ['es2024', 'esnext.disposable'], strict: true }
    const more = { noEmit: true, allowImportingTsExtensions: true, types: ['node'], skipLibCheck: true }
    await writeFile(
      join(project, 'tsconfig.json'),
      JSON.stringify({ compilerOptions: { ...options, ...more }, include: ['*.ts', 'made/*.ts'] }),
    )
    await ran('env', 'new', 'made')
    expect(await readFile(join(project, 'made/environment.ts'), 'utf8')).toContain("from 'paddock-rl/environment'")
    const tsc = (): string =>
      spawnSync(join(root, 'node_modules/.bin/tsc'), ['-p', project], { encoding: 'utf8' }).stdout
    const good = join(project, 'selector.ts')
    expect(tsc()).toBe('')
    const text = await readFile(good, 'utf8')
    await writeFile(good, text.replace('rollout.id', 'rollout.slot'))
    expect(tsc()).toContain('selector.ts')
    await writeFile(good, text)
  })

  it('an environment with a reward, gui tasks and a harness run, a selector and an exporter write', async () => {
    await ran('validate', 'tasks', '--env', 'sums')
    const gui = await ran('validate', 'gui-tasks', '--env', 'gui')
    for (const name of ['heron', 'thermostat-coldest-1', 'thermostat-coldest-2']) expect(gui.out).toContain(name)
    const { summary } = JSON.parse(
      (await ran('run', 'tasks', '--env', 'sums', '--harness', 'plain-loop', '--n', '3', '--json')).out,
    )
    expect(summary.rollouts).toHaveLength(6)
    expect(new Set(summary.rollouts.map((one: { end: string }) => one.end))).toEqual(new Set(['completed']))
    const out = join(directory, 'out')
    await ran('export', '--format', 'transcripts', '--select', 'extremes', '--out', out)
    const lines = (await readFile(join(out, 'transcripts.jsonl'), 'utf8')).trim().split('\n')
    expect(lines).toHaveLength(4)
    for (const line of lines) expect(JSON.parse(line)).toMatchObject({ messages: expect.any(Array) })
    const manifest = JSON.parse(await readFile(join(out, 'manifest.json'), 'utf8'))
    expect(manifest.selection).toMatchObject({ selector: 'extremes 1.0.0' })
  })

  it('a harness without code runs a package of npm in the box, and shell takes one too', async () => {
    const ask = `fetch(process.env.MY_URL + '/chat/completions', { method: 'POST', body: JSON.stringify({
      model: process.env.OPENAI_MODEL, messages: [{ role: 'user', content: process.env.PADDOCK_PROMPT }] }),
      headers: { 'content-type': 'application/json', authorization: 'Bearer ' + process.env.OPENAI_API_KEY } })
      .then((answer) => process.exit(answer.ok ? 0 : 1))`
    const npm = 'semver@7.7.3'
    const harnesses = {
      mine: { npm, run: `test "$(semver 1.2.3)" = 1.2.3 && node -e "$ASK"`, env: { MY_URL: '{origin}/v1', ASK: ask } },
      shell: { npm },
    }
    const config = join(project, 'presets.config.ts')
    await writeFile(config, `export default ${JSON.stringify({ environments: ['./environment.ts'], harnesses })}`)
    const common = ['run', 'tasks', '--env', 'sums', '--task', 'small', '--json', '--config', config, '--harness']
    const { summary } = JSON.parse((await ran(...common, 'mine')).out)
    expect(summary.rollouts).toMatchObject([{ end: 'completed', harness: 'mine', calls: 1 }])
    const shell = JSON.parse((await ran(...common, 'shell', '--command', 'semver 1.2.3 && exit 7')).out)
    expect(shell.summary.rollouts).toMatchObject([{ end: 'harness_crash', detail: expect.stringContaining('exit 7') }])
  })
})

it.skipIf(chromiumProgram === undefined)(
  'a newcomer finds why one rollout got 0, labels it and exports it, as the guide says',
  async () => {
    const guide = await readFile(join(root, 'docs/guides/first-look.md'), 'utf8')
    const lines = [...guide.matchAll(/```console\n([^`]+)```/g)].flatMap(([, block = '']) => block.trim().split('\n'))
    const [quickstart = '', view = '', exporting = '', ...more] = lines.filter((line) => line.startsWith('./paddock '))
    expect(more).toEqual([])
    // What the guide types in a clone is typed in a folder of its own, with the installed program.
    const home = join(project, 'newcomer')
    await mkdir(home)
    const typed = (line: string): string[] => {
      const [name, ...args] = line.split(' ')
      expect(name).toBe('./paddock')
      return args
    }
    const here = { ...place, cwd: home }
    const done = await paddock(typed(quickstart), { ENGINE_URL: 'http://127.0.0.1:9' }, here)
    expect(done, done.err).toMatchObject({ code: 0 })
    expect(done.out.match(/reward [01]/g)).toEqual(['reward 1', 'reward 1', 'reward 0', 'reward 1'])

    const viewer = spawn(place.program, [...typed(view), '--json'], { cwd: home, stdio: ['ignore', 'pipe', 'inherit'] })
    const browser = await chromium.launch({ executablePath: chromiumProgram ?? '', args: ['--no-sandbox'] })
    try {
      const [line] = (await once(createInterface({ input: viewer.stdout }), 'line')) as [string]
      const page = await browser.newPage()
      await page.goto((JSON.parse(line) as { link: string }).link)
      await page.click('tr:has-text("quickstart") a')
      await page.click('.tabs a:has-text("failures")')
      expect(await page.textContent('tbody tr')).toContain('scored 0')
      await page.click('tbody td a[href^="/rollouts/"]')
      expect(await page.textContent('.verdict')).toContain(
        'expected 29 in the last line; the agent said: February 2028 has 28 days.',
      )
      const rollout = page.url()
      await page.click('a[href^="/sessions/"]')
      await page.waitForSelector('.call')
      await page.keyboard.press('j')
      await page.waitForSelector('.message.tool')
      await page.keyboard.press('t')
      await page.waitForSelector('.answer .message:has-text("28 days")')
      await page.goto(rollout)
      await page.fill('input[name=name]', 'cause')
      await page.fill('input[name=value]', 'wrong day')
      await page.click('button:has-text("Label")')
      await page.waitForSelector('.facts dd:has-text("wrong day")')
      await page.click('header a:has-text("Search")')
      await page.fill('#words', '28 days')
      await page.keyboard.press('Enter')
      await page.waitForSelector('.hit:has-text("answer")')
    } finally {
      await browser.close()
      viewer.kill('SIGINT')
      await once(viewer, 'exit')
    }
    const out = await paddock(typed(exporting), {}, here)
    expect(out, out.err).toMatchObject({ code: 0 })
    const rows = (await readFile(join(home, 'out/rows/rows.jsonl'), 'utf8'))
      .trim()
      .split('\n')
      .map((row) => JSON.parse(row))
    expect(rows.map(({ reward, labels }) => [reward, labels])).toEqual([
      [1, {}],
      [1, {}],
      [0, { cause: 'wrong day' }],
      [1, {}],
    ])
  },
)
