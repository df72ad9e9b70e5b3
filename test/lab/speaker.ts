/**
 * Small harnesses, one per dialect: each keeps its history in its own wire's form and sends it again with every call, as
 * the programs that people write do. They share no code with what they talk to.
 */

/** A tool as a speaker offers it. */
export interface OfferedTool {
  readonly name: string
  readonly parameters: object
}

/** One call as the model asked for it. */
export interface AskedCall {
  readonly id: string
  readonly name: string
  readonly args: string
}

/** An answer as the wire gave it. */
export interface Said {
  readonly text: string
  readonly thinking: string
  readonly calls: readonly AskedCall[]
  /** The dialect's own word for the end. */
  readonly finish: string
  /** What the history takes over, in the dialect's form. */
  readonly native: readonly Json[]
}

/** How one call is asked. */
export interface Asking {
  readonly model: string
  readonly stream: boolean
  readonly maxTokens: number
  readonly tools: readonly OfferedTool[]
}

/** Parsed JSON of a wire. */
// oxlint-disable-next-line typescript/no-explicit-any -- a test reads many foreign shapes
export type Json = any

/**
 * How an answer goes back: as it came; or as another JSON library writes it, with its thinking forgotten, which most
 * harnesses do.
 */
export type Echo = 'given' | 'reserialised'

/** One conversation in one dialect. */
export interface Speaker {
  readonly dialect: DialectName
  user(text: string): void
  /** Path under `/s/<session>` and body of the next call. */
  request(asking: Asking): { readonly path: string; readonly body: Json }
  /** Reads a whole answer. Throws for an error body. */
  read(body: string, streamed: boolean): Said
  /** Takes an answer into the history. */
  take(said: Said, echo: Echo): void
  /** Results of the calls of the answer taken last, in order. */
  results(said: Said, texts: readonly string[]): void
  /** A new history, as after a compaction or in a sub-agent. */
  restart(system: string): void
  /** The history as it stands, for tests that edit it. */
  readonly history: Json[]
}

export type DialectName = 'chat' | 'responses' | 'messages' | 'gemini'

/** A conversation that begins with a system prompt. */
export function speakerOf(dialect: DialectName, system: string): Speaker {
  const made = {
    chat: () => new ChatSpeaker(),
    responses: () => new ResponsesSpeaker(),
    messages: () => new MessagesSpeaker(),
    gemini: () => new GeminiSpeaker(),
  }[dialect]()
  made.restart(system)
  return made
}

/** Payloads of a stream of server-sent events, without `[DONE]`. */
export function eventsOf(stream: string): Json[] {
  return stream
    .split('\n\n')
    .flatMap((event) => event.split('\n').filter((line) => line.startsWith('data: ')))
    .map((line) => line.slice(6))
    .filter((data) => data !== '[DONE]')
    .map((data) => JSON.parse(data) as Json)
}

function again(args: string): string {
  try {
    return JSON.stringify(JSON.parse(args), null, 1)
  } catch {
    return args
  }
}

function refuse(error: unknown): void {
  if (error !== undefined && error !== null) throw new Error(JSON.stringify(error))
}

class ChatSpeaker implements Speaker {
  readonly dialect = 'chat'
  history: Json[] = []

  restart(system: string): void {
    this.history = [{ role: 'system', content: system }]
  }

  user(text: string): void {
    this.history.push({ role: 'user', content: text })
  }

  request({ model, stream, maxTokens, tools }: Asking): { path: string; body: Json } {
    return {
      path: '/v1/chat/completions',
      body: {
        model,
        stream,
        max_tokens: maxTokens,
        messages: [...this.history],
        ...(tools.length === 0
          ? {}
          : {
              tools: tools.map(({ name, parameters }) => ({
                type: 'function',
                function: { name, description: 'A tool.', parameters },
              })),
            }),
      },
    }
  }

  read(body: string, streamed: boolean): Said {
    if (!streamed) {
      const parsed: Json = JSON.parse(body)
      refuse(parsed.error)
      const [{ message, finish_reason: finish }] = parsed.choices
      return this.said(message, finish)
    }
    const message: Json = { role: 'assistant', content: null }
    let finish = ''
    for (const event of eventsOf(body)) {
      refuse(event.error)
      const [choice] = event.choices
      if (choice === undefined) continue
      finish = choice.finish_reason ?? finish
      const { delta } = choice
      if (typeof delta.content === 'string') message.content = (message.content ?? '') + delta.content
      // vLLM's name for it, and SGLang's: it goes back under the one that it came with.
      for (const name of ['reasoning', 'reasoning_content'] as const) {
        if (typeof delta[name] === 'string') message[name] = ((message[name] ?? '') as string) + delta[name]
      }
      for (const part of delta.tool_calls ?? []) {
        message.tool_calls ??= []
        const call = (message.tool_calls[part.index] ??= {
          id: part.id,
          type: 'function',
          function: { name: part.function.name, arguments: '' },
        })
        call.function.arguments += part.function?.arguments ?? ''
      }
    }
    if (finish === '') throw new Error('the stream has no end')
    return this.said(message, finish)
  }

