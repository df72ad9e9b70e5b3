/** The fake engine of `bench/proxy.ts`: vLLM's chat route and its token routes with fixed answers, timed by the model's name. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'

/** What every client of the bench asks. */
export const prompt = 'Summarise this text for me, please. '.repeat(25)
const ids = Array.from({ length: 30 }, (_, i) => 1000 + i)
const promptIds = render({ messages: [{ role: 'user', content: prompt }] })
const entries = ids.map((id) => `{"token":"t${id}","logprob":-0.25,"bytes":[116],"top_logprobs":[]}`)
const head = '"id":"chatcmpl-1","created":1,"model":"bench"'
const whole = Buffer.from(
  `{${head},"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"${'word '.repeat(30)}"},"logprobs":{"content":[${entries.join(',')}]},"finish_reason":"stop","stop_reason":null,"token_ids":[${ids.join(',')}]}],"usage":{"prompt_tokens":200,"completion_tokens":30,"total_tokens":230},"prompt_token_ids":[${promptIds.join(',')}]}`,
)
const event = (content: string, finish: string, more: string) =>
  Buffer.from(
    `data: {${head},"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"${content}"},"logprobs":{"content":[{"token":"word ","logprob":-0.25,"bytes":[119,111,114,100,32],"top_logprobs":[]}]},"finish_reason":${finish},"token_ids":[1001]}]${more}}\n\n`,
  )
const chat = {
  first: event('word ', 'null', `,"prompt_token_ids":[${promptIds.join(',')}]`),
  middle: event('word ', 'null', ''),
  last: event('', '"stop"', ''),
}
const generated = (finish: string, more: string) =>
  Buffer.from(
    `data: {"request_id":"g","choices":[{"index":0,"token_ids":[1001],"finish_reason":${finish},"logprobs":{"content":[{"token":"token_id:1001","token_id":1001,"logprob":-0.25,"rank":1,"top_logprobs":[]}]}}]${more}}\n\n`,
  )
const tokens = {
  first: generated('null', `,"prompt_token_ids":[${promptIds.join(',')}]`),
  middle: generated('null', ''),
  last: generated('"stop"', ''),
}
const wholeTokens = Buffer.from(
  `{"request_id":"g","choices":[{"index":0,"token_ids":[${ids.join(',')}],"finish_reason":"stop","logprobs":{"content":[${ids.map((id) => `{"token":"token_id:${id}","token_id":${id},"logprob":-0.25,"rank":1,"top_logprobs":[]}`).join(',')}]}}],"usage":{"prompt_tokens":200,"completion_tokens":30,"total_tokens":230},"prompt_token_ids":[${promptIds.join(',')}]}`,
)
const step = (finish: string) =>
  Buffer.from(
    `{"chunk":{${head},"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"word "},"logprobs":{"content":[{"token":"word ","logprob":-0.25,"bytes":[119],"top_logprobs":[]}]},"finish_reason":${finish}}]},"stream_state":{"at":1}}`,
  )
const steps = { middle: step('null'), last: step('"stop"') }

/** Starts it on a free port of the loopback. */
export function startEngine(): Promise<string> {
  const server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => answer(request, response, Buffer.concat(parts)))
  })
  server.keepAliveTimeout = 120_000
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', 4096, () => {
      const address = server.address()
      resolve(`http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`)
    })
  })
}

function answer(request: IncomingMessage, response: ServerResponse, body: Buffer): void {
  const model = /"model":"(bench[^"]*)"/.exec(body.toString('latin1'))?.[1] ?? 'bench'
  switch (request.url) {
    case '/v1/chat/completions':
      return body.includes('"stream":true') ? stream(response, chat, model) : json(response, whole)
    case '/v1/chat/completions/render': {
      // Only what learns about the template asks for anything else.
      const rendered = body.includes(prompt) ? promptIds : render(JSON.parse(body.toString()))
      return json(
        response,
        Buffer.from(`{"model":"${model}","token_ids":[${rendered.join(',')}],"sampling_params":{"max_tokens":100}}`),
      )
    }
    case '/inference/v1/generate':
      if (body.length < 10) {
        response.writeHead(422)
        response.end('{}')
        return
      }
      return body.includes('"stream":true') ? stream(response, tokens, model) : json(response, wholeTokens)
    case '/v1/chat/completions/derender':
      if (!body.includes('"stream":true')) return json(response, whole)
      return json(response, body.includes('"finish_reason":"stop"') ? steps.last : steps.middle)
    default:
      response.writeHead(404)
      response.end('{}')
  }
}

interface Chat {
  readonly messages: readonly { readonly role: string; readonly content: string }[]
  readonly add_generation_prompt?: boolean
}

/** A chat template with a token per word: 46 of a system prompt, then each message between its marks. */
function render({ messages, add_generation_prompt: opens = true }: Chat): readonly number[] {
  const word = (text: string): number => Buffer.from(text).reduce((sum, byte) => sum + byte, 3000)
  const marks = { begin: 2000, end: 2001, opened: 2002 }
  return [
    ...Array.from({ length: 46 }, (_, i) => i),
    ...messages.flatMap(({ role, content }) => [
      marks.begin,
      word(role),
      ...content.trim().split(' ').map(word),
      marks.end,
    ]),
    ...(opens ? [marks.opened] : []),
  ]
}

function json(response: ServerResponse, body: Buffer): void {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
  response.end(body)
}

/** `bench/<events>/<every ms>`: so many events, so far apart. */
function stream(response: ServerResponse, events: typeof chat, model: string): void {
  const [, count = '2', everyMs = '0'] = model.split('/')
  const usage = Buffer.from(
    `data: {${head},"object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":200,"completion_tokens":${count},"total_tokens":0}}\n\ndata: [DONE]\n\n`,
  )
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write(events.first)
  let sent = 1
  const next = (): void => {
    sent += 1
    if (sent < Number(count)) response.write(events.middle)
    else response.end(Buffer.concat([events.last, usage]))
  }
  if (Number(everyMs) === 0) {
    while (sent < Number(count)) next()
    return
  }
  const timer = setInterval(() => {
    next()
    if (sent >= Number(count)) clearInterval(timer)
  }, Number(everyMs))
  response.once('close', () => clearInterval(timer))
}
