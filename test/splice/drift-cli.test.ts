import { expect, it } from 'vitest'
import { runCli } from '../../src/cli/program.ts'
import { useStore } from '../fixtures/use-store.ts'
import { startProxy } from '../proxy/support.ts'
import { converse, reserialised, startScripted } from './support.ts'

it('paddock drift prints each fork with cause, place and both sides; none for a spliced session', async () => {
  const engine = await startScripted('scripted-qwen3')
  const store = await useStore()
  await using paddock = await startProxy(engine.url, { recorder: store.recorder })
  const drift = async (strategy: 'record' | 'splice', ...flags: string[]): Promise<string> => {
    const session = await paddock.open({ policy: { strategy, history: 'sampled' } })
    await converse(session, ['Tidy the höuse.', 'And now the cellar.'], {
      model: 'scripted-qwen3',
      echo: reserialised,
    })
    // Another reader sees a little later what the owner has stored; after a flush at once.
    await store.recorder.flush()
    let out = ''
    const code = await runCli(['--data', store.directory, ...flags, 'drift', session.id], {
      out: (text) => {
        out += text
      },
      err: (text) => {
        throw new Error(text)
      },
      status: () => undefined,
      env: {},
      cwd: store.directory,
      colour: false,
      columns: null,
      signal: new AbortController().signal,
    })
    expect(code).toBe(0)
    return out
  }
  const recorded = JSON.parse(await drift('record', '--json'))
  expect(recorded.forks.length).toBeGreaterThan(1)
  expect(recorded.causes).toEqual({ think_stripped: recorded.forks.length })
  const text = await drift('record')
  expect(text).toContain('think_stripped  at token')
  expect(text.match(/recorded ⟨\d+⟩/g)?.length).toBe(recorded.forks.length)
  expect(JSON.parse(await drift('splice', '--json'))).toMatchObject({ forks: [], causes: {} })
})
