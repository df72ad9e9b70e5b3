import type { FailurePattern } from './contract.ts'

/**
 * What a model's server can say no with, as clients of the OpenAI API repeat it. The words are those of Paddock's own error
 * bodies and of the AI SDK's and the OpenAI SDK's connection errors (seen with the presets' pinned versions).
 */
export const apiFailures: readonly FailurePattern[] = [
  {
    pattern: /context_length_exceeded|ContextOverflowError|maximum context length|exceeds the model's context window/i,
    end: 'context_overflow',
    fault: 'context_overflow',
    detail: 'context overflow',
  },
  {
    pattern: /AUTH_KEY_|invalid_api_key|"statusCode":401|\b401\b.{0,40}(unauthorized|key)|incorrect api key/i,
    end: 'harness_crash',
    fault: 'auth',
    detail: 'its key was refused',
  },
  {
    pattern: /model_not_found|model `[^`]*` does not exist|unknown model|"statusCode":404/i,
    end: 'harness_crash',
    fault: 'unknown_model',
    detail: 'the model is not known',
  },
  {
    pattern:
      /ECONNREFUSED|ECONNRESET|ConnectionRefused|Cannot connect to API|Unable to connect|Connection error|fetch failed/i,
    end: 'harness_crash',
    fault: 'network',
    detail: 'no connection to the model',
  },
  {
    pattern: /ENGINE_(DIED|ERROR|TIMEOUT|UNREACHABLE)|PROXY_OVERLOADED|"statusCode":5\d\d/,
    end: 'harness_crash',
    fault: 'engine',
    detail: 'the engine failed it',
  },
]
