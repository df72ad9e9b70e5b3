/**
 * A refusal in the shape of vLLM: `{"error":{"message","type","param","code"}}` with the HTTP status as `code`
 * (vLLM `entrypoints/serve/exception_handling/error_response.py` and `serve/engine/protocol.py` ErrorInfo).
 */
export class EngineError extends Error {
  readonly status: number
  readonly type: string
  readonly param: string | null
  readonly headers: Readonly<Record<string, string>>

  constructor(
    message: string,
    facts: { status?: number; type?: string; param?: string | null; headers?: Readonly<Record<string, string>> } = {},
  ) {
    super(message)
    this.status = facts.status ?? 400
    this.type = facts.type ?? 'BadRequestError'
    this.param = facts.param ?? null
    this.headers = facts.headers ?? {}
  }

  /** SGLang's body: the same facts without the envelope (`srt/entrypoints/openai/protocol.py` ErrorResponse). */
  flatBody(): { object: string; message: string; type: string; param: string | null; code: number } {
    return { object: 'error', message: this.message, type: this.type, param: this.param, code: this.status }
  }

  /** The JSON body. */
  body(): { error: { message: string; type: string; param: string | null; code: number } } {
    return { error: { message: this.message, type: this.type, param: this.param, code: this.status } }
  }
}

/**
 * A request that fails validation. vLLM appends the parameter and its value to the message
 * (`vllm/exceptions.py` VLLMValidationError.__str__).
 */
export function validationError(message: string, param: string, value?: string | number): EngineError {
  const suffix = value === undefined ? `(parameter=${param})` : `(parameter=${param}, value=${value})`
  return new EngineError(`${message} ${suffix}`, { param })
}

/** The engine could not do what a script asks for; the name comes first so that a person can search for it. */
export function scriptError(name: 'SCRIPT_NO_SHELL_TOOL' | 'SCRIPT_NO_SUCH_TOOL', message: string): EngineError {
  return new EngineError(`${name}: ${message}`, { type: name })
}