  private said(message: Json, finish: string): Said {
    const calls: Json[] = message.tool_calls ?? []
    return {
      text: message.content ?? '',
      thinking: message.reasoning ?? message.reasoning_content ?? '',
      calls: calls.map((call) => ({ id: call.id, name: call.function.name, args: call.function.arguments })),
      finish,
      native: [message],
    }
  }

  take({ native: [message] }: Said, echo: Echo): void {
    if (echo === 'given') {
      this.history.push(message)
      return
    }
    const { reasoning: _one, reasoning_content: _other, ...rest } = message
    if (rest.tool_calls !== undefined) {
      rest.tool_calls = rest.tool_calls.map((call: Json) => ({
        ...call,
        function: { ...call.function, arguments: again(call.function.arguments) },
      }))
    }
    this.history.push(rest)
  }

  results(said: Said, texts: readonly string[]): void {
    said.calls.forEach((call, index) =>
      this.history.push({ role: 'tool', tool_call_id: call.id, content: texts[index] ?? '' }),
    )
  }
}

class ResponsesSpeaker implements Speaker {
  readonly dialect = 'responses'
  history: Json[] = []
  private system = ''

  restart(system: string): void {
    this.system = system
    this.history = []
  }

  user(text: string): void {
    this.history.push({ type: 'message', role: 'user', content: [{ type: 'input_text', text }] })
  }

  request({ model, stream, maxTokens, tools }: Asking): { path: string; body: Json } {
    return {
      path: '/v1/responses',
      body: {
        model,
        stream,
        store: false,
        include: ['reasoning.encrypted_content'],
        max_output_tokens: maxTokens,
        instructions: this.system,
        input: [...this.history],
        tools: tools.map(({ name, parameters }) => ({
          type: 'function',
          name,
          description: 'A tool.',
          parameters,
          strict: false,
        })),
      },
    }
  }

  read(body: string, streamed: boolean): Said {
    if (!streamed) return this.said(JSON.parse(body))
    const last = eventsOf(body).at(-1)
    refuse(last?.type === 'error' ? last : (last?.response?.error ?? null))
    if (!/^response\.(completed|incomplete)$/.test(last?.type ?? '')) throw new Error('the stream has no end')
    return this.said(last.response)
  }

  private said(response: Json): Said {
    refuse(response.error)
    const output: Json[] = response.output
    const texts = (type: string, of: (item: Json) => Json[]): string =>
      output
        .filter((item) => item.type === type)
        .flatMap(of)
        .map((part) => part.text ?? '')
        .join('')
    return {
      text: texts('message', (item) => item.content),
      thinking: texts('reasoning', (item) => [...(item.content ?? []), ...(item.summary ?? [])]),
      calls: output
        .filter((item) => item.type === 'function_call')
        .map((item) => ({ id: item.call_id, name: item.name, args: item.arguments })),
      finish: response.incomplete_details?.reason ?? response.status,
      native: output,
    }
  }

  take({ native }: Said, echo: Echo): void {
    if (echo === 'given') {
      this.history.push(...native)
      return
    }
    for (const item of native) {
      if (item.type === 'reasoning') continue
      const { id: _id, ...rest } = item
      this.history.push(item.type === 'function_call' ? { ...rest, arguments: again(item.arguments) } : rest)
    }
  }

  results(said: Said, texts: readonly string[]): void {
    said.calls.forEach((call, index) =>
      this.history.push({ type: 'function_call_output', call_id: call.id, output: texts[index] ?? '' }),
    )
  }
}

class MessagesSpeaker implements Speaker {
  readonly dialect = 'messages'
  history: Json[] = []
  private system = ''

  restart(system: string): void {
    this.system = system
    this.history = []
  }

  user(text: string): void {
    const last = this.history.at(-1)
    // The API wants roles to alternate: what a user says after tool results stands in the same message.
    if (last?.role === 'user') last.content.push({ type: 'text', text })
    else this.history.push({ role: 'user', content: [{ type: 'text', text }] })
  }

  request({ model, stream, maxTokens, tools }: Asking): { path: string; body: Json } {
    return {
      path: '/v1/messages',
      body: {
        model,
        stream,
        max_tokens: maxTokens,
        system: this.system,
        thinking: { type: 'adaptive' },
        messages: structuredClone(this.history),
        tools: tools.map(({ name, parameters }) => ({ name, description: 'A tool.', input_schema: parameters })),
      },
    }
  }

