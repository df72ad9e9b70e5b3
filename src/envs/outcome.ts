import type { ExecResult } from '../sandbox/index.ts'
import type { ToolOutcome } from './contract.ts'

const textLimit = 16_000

/**
 * What the model reads of a command that a tool ran: output, then how it ended where it did not end well. A dead box is
 * `infra`, a time limit `timeout`, any other failure `error`. Long output keeps its head and its tail.
 */
export function toolOutcome(result: ExecResult): ToolOutcome {
  const decoder = new TextDecoder()
  const output = clipped([result.stdout, result.stderr].map((bytes) => decoder.decode(bytes)).join(''))
  const ended = (how: string): string => `${output}\n[${how}]`.trimStart()
  switch (result.kind) {
    case 'exited':
      if (result.code === 0) return { status: 'ok', text: output === '' ? '[no output]' : output }
      return { status: 'error', text: ended(`exit code ${result.code}`) }
    case 'signaled':
      return { status: 'error', text: ended(`killed by ${result.signal}`) }
    case 'timed_out':
      return { status: 'timeout', text: ended('killed: its time limit is over') }
    case 'oom':
      return { status: 'error', text: ended('killed: out of memory') }
    case 'box_dead':
      return { status: 'infra', text: `The box died: ${result.why.detail}` }
  }
}

/** Long text keeps its head and its tail. */
export function clipped(text: string): string {
  if (text.length <= textLimit) return text
  const half = textLimit / 2
  return `${text.slice(0, half)}\n[… ${text.length - textLimit} characters left out …]\n${text.slice(-half)}`
}
