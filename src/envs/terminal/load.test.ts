import { mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import { isPaddockError } from '../../core/index.ts'
import { terminal, terminalEnvironment } from './index.ts'

const toml = '[verifier]\nenvironment_mode = "separate"\n[environment]\nnetwork_mode = "no-network"\n'
const whole = {
  'task.toml': toml,
  'instruction.md': 'Do it.\n',
  'environment/Dockerfile': 'FROM paddock-base\nWORKDIR /app\n',
  'tests/test.sh': 'echo 1 > /logs/verifier/reward.txt\n',
}

let root: string
beforeEach(async () => {
  root = tempDir()
})

async function folder(name: string, files: Record<string, string>): Promise<string> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, name, path)), { recursive: true })
    await writeFile(join(root, name, path), text)
  }
  return join(root, name)
}

/** A task of three steps, some of which have more keys. */
function threeSteps(more: Readonly<Record<number, object>>): Record<string, string> {
  const steps = ['one', 'two', 'three'].map((name, i) => {
    const keys = Object.entries({ name, ...more[i] }).map(([key, value]) => `${key} = ${JSON.stringify(value)}`)
    return [`[[steps]]\n${keys.join('\n')}\n`, { [`steps/${name}/instruction.md`]: `${name}\n` }] as const
  })
  return Object.assign({ 'task.toml': toml + steps.map(([table]) => table).join('') }, ...steps.map(([, file]) => file))
}

async function refusal(files: Record<string, string | null>): Promise<{ code: string; line: string }> {
  const kept = Object.entries({ ...whole, ...files }).flatMap(([path, text]) => (text === null ? [] : [[path, text]]))
  const path = await folder('bad', Object.fromEntries(kept))
  try {
    await terminal.load(path)
  } catch (error) {
    if (isPaddockError(error)) return { code: error.code, line: error.line() }
    throw error
  }
  return { code: 'LOADED', line: '' }
}

