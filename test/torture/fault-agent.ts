/**
 * An agent of three calls, one of which ends badly: it then asks once more, or gives up and says that it is done. What
 * happens to which call says the scenario that it is given.
 */

interface Given {
  readonly baseUrl: string
  readonly apiKey: string
  readonly model: string
  /** Where the scenario of a session is to be had. */
  readonly scenarios: string
}

interface Scenario {
  readonly retries: boolean
  readonly streams: boolean
  readonly patience: number | null
}

interface Choice {
  readonly message?: { readonly content: string | null }
  readonly delta?: { readonly content?: string }
}

export async function work({ baseUrl, apiKey, model, scenarios }: Given): Promise<void> {
  const session = /\/s\/([^/]+)\//.exec(baseUrl)?.[1] ?? ''
  const { retries, streams, patience } = (await (await fetch(`${scenarios}/${session}`)).json()) as Scenario
  const messages = [{ role: 'user', content: 'Say hello.' }]
  const ask = async (): Promise<string | null> => {
    try {
      const response = await fetch(`${baseUrl}/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model, messages, temperature: 1, max_tokens: 20, stream: streams }),
        ...(patience === null ? {} : { signal: AbortSignal.timeout(patience) }),
      })
      const text = await response.text()
      return response.ok ? wordsOf(text, streams) : null
    } catch {
      return null
    }
  }
  for (let call = 0; call < 3; call += 1) {
    const answer = (await ask()) ?? (retries ? await ask() : null)
    if (answer === null) return
    messages.push({ role: 'assistant', content: answer }, { role: 'user', content: 'Say more.' })
  }
}

/** Null for a stream that ends in an error. */
function wordsOf(text: string, streams: boolean): string | null {
  if (!streams) return (JSON.parse(text) as { choices: readonly Choice[] }).choices[0]?.message?.content ?? ''
  const events = text.split('\n\n').filter((one) => one.startsWith('data: {'))
  const read = events.map((one) => JSON.parse(one.slice(6)) as { choices?: readonly Choice[]; error?: object })
  if (read.some(({ error }) => error !== undefined)) return null
  return read.map(({ choices }) => choices?.[0]?.delta?.content ?? '').join('')
}

if (import.meta.main) {
  const { OPENAI_BASE_URL: baseUrl = '', OPENAI_API_KEY: apiKey = '', OPENAI_MODEL: model = '' } = process.env
  await work({ baseUrl, apiKey, model, scenarios: process.argv[2] ?? '' })
}
