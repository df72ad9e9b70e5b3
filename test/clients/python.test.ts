/** The Python client: its own tests on the system's Python without any package, and its wheel in an environment with nothing else. */
import { execFile } from 'node:child_process'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeEach, expect, it } from 'vitest'
import { tempDir } from '../fixtures/temp-dir.ts'

const run = promisify(execFile)
const client = fileURLToPath(new URL('../../clients/python/', import.meta.url))
let directory: string
beforeEach(async () => {
  directory = tempDir()
})

const env = { ...process.env, PYTHONDONTWRITEBYTECODE: '1', PIP_DISABLE_PIP_VERSION_CHECK: '1', PIP_NO_CACHE_DIR: '1' }

it('its tests pass on the standard library alone', async () => {
  // -S: no package of this machine can be imported. A warning (a socket left open, say) is a failure.
  const args = ['-S', '-W', 'error', '-m', 'unittest', 'discover', '-t', '.', '-s', 'tests']
  const { stderr } = await run('python3', args, { cwd: client, env: { ...env, PYTHONPATH: 'src' } })
  expect(stderr).toMatch(/Ran \d{2,} tests[^]*\nOK\n$/)
})

it('its wheel is built and installed without an index, typed, and says its version', async () => {
  const venv = join(directory, 'venv')
  await run('python3', ['-m', 'venv', venv], { env })
  const python = join(venv, 'bin/python')
  const offline = ['--no-index', '--no-deps']
  await run(python, ['-m', 'pip', 'wheel', ...offline, '-w', directory, client], { env })
  const wheels = (await readdir(directory)).filter((name) => name.endsWith('.whl'))
  expect(wheels).toEqual(['paddock_rl-0.1.0-py3-none-any.whl'])
  await run(python, ['-m', 'pip', 'install', ...offline, join(directory, wheels[0] ?? '')], { env })
  const program = `
import importlib.metadata, importlib.resources, paddock_rl
for name in paddock_rl.__all__: getattr(paddock_rl, name)
assert importlib.resources.files(paddock_rl).joinpath("py.typed").is_file()
assert importlib.metadata.version("paddock-rl") == paddock_rl.__version__
needs = ['trl>=1.6; extra == "trl"', 'trl>=1.16; extra == "trl-harness"', 'openenv>=0.10; extra == "trl-harness"', 'verl>=0.9; extra == "verl"', 'skyrl>=0.4; extra == "skyrl"', 'areal>=1.0; extra == "areal"', 'openrlhf>=0.11; extra == "openrlhf"', 'nemo-gym>=0.7; extra == "nemo-gym"', 'agentlightning>=1.0; extra == "agentlightning"', 'verifiers>=0.4; extra == "verifiers"']
assert importlib.metadata.requires("paddock-rl") == needs
assert importlib.metadata.metadata("paddock-rl").get_all("Provides-Extra") == ["trl", "trl-harness", "verl", "skyrl", "areal", "openrlhf", "nemo-gym", "agentlightning", "verifiers"]
import paddock_rl.trl, paddock_rl.verl, paddock_rl.slime, paddock_rl.skyrl, paddock_rl.areal, paddock_rl.openrlhf, paddock_rl.nemo_gym, paddock_rl.agentlightning, paddock_rl.verifiers, paddock_rl.trl_async, paddock_rl.trl_harness, paddock_rl.adapters
print(paddock_rl.__file__)`
  await writeFile(join(directory, 'program.py'), program)
  const { stdout } = await run(python, ['-I', join(directory, 'program.py')], { cwd: directory, env })
  expect(stdout).toContain(join(venv, 'lib'))
  const { stdout: checked } = await run(python, ['-m', 'pip', 'check'], { env })
  expect(checked).toContain('No broken requirements')
})
