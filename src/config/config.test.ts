import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeEach, describe, expect, it } from 'vitest'
import { tempDir } from '../../test/fixtures/temp-dir.ts'
import { type ConfigInput, loadConfig } from './index.ts'

let directory: string
beforeEach(async () => {
  directory = tempDir()
})

async function withFile(text: string) {
  await writeFile(join(directory, 'paddock.config.ts'), text)
}

describe('loadConfig', () => {
  it('fills every default when there is no file', async () => {
    const { config, file } = await loadConfig({ cwd: directory })
    expect(file).toBeNull()
    expect(config.proxy.host).toBe('127.0.0.1')
    expect(config.store.directory).toBe(join(directory, '.paddock'))
    expect(config.session.budget).toEqual({ maxCalls: null, maxSampledTokens: null, maxWallMs: null })
  })

  it('lets the command line win over the environment, and that over the file, key by key', async () => {
    await withFile(`export default { proxy: { port: 1, host: '127.0.0.2' }, run: { n: 3 }, engine: { model: 'file' } }`)
    const { config } = await loadConfig({
      cwd: directory,
      env: { PADDOCK_PORT: '2', MODEL: 'environment', ENGINE_URL: '' },
      overrides: { proxy: { port: 3 } },
    })
    expect(config.proxy).toMatchObject({ port: 3, host: '127.0.0.2' })
    expect(config.engine).toMatchObject({ model: 'environment', url: null })
    expect(config.run.n).toBe(3)
  })

  it.each([
    [`export default { proxy: { prot: 1 } }`, 'proxy.prot is not a known key', 'Did you mean `port`?'],
    [`export default { stroe: {} }`, 'stroe is not a known key', 'Did you mean `store`?'],
    [`export default { session: { pin: { temprature: 1 } } }`, 'session.pin.temprature', 'Did you mean `temperature`?'],
    [`export default { proxy: { port: 'x' } }`, 'proxy.port: invalid input: expected number', 'Correct `proxy.port`'],
    [`export default { engine: { url: 'nowhere' } }`, 'engine.url', 'Correct `engine.url`'],
    [`export default { run: { n: 0 } }`, 'run.n', 'Correct `run.n`'],
    [`export default { harnesses: { my: { npmm: 'x@1.2.3' } } }`, 'harnesses.my.npmm', 'Did you mean `npm`?'],
    [`export default { harnesses: { my: { npm: 'x' } } }`, 'harnesses.my.npm', 'Correct `harnesses.my.npm`'],
    [`export default { harnesses: { codex: { version: 'latest' } } }`, 'harnesses.codex.version', 'Correct'],
    [`export default { engine: { url: ['x'] } }`, 'engine.url.0', 'Correct `engine.url.0`'],
    [`export const config = {}`, 'no default export', 'export default'],
    [`export default {`, 'does not load', 'plain TypeScript'],
  ])('names the place and the fix: %s', async (text, what, fix) => {
    await withFile(text)
    const error = await loadConfig({ cwd: directory }).catch((cause: unknown) => cause)
    expect(error).toMatchObject({ code: 'CONFIG_INVALID' })
    expect((error as { line(): string }).line().replace(/\n/g, ' ')).toContain(what)
    expect((error as { fix: string }).fix).toContain(fix)
    expect((error as { message: string }).message).toContain('paddock.config.ts')
  })

  it.each([
    [{ PADDOCK_PORT: 'abc' }, 'proxy.port'],
    [{ PADDOCK_PLAIN_HTTP: 'perhaps' }, 'tls.plainHttp'],
  ])('names the environment as the source of a bad value: %s', async (env, place) => {
    await expect(loadConfig({ cwd: directory, env })).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      message: expect.stringContaining(`environment variables: ${place}`),
    })
  })

  it('takes TLS of the shell over that of the file, its paths from the shell', async () => {
    await withFile(`export default { tls: { cert: 'a.pem', ca: 'ca.pem', plainHttp: true } }`)
    const file = join(directory, 'paddock.config.ts')
    const env = { PADDOCK_TLS_CERT: 'b.pem', PADDOCK_TLS_KEY: 'b.key', PADDOCK_PLAIN_HTTP: '0' }
    const { config } = await loadConfig({ cwd: tmpdir(), file, env })
    const [cert, key] = [join(tmpdir(), 'b.pem'), join(tmpdir(), 'b.key')]
    expect(config.tls).toEqual({ cert, key, ca: join(directory, 'ca.pem'), plainHttp: false })
  })

  it('takes several policies, and refuses two that nothing tells apart at their engine', async () => {
    await withFile(
      `export default { policies: { a: { adapter: 'a-0' }, b: { adapter: { name: 'b-0', path: '/b' }, trained: false }, c: { engines: 'http://127.0.0.1:1' } } }`,
    )
    const { config } = await loadConfig({ cwd: directory })
    expect(config.policies).toMatchObject({
      a: { adapter: { name: 'a-0', path: null }, engines: null, trained: true },
      b: { adapter: { path: '/b' }, trained: false },
    })
    const refused = async (policies: ConfigInput['policies'], message: RegExp) =>
      expect(
        loadConfig({ cwd: directory, file: false, overrides: { policies: policies ?? {} } }),
      ).rejects.toMatchObject({
        code: 'CONFIG_INVALID',
        message: expect.stringMatching(message),
      })
    await refused({ a: { apiKey: 'k' } }, /policies\.a\.apiKey: goes with `engines`/)
    await refused(
      { a: { engines: 'http://127.0.0.1:1' }, b: { engines: 'http://127.0.0.1:1/v1/' } },
      /policies\.b: is the same model at the same engine as policy a/,
    )
    await refused({ a: {}, b: {} }, /policies\.b: is the same model at the same engine as policy a/)
    await refused({ a: { model: 'm' }, b: { model: 'm' } }, /same model m/)
    await refused({ a: { adapter: 'x' }, b: { adapter: 'x' } }, /same adapter x/)
    const urls = (...engines: string[]) => ({ engines })
    await refused({ a: urls('http://h:1', 'http://h:2'), b: urls('http://h:2', 'http://h:1') }, /same engine/)
    await refused({ Guide: {} }, /lower case/)
  })

  it('refuses a named file that is not there', async () => {
    await expect(loadConfig({ cwd: directory, file: 'other.ts' })).rejects.toMatchObject({ code: 'CONFIG_NOT_FOUND' })
  })

  it('takes a relative data directory of the file from the file, and one of the shell from the shell', async () => {
    await withFile(`export default { store: { directory: 'data' } }`)
    const elsewhere = tmpdir()
    const file = join(directory, 'paddock.config.ts')
    expect((await loadConfig({ cwd: elsewhere, file })).config.store.directory).toBe(join(directory, 'data'))
    const shell = await loadConfig({ cwd: elsewhere, file, env: { PADDOCK_DATA: 'here' } })
    expect(shell.config.store.directory).toBe(join(elsewhere, 'here'))
  })

  it('loads the example of the documentation', async () => {
    const file = fileURLToPath(new URL('../../examples/paddock.config.ts', import.meta.url))
    const { config } = await loadConfig({ cwd: directory, file })
    expect(config.session.pin).toEqual({ temperature: 1 })
    expect(config.store.directory).toBe(fileURLToPath(new URL('../../.paddock', import.meta.url)))
  })
})
