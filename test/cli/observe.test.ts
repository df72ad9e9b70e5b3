import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { tempDir } from '../fixtures/temp-dir.ts'
import { serve, type Serving } from './here.ts'

const controlToken = 'a-control-token-of-sufficient-length'
const said = 'How many legs has a spider?'

describe('paddock serve, watched', () => {
  let data: string
  let serving: Serving

  beforeAll(async () => {
    data = tempDir()
    serving = await serve(data, [], {
      PADDOCK_LOG: 'debug',
      PADDOCK_LOG_FILE: join(data, 'logs/paddock.jsonl'),
      PADDOCK_CONTROL_TOKEN: controlToken,
      ENGINE_API_KEY: 'an engine key that nobody may see',
    })
  })

  it('counts calls, strategies, drift and deliveries, and logs them without keys or words', async () => {
    const { env, control, sessionId } = serving.ready
    const messages: { role: string; content: string }[] = [{ role: 'user', content: said }]
    for (let turn = 0; turn < 2; turn += 1) {
      const recorded = serving.nextCall()
      const response = await fetch(`${env.OPENAI_BASE_URL}/chat/completions?key=${env.OPENAI_API_KEY}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${env.OPENAI_API_KEY}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: env.OPENAI_MODEL, messages }),
      })
      const { choices } = (await response.json()) as { choices: [{ message: { role: string; content: string } }] }
      expect(response.status).toBe(200)
      await recorded
      // Another question than the one that was answered: the second prompt forks.
      messages[0] = { role: 'user', content: `Please: ${said}` }
      messages.push(choices[0].message, { role: 'user', content: 'And a bee?' })
    }

    const scrape = await fetch(`${control}/metrics`, { headers: { authorization: `Bearer ${controlToken}` } })
    const figures = await scrape.text()
    const figure = (name: string) =>
      Number(
        figures
          .split('\n')
          .find((line) => line.startsWith(`${name} `))
          ?.split(' ')[1],
      )
    expect(figure('paddock_call_strategies_total{strategy="splice"}')).toBe(2)
    expect(figure('paddock_call_classes_total{class="main"}')).toBe(2)
    expect(figure('paddock_call_outcomes_total{outcome="complete"}')).toBe(2)
    expect(figure('paddock_deliveries_total{delivery="sent"}')).toBe(2)
    expect(figure('paddock_drift_forks_total{cause="harness_rewrite"}')).toBe(1)
    expect(figure('paddock_drift_tokens_total{cause="harness_rewrite"}')).toBeGreaterThan(0)

    const { code } = await serving.stop()
    expect(code).toBe(0)
    const log = await readFile(join(data, 'logs/paddock.jsonl'), 'utf8')
    const lines = log
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines.filter(({ room, msg }) => room === 'proxy' && msg === 'call')).toMatchObject([
      { level: 'info', sessionId, callClass: 'main', strategy: 'splice', outcome: 'complete', forks: [] },
      { level: 'info', sessionId, forks: ['harness_rewrite'] },
    ])
    expect(lines.find(({ msg }) => msg === 'configuration')).toMatchObject({
      config: { engine: { apiKey: '[redacted]' }, control: { token: '[redacted]' } },
    })
    for (const secret of [env.OPENAI_API_KEY, controlToken, 'an engine key', said]) expect(log).not.toContain(secret)
  })
})