describe('a task folder', () => {
  it('is read with the defaults of the format', async () => {
    const [task] = await terminal.load(await folder('one', whole))
    if (task === undefined) throw new Error('no task')
    expect(task).toMatchObject({ name: 'one', environment: 'terminal', instruction: 'Do it.', split: 'train' })
    expect(terminal.box(task)).toMatchObject({
      profile: 'root',
      workdir: '/app',
      cpus: 1,
      memoryMb: 2048,
      verifyTimeoutMs: 2_400_000,
      agentTimeoutMs: null,
      network: 'none',
      image: { kind: 'dockerfile', context: join(root, 'one/environment') },
    })
    expect(task.data).toMatchObject({ artifacts: [{ source: '/app' }, { source: '/logs/artifacts' }] })
  })

  it('has another digest when anything that matters changes, and the same in another place', async () => {
    const digestOf = async (name: string, files: Record<string, string>) =>
      (await terminal.load(await folder(name, { ...whole, ...files })))[0]?.digest
    const same = await digestOf('a', {})
    expect(await digestOf('b', { 'solution/solve.sh': 'true', 'script.json': '{}', 'README.md': 'x' })).toBe(same)
    const others = await Promise.all([
      digestOf('c', { 'instruction.md': 'Do that.' }),
      digestOf('d', { 'tests/test.sh': 'true' }),
      digestOf('e', { 'tests/extra.py': '' }),
      digestOf('f', { 'environment/data.txt': '' }),
      digestOf('g', { 'task.toml': `${toml}cpus = 2\n` }),
    ])
    expect(new Set([same, ...others]).size).toBe(6)
  })

  it('takes from the Dockerfile who its commands run as and where', async () => {
    const boxOf = async (name: string, dockerfile: string, more = '') => {
      const files = { ...whole, 'environment/Dockerfile': dockerfile, 'task.toml': toml + more }
      const [task] = await terminal.load(await folder(name, files))
      return task && terminal.box(task)
    }
    const relative = await boxOf('relative', 'FROM ubuntu:24.04\nWORKDIR /srv\nWORKDIR app\nUSER app\n')
    expect(relative).toMatchObject({ workdir: '/srv/app', profile: 'root', user: 'app' })
    // Whoever is called `agent` in an image of somebody else; in ours it is uid 1000.
    const foreign = await boxOf('foreign', 'FROM ubuntu:24.04\nWORKDIR /srv\n', '[agent]\nuser = "agent"\n')
    expect(foreign).toMatchObject({ profile: 'root', user: 'agent' })
    const ours = await boxOf('ours', 'FROM paddock-base\nUSER agent\n')
    expect(ours).toMatchObject({ workdir: '/workspace', profile: 'user', user: null })
    const said = await boxOf('said', 'FROM ubuntu:24.04\nWORKDIR /srv\nUSER app\n', '[agent]\nuser = "root"\n')
    expect(said).toMatchObject({ profile: 'root', user: 'root' })
  })

  it('leaves to an image of somebody else what only that knows', async () => {
    const boxOf = async (name: string, dockerfile: string | null, more = '') => {
      const { 'environment/Dockerfile': _, ...rest } = whole
      const files = { ...rest, ...(dockerfile === null ? {} : { 'environment/Dockerfile': dockerfile }) }
      const [task] = await terminal.load(await folder(name, { ...files, 'task.toml': toml + more }))
      return task && terminal.box(task)
    }
    const unknown = { workdir: null, user: null, profile: 'root', heedsImage: true }
    expect(await boxOf('reference', null, 'docker_image = "app:1"\n')).toMatchObject(unknown)
    expect(await boxOf('inherited', 'FROM ubuntu:24.04\nRUN true\n')).toMatchObject(unknown)
    expect(await boxOf('below', 'FROM ubuntu:24.04\nWORKDIR app\n')).toMatchObject(unknown)
    expect(await boxOf('outside', 'FROM ubuntu:24.04\nARG APP\nWORKDIR /$APP\n')).toMatchObject(unknown)
    const said = await boxOf('said', null, 'docker_image = "app:1"\nworkdir = "/srv"\n[agent]\nuser = "app"\n')
    expect(said).toMatchObject({ workdir: '/srv', user: 'app', heedsImage: true })
    expect(await boxOf('ours', 'FROM paddock-base\n')).not.toHaveProperty('heedsImage')
  })

  it('has values of a host that nobody reads as the format has them without one', async () => {
    const env = '[verifier.env]\nKEY = "a ${HOST_KEY:-none} b"\n[solution.env]\nKEY = "${HOST_KEY:-}"\n'
    const [task] = await terminal.load(await folder('env', { ...whole, 'task.toml': toml + env }))
    expect(task?.data).toMatchObject({ verifier: { env: { KEY: 'a none b' } }, solutionEnv: { KEY: '' } })
  })

  it('says how long its build may take', async () => {
    const [task] = await terminal.load(
      await folder('slow', { ...whole, 'task.toml': `${toml}build_timeout_sec = 90\n` }),
    )
    expect(task && terminal.box(task).image).toMatchObject({ timeoutMs: 90_000 })
  })

  it('is found beside others, in order of the names, and one bad one spoils the set', async () => {
    await folder('set/b', whole)
    await folder('set/a', whole)
    await folder('set/notes', { 'README.md': 'not a task' })
    expect((await terminal.load(join(root, 'set'))).map((t) => t.name)).toEqual(['a', 'b'])
    await folder('set/c', { 'instruction.md': 'half' })
    await expect(terminal.load(join(root, 'set'))).rejects.toMatchObject({ code: 'TASK_INVALID' })
  })

  it('of an older schema is read with its old spellings', async () => {
    const old =
      'version = "1.0"\n[verifier]\nenvironment_mode = "separate"\n[environment]\nmemory = "1.5G"\nallow_internet = false\n'
    const [task] = await terminal.load(await folder('old', { ...whole, 'task.toml': old }))
    if (task === undefined) throw new Error('no task')
    expect(terminal.box(task).memoryMb).toBe(1536)
  })

  it('that asks for a network runs without it only where that was said', async () => {
    const path = await folder('net', { ...whole, 'task.toml': '[verifier]\nenvironment_mode = "separate"\n' })
    await expect(terminal.load(path)).rejects.toMatchObject({ code: 'TASK_UNSUPPORTED' })
    const networks = async (publicNetwork: 'without' | 'open') =>
      (await terminalEnvironment({ publicNetwork }).load(path)).map((task) => terminal.box(task).network)
    expect(await networks('without')).toEqual(['none'])
    expect(await networks('open')).toEqual(['open'])
  })

  it('has the network of its phase, else that of its environment', async () => {
    const listed = `${toml}allowed_hosts = ["pkg.example"]`.replace('no-network', 'allowlist')
    const network = async (text: string) => {
      const [task] = await terminal.load(await folder('phase', { ...whole, 'task.toml': text }))
      return task && terminal.box(task).network
    }
    expect(await network(listed)).toEqual({ allow: ['pkg.example'] })
    expect(await network(`${listed}\n[agent]\nnetwork_mode = "no-network"\n`)).toBe('none')
    const text = `${listed}\n[agent]\nnetwork_mode = "no-network"\n`
    const [phased] = await terminal.load(await folder('phased', { ...whole, 'task.toml': text }))
    expect(phased && terminal.box(phased).setupNetwork).toEqual({ allow: ['pkg.example'] })
    expect(await network(`${toml}\n[agent]\nallowed_hosts = ["*.example.org:80"]\n`)).toEqual({
      allow: ['*.example.org:80'],
    })
  })
})

