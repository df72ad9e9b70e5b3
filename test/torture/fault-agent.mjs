/**
 * An agent of three calls, one of which ends badly: it then asks once more, or gives up and says that it is done. What
 * happens to which call says the scenario that it is given.
 */
export async function work({ baseUrl, apiKey, model, scenarios }) {
  const session = /\/s\/([^/]+)\//.exec(baseUrl)?.[1]
  const { retries, streams, patience } = await (await fetch(`${scenarios}/${session}`)).json()
  const messages = [{ role: 'user', content: 'Say hello.' }]
  for (let call = 0; call < 3; call += 1) {
    const answer = (await ask()) ?? (retries ? await ask() : null)
    if (answer === null) return
    messages.push({ role: 'assistant', content: answer }, { role: 'user', content: 'Say more.' })
  }

  async function ask() {
    try {
      const response = await fetch(`${baseUrl}/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model, messages, temperature: 1, max_tokens: 20, stream: streams }),
        ...(patience === null ? {} : { signal: AbortSignal.timeout(patience) }),
      })
      const text = await response.text()
      if (!response.ok) return null
      if (!streams) return JSON.parse(text).choices[0].message.content ?? ''
      const events = text.split('\n\n').filter((one) => one.startsWith('data: {'))
      const read = events.map((one) => JSON.parse(one.slice(6)))
      if (read.some((one) => 'error' in one)) return null
      return read.map((one) => one.choices[0]?.delta.content ?? '').join('')
    } catch {
      return null
    }
  }
}

if (import.meta.main) {
  const { OPENAI_BASE_URL: baseUrl, OPENAI_API_KEY: apiKey, OPENAI_MODEL: model } = process.env
  await work({ baseUrl, apiKey, model, scenarios: process.argv[2] })
}