  read(body: string, streamed: boolean): Said {
    if (!streamed) {
      const parsed: Json = JSON.parse(body)
      if (parsed.type === 'error') refuse(parsed.error)
      return this.said(parsed.content, parsed.stop_reason)
    }
    const blocks: Json[] = []
    let finish = ''
    for (const event of eventsOf(body)) {
      if (event.type === 'error') refuse(event.error)
      if (event.type === 'content_block_start') blocks[event.index] = { ...event.content_block, json: '' }
      if (event.type === 'message_delta') finish = event.delta.stop_reason ?? finish
      if (event.type !== 'content_block_delta') continue
      const block = blocks[event.index]
      const { delta } = event
      if (delta.type === 'text_delta') block.text += delta.text
      if (delta.type === 'thinking_delta') block.thinking += delta.thinking
      if (delta.type === 'signature_delta') block.signature = delta.signature
      if (delta.type === 'input_json_delta') block.json += delta.partial_json
    }
    if (finish === '') throw new Error('the stream has no end')
    const content = blocks.map(({ json, ...block }) =>
      block.type === 'tool_use' ? { ...block, input: json === '' ? {} : JSON.parse(json) } : block,
    )
    return this.said(content, finish)
  }

  private said(content: Json[], finish: string): Said {
    const texts = (type: string): string => content.map((block) => (block.type === type ? block[type] : '')).join('')
    return {
      text: texts('text'),
      thinking: texts('thinking'),
      calls: content
        .filter((block) => block.type === 'tool_use')
        .map((block) => ({ id: block.id, name: block.name, args: JSON.stringify(block.input) })),
      finish,
      native: content,
    }
  }

  take({ native }: Said, echo: Echo): void {
    const content = echo === 'given' ? native : native.filter((block) => block.type !== 'thinking')
    // An assistant message without content is refused by the API itself; clients leave a blank.
    this.history.push({
      role: 'assistant',
      content: content.length === 0 ? [{ type: 'text', text: '' }] : [...content],
    })
  }

  results(said: Said, texts: readonly string[]): void {
    this.history.push({
      role: 'user',
      content: said.calls.map((call, index) => ({
        type: 'tool_result',
        tool_use_id: call.id,
        content: texts[index] ?? '',
      })),
    })
  }
}

class GeminiSpeaker implements Speaker {
  readonly dialect = 'gemini'
  history: Json[] = []
  private system = ''

  restart(system: string): void {
    this.system = system
    this.history = []
  }

  user(text: string): void {
    this.history.push({ role: 'user', parts: [{ text }] })
  }

  request({ model, stream, maxTokens, tools }: Asking): { path: string; body: Json } {
    return {
      path: `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
      body: {
        systemInstruction: { parts: [{ text: this.system }] },
        generationConfig: { maxOutputTokens: maxTokens, thinkingConfig: { includeThoughts: true } },
        contents: [...this.history],
        ...(tools.length === 0
          ? {}
          : {
              tools: [
                {
                  functionDeclarations: tools.map(({ name, parameters }) => ({
                    name,
                    description: 'A tool.',
                    parametersJsonSchema: parameters,
                  })),
                },
              ],
            }),
      },
    }
  }

  read(body: string, streamed: boolean): Said {
    const responses: Json[] = streamed ? eventsOf(body) : [JSON.parse(body)]
    const parts: Json[] = []
    let finish = ''
    for (const response of responses) {
      refuse(response.error)
      const [candidate] = response.candidates ?? []
      if (candidate === undefined) continue
      finish = candidate.finishReason ?? finish
      for (const part of candidate.content?.parts ?? []) {
        const last = parts.at(-1)
        const joins =
          last?.text !== undefined && part.text !== undefined && (last.thought ?? false) === (part.thought ?? false)
        if (joins) parts[parts.length - 1] = { ...last, ...part, text: last.text + part.text }
        else parts.push({ ...part })
      }
    }
    if (finish === '') throw new Error('the stream has no end')
    const texts = (thought: boolean): string =>
      parts.map((part) => ((part.thought ?? false) === thought ? (part.text ?? '') : '')).join('')
    return {
      text: texts(false),
      thinking: texts(true),
      calls: parts
        .filter((part) => part.functionCall !== undefined)
        .map(({ functionCall: { id, name, args } }) => ({ id, name, args: JSON.stringify(args) })),
      finish,
      native: parts,
    }
  }

  take({ native }: Said, echo: Echo): void {
    const kept = echo === 'given' ? native : native.filter((part) => part.thought !== true)
    const parts = echo === 'given' ? kept : kept.map(({ thoughtSignature: _signature, ...part }) => ({ ...part }))
    this.history.push({ role: 'model', parts: parts.length === 0 ? [{ text: '' }] : parts })
  }

  results(said: Said, texts: readonly string[]): void {
    this.history.push({
      role: 'user',
      parts: said.calls.map((call, index) => ({
        functionResponse: { id: call.id, name: call.name, response: { output: texts[index] ?? '' } },
      })),
    })
  }
}