describe('a link', () => {
  const outside = async (name: string): Promise<string> => {
    await folder('else', { secret: 'secret', 'task.toml': toml, 'tests/test.sh': 'true\n' })
    const path = await folder('bad', { ...whole, 'steps/one/instruction.md': 'Do it.\n' })
    await rm(join(path, name), { recursive: true })
    return path
  }

  it.each([
    ['instruction.md', 'secret'],
    ['task.toml', 'task.toml'],
    ['tests', 'tests'],
    ['tests/test.sh', 'secret'],
    ['environment/Dockerfile', 'secret'],
    ['steps/one', '.'],
    ['steps/one/instruction.md', 'secret'],
  ])('out of the task folder is refused by name: %s', async (name, target) => {
    const path = await outside(name)
    await symlink(join(root, 'else', target), join(path, name))
    await expect(terminal.load(path)).rejects.toMatchObject({
      code: 'TASK_INVALID',
      message: `${join(path, name)}: is a link that leads out of the task folder`,
    })
  })

  it('inside the task folder is followed, and so is one to the folder', async () => {
    const path = await folder('good', { ...whole, 'text/words.md': 'Say so.\n' })
    await rm(join(path, 'instruction.md'))
    await symlink('text/words.md', join(path, 'instruction.md'))
    await symlink(path, join(root, 'linked'))
    expect(await terminal.load(join(root, 'linked'))).toMatchObject([{ instruction: 'Say so.' }])
  })
})

describe('a table that only describes', () => {
  it.each([
    ['task', '[task]\nname = "a/b"\nformat = "single"\n'],
    ['an author', '[task]\nname = "a/b"\n[[task.authors]]\nname = "A"\norcid = "0000"\n'],
    ['metadata', '[metadata]\nreward_type = "binary"\n'],
  ])('may hold keys that nobody knows: %s', async (_, more) => {
    expect(await terminal.load(await folder('more', { ...whole, 'task.toml': toml + more }))).toHaveLength(1)
  })
})

