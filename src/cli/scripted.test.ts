import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, expect, it } from 'vitest'
import { tempDir } from '../../test/fixtures/temp-dir.ts'
import { startScriptedEngine } from './scripted.ts'

const directory = tempDir()

const options = () => ({ profile: 'scripted-hermes', seed: 0, journal: join(directory, 'journal.jsonl') })

/** Resolves when nothing answers at the URL any more. */
async function silent(url: string): Promise<void> {
  for (;;) {
    const answered = await fetch(`${url}/health`).then(
      () => true,
      () => false,
    )
    if (!answered) return
  }
}

describe('the scripted engine as our process', () => {
  it('answers while it runs, and is gone when it is disposed', async () => {
    const engine = await startScriptedEngine(options())
    expect((await fetch(`${engine.url}/health`)).status).toBe(200)
    await engine[Symbol.asyncDispose]()
    await engine.exited
    await expect(fetch(`${engine.url}/health`)).rejects.toThrow()
  })

  it('does not outlive an owner that is killed', async () => {
    const code = `import(${JSON.stringify(new URL('./scripted.ts', import.meta.url).href)}).then(async (m) => {
      const engine = await m.startScriptedEngine(${JSON.stringify(options())})
      console.log(engine.url)
      setInterval(() => {}, 1000)
    })`
    const owner = spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'inherit'] })
    const [url] = (await once(createInterface({ input: owner.stdout }), 'line')) as [string]
    expect((await fetch(`${url}/health`)).status).toBe(200)
    owner.kill('SIGKILL')
    await silent(url)
  })

  it('says what was wrong when it cannot start', async () => {
    await expect(startScriptedEngine({ ...options(), profile: 'no-such-profile' })).rejects.toMatchObject({
      code: 'ENGINE_UNREACHABLE',
      message: expect.stringContaining('no-such-profile'),
    })
  })
})
