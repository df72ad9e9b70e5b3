import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, expect, it, vi } from 'vitest'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import { dockerProvider } from '../index.ts'
import { type DaemonOptions, placeOf } from './place.ts'

afterEach(() => void vi.unstubAllEnvs())

const spec = { image: 'any:1', profile: 'user', labels: { role: 'probe' } } as const

it.each<[DaemonOptions, Record<string, string>, object]>([
  [{}, {}, { kind: 'usual' }],
  [{}, { DOCKER_HOST: '' }, { kind: 'usual' }],
  [{}, { DOCKER_HOST: 'unix:///run/d.sock' }, { kind: 'socket', path: '/run/d.sock' }],
  [{ socketPath: '/a' }, { DOCKER_HOST: 'tcp://192.0.2.7:2376' }, { kind: 'socket', path: '/a' }],
  [{ host: 'unix:///a' }, { DOCKER_HOST: 'unix:///b' }, { kind: 'socket', path: '/a' }],
  [{}, { DOCKER_HOST: 'tcp://127.0.0.1' }, { kind: 'tcp', host: '127.0.0.1', port: 2375, tls: null }],
  [{}, { DOCKER_HOST: '[::1]:99' }, { kind: 'tcp', host: '::1', port: 99, tls: null }],
])('%j with %j is %j', (options, env, place) => {
  expect(placeOf(options, env)).toEqual(place)
})

it('reads certificates as the docker CLI does, and as the configuration names them', async () => {
  const folder = tempDir()
  for (const name of ['ca', 'cert', 'key']) await writeFile(join(folder, `${name}.pem`), `-----BEGIN ${name}-----`)
  await writeFile(join(folder, 'none.pem'), 'nothing')
  const env = { DOCKER_HOST: 'tcp://build.example', DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: folder }
  const tls = { ca: '-----BEGIN ca-----', cert: '-----BEGIN cert-----', key: '-----BEGIN key-----' }
  expect(placeOf({}, env)).toEqual({ kind: 'tcp', host: 'build.example', port: 2376, tls })
  const ca = join(folder, 'ca.pem')
  expect(placeOf({ host: 'tcp://build.example:99', tls: { ca } }, {})).toMatchObject({ port: 99, tls: { ca: tls.ca } })
  for (const [options, say] of [
    [{ host: 'tcp://a.example', tls: { cert: ca } }, 'without its key'],
    [{ host: 'tcp://a.example', tls: { ca: join(folder, 'no.pem') } }, 'no.pem cannot be read'],
    [{ host: 'tcp://a.example', tls: { ca: join(folder, 'none.pem') } }, 'none.pem is no PEM file'],
    [{ host: 'tcp://a.example', socketPath: '/a' }, 'two daemons'],
    [{ host: 'npipe://a' }, 'npipe://a names no daemon'],
  ] as const) {
    const message = expect.stringContaining(say)
    expect(() => placeOf(options, env)).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID', message }))
  }
  const elsewhere = { ...env, DOCKER_CERT_PATH: join(folder, 'gone') }
  expect(() => placeOf({}, elsewhere)).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID' }))
})

it.each([
  ['tcp://192.0.2.7:2375', /without encryption/, /DOCKER_CERT_PATH.*ssh -nNT -L .*192\.0\.2\.7/],
  ['ssh://user@192.0.2.7', /SSH connection/, /ssh -nNT -L .*user@192\.0\.2\.7/],
])('%s is refused by whatever asks the daemon, with what to do', async (host, message, fix) => {
  vi.stubEnv('DOCKER_HOST', host)
  await using provider = dockerProvider({ reaper: false, warmBoxes: 0 })
  vi.unstubAllEnvs()
  const refused = {
    code: 'SANDBOX_CAPABILITY',
    message: expect.stringMatching(message),
    fix: expect.stringMatching(fix),
  }
  await expect(provider.createBox(spec)).rejects.toMatchObject(refused)
  await expect(provider.ensureImage({ kind: 'paddock-base' })).rejects.toMatchObject(refused)
  await expect(provider.sweep()).rejects.toMatchObject(refused)
  expect(await provider.probe()).toMatchObject({
    reachable: false,
    problems: [{ what: refused.message, fix: refused.fix }],
  })
})

it('a daemon that the environment names is not asked where a socket of this machine is named', async () => {
  vi.stubEnv('DOCKER_HOST', 'tcp://192.0.2.7:2375')
  await using provider = dockerProvider({ socketPath: '/nowhere/docker.sock', reaper: false, warmBoxes: 0 })
  await expect(provider.createBox(spec)).rejects.toMatchObject({ code: 'SANDBOX_UNAVAILABLE' })
})