describe('the steps of a published multi-turn set', () => {
  it.each([
    ['a chain', { 0: { dependencies: [] }, 1: { dependencies: ['one'] }, 2: { dependencies: ['two'] } }],
    ['all that came before', { 2: { dependencies: ['two', 'one'] } }],
    ['a session that goes on', { 1: { inherit_prior_session: true }, 2: { inherit_prior_session: true } }],
    ['a first step without a session before', { 0: { inherit_prior_session: false } }],
  ])('load: %s', async (_, more) => {
    const [task] = await terminal.load(await folder('steps', { ...whole, ...threeSteps(more) }))
    expect(task?.data).toMatchObject({ steps: [{ name: 'one' }, { name: 'two' }, { name: 'three' }] })
  })
})

describe('refusals name file, place and fix', () => {
  it.each<[string, Record<string, string | null>, string, RegExp]>([
    [
      'a misspelt key',
      { 'task.toml': `${toml}memroy_mb = 1\n` },
      'TASK_INVALID',
      /task\.toml: unknown key environment\.memroy_mb.*memory_mb/,
    ],
    ['a misspelt table', { 'task.toml': `${toml}[verifer]\n` }, 'TASK_INVALID', /unknown key verifer.*verifier/],
    ['a key far from any', { 'task.toml': `${toml}[agent]\nzzz = 1\n` }, 'TASK_INVALID', /agent\.zzz.*timeout_sec/],
    ['a wrong type', { 'task.toml': `${toml}cpus = "two"\n` }, 'TASK_INVALID', /environment\.cpus/],
    ['no TOML', { 'task.toml': '[verifier\n' }, 'TASK_INVALID', /task\.toml:1:\d+ is not TOML/],
    ['no task.toml', { 'task.toml': null }, 'TASK_INVALID', /task/],
    ['no instruction', { 'instruction.md': null }, 'TASK_INVALID', /instruction\.md: does not exist/],
    ['an empty instruction', { 'instruction.md': ' \n' }, 'TASK_INVALID', /instruction\.md: is empty/],
    ['no image', { 'environment/Dockerfile': null }, 'TASK_INVALID', /Dockerfile/],
    [
      'an entry point',
      { 'environment/Dockerfile': 'FROM ubuntu:24.04\nWORKDIR /app\nENTRYPOINT ["/start"]\n' },
      'TASK_UNSUPPORTED',
      /environment\/Dockerfile: ENTRYPOINT.*healthcheck/,
    ],
    [
      'a user of another group',
      { 'environment/Dockerfile': 'FROM paddock-base\nUSER app:staff\n' },
      'TASK_UNSUPPORTED',
      /USER: app:staff/,
    ],
    [
      'a value that only a host has',
      { 'task.toml': `${toml}[verifier.env]\nKEY = "\${API_KEY}"\n` },
      'TASK_UNSUPPORTED',
      /verifier\.env\.KEY/,
    ],
    ['no tests', { 'tests/test.sh': null }, 'TASK_INVALID', /tests\/test\.sh/],
    ['a relative artifact', { 'task.toml': `artifacts = ["out"]\n${toml}` }, 'TASK_INVALID', /artifacts\[0\]/],
    [
      'the verdict as artifact',
      { 'task.toml': `artifacts = ["/logs/verifier"]\n${toml}` },
      'TASK_INVALID',
      /artifacts\[0\].*logs\/verifier/,
    ],
    [
      'a place of its own for a verifier in the box of the agent',
      { 'task.toml': `${toml.replace('separate', 'shared')}[verifier.environment]\nnetwork_mode = "no-network"\n` },
      'TASK_UNSUPPORTED',
      /verifier\.environment.*separate/,
    ],
    [
      'protected files that are no list of paths',
      { 'task.toml': `${toml}[metadata]\nprotected = "tests"\n` },
      'TASK_INVALID',
      /metadata\.protected/,
    ],
    [
      'a step without instruction',
      { 'task.toml': `steps = [{ name = "one" }]\n${toml}` },
      'TASK_INVALID',
      /steps\/one\/instruction\.md/,
    ],
    [
      'a step with a name that is no folder',
      { 'task.toml': `steps = [{ name = "../one" }]\n${toml}` },
      'TASK_INVALID',
      /steps\[0\]\.name/,
    ],
    [
      'a step for another kind of user',
      {
        'task.toml': `steps = [{ name = "one", agent = { user = "agent" } }]\n${toml}`,
        'steps/one/instruction.md': 'x',
      },
      'TASK_UNSUPPORTED',
      /steps\[0\]\.agent\.user/,
    ],
    [
      'a step with a verifier in another place',
      {
        'task.toml': `${toml}[[steps]]\nname = "one"\n[steps.verifier]\nenvironment_mode = "shared"\n`,
        'steps/one/instruction.md': 'x',
      },
      'TASK_UNSUPPORTED',
      /steps\[0\]\.verifier\.environment_mode/,
    ],
    ...(
      [
        ['a step that depends on one after it', 0, { dependencies: ['two'] }],
        ['a step that depends on none', 2, { dependencies: [] }],
        ['a step that depends on the first alone', 2, { dependencies: ['one'] }],
        ['a step that depends on one that is not there', 1, { dependencies: ['one', 'zero'] }],
        ['a step that depends on itself', 1, { dependencies: ['one', 'two'] }],
        ['a step with a session of its own', 1, { inherit_prior_session: false }],
      ] as const
    ).map(([name, index, keys]): [string, Record<string, string | null>, string, RegExp] => [
      name,
      threeSteps({ [index]: keys }),
      'TASK_UNSUPPORTED',
      new RegExp(`steps\\[${index}\\]\\.${Object.keys(keys)[0]}`),
    ]),
    ['compose', { 'environment/docker-compose.yaml': 'services: {}' }, 'TASK_UNSUPPORTED', /docker-compose\.yaml/],
    ['windows', { 'task.toml': `${toml}os = "windows"\n` }, 'TASK_UNSUPPORTED', /environment\.os/],
    ['a GPU', { 'task.toml': `${toml}gpus = 1\n` }, 'TASK_UNSUPPORTED', /environment\.gpus/],
    ['a TPU', { 'task.toml': `${toml}tpu = { type = "v5e" }\n` }, 'TASK_UNSUPPORTED', /environment\.tpu/],
    [
      'an allow-list with a rule that means nothing',
      { 'task.toml': `${toml}allowed_hosts = ["https://x"]`.replace('no-network', 'allowlist') },
      'TASK_UNSUPPORTED',
      /environment\.allowed_hosts.*https:\/\/x/,
    ],
    [
      'a public verifier',
      { 'task.toml': `${toml}[verifier.environment]\n` },
      'TASK_UNSUPPORTED',
      /verifier\.environment\.network_mode/,
    ],
    ['MCP servers', { 'task.toml': `${toml}mcp_servers = [{ name = "x" }]\n` }, 'TASK_UNSUPPORTED', /mcp_servers/],
    [
      'values of the host',
      { 'task.toml': `${toml}env = { KEY = "\${KEY}" }\n` },
      'TASK_UNSUPPORTED',
      /environment\.env\.KEY/,
    ],
    [
      'a service',
      { 'task.toml': `artifacts = [{ source = "/x", service = "db" }]\n${toml}` },
      'TASK_UNSUPPORTED',
      /artifacts\[0\]\.service/,
    ],
    ['a newer schema', { 'task.toml': `schema_version = "2.0"\n${toml}` }, 'TASK_UNSUPPORTED', /schema_version/],
  ])('%s', async (_, files, code, names) => {
    const seen = await refusal(files)
    expect(seen.code).toBe(code)
    expect(seen.line).toMatch(names)
    expect(seen.line).toMatch(/Fix: \S/)
  })
})
