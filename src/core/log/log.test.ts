import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import { PaddockError } from '../errors.ts'
import { type Log, openLog } from './index.ts'

const sessionKey = 'pdk_3rQv1m0o2n4p6r8t0v2x4z6B8D0F2H4J'
const engineKey = 'an engine key of no known shape'

describe('a log file', () => {
  const directory = tempDir()

  const written = async (level: 'warn' | 'debug', say: (log: Log) => void) => {
    const file = join(directory, `${Math.random()}.jsonl`)
    const log = await openLog({ level, file, secrets: [engineKey] })
    say(log)
    log.close()
    return readFile(file, 'utf8')
  }

  it('has one JSON object per line with time, level, room and fields, from its level upwards', async () => {
    const text = await written('warn', (log) => {
      log.room('proxy').warn({ callId: 'c1', cause: 'stall' }, 'a rollout is tainted')
      log.info('not at this level')
    })
    expect(
      text
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual([
      {
        level: 'warn',
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
        pid: process.pid,
        room: 'proxy',
        callId: 'c1',
        cause: 'stall',
        msg: 'a rollout is tainted',
      },
    ])
  })

  it.each<[string, (log: Log) => void]>([
    ['headers', (log) => log.info({ headers: { authorization: 'Basic YWxhZGRpbjpvcGVu', 'x-api-key': sessionKey } })],
    ['a URL with a key', (log) => log.info({ url: `http://127.0.0.1/v1beta/models?key=${sessionKey}&alt=sse` })],
    ['a URL with a user', (log) => log.info(`asking http://alice:${sessionKey}@engine.local/v1`)],
    [
      'the configuration',
      (log) => log.info({ config: { engine: { apiKey: engineKey }, control: { token: sessionKey } } }),
    ],
    ['words', (log) => log.info(`the key is ${sessionKey}, or ${engineKey}, or Bearer ${sessionKey}`)],
    ['arguments of words', (log) => log.info('asked with %s', sessionKey)],
    ['an error, its cause and its data', (log) => log.error({ err: failure() }, 'failed')],
    ['a list deep inside', (log) => log.info({ a: [{ b: [{ c: `x ${sessionKey}` }] }] })],
  ])('keeps no secret of %s', async (_where, say) => {
    const text = await written('debug', say)
    expect(text).toContain('[redacted]')
    expect(text).not.toContain(sessionKey.slice(4))
    expect(text).not.toContain(engineKey)
    expect(text).not.toContain('YWxhZGRpbjpvcGVu')
  })

  const failure = () =>
    new PaddockError('ENGINE_ERROR', `refused Bearer ${sessionKey}`, {
      data: { apiKey: engineKey },
      cause: new Error(`with ${sessionKey}`),
    })
})
