import type { Task } from '../../core/index.ts'
import type { ScriptStep } from '../../envs/index.ts'
import type { FaultProbe } from './contract.ts'
import { probeTask, workdir } from './environment.ts'

/** A fault order for the scripted engine, without its match. */
type Fault = Readonly<Record<string, string | number>>

/** One thing that is tried, as a task of its own. */
export interface Probe {
  readonly name: 'talk' | 'habits' | 'long' | 'splice' | 'subagent' | FaultProbe
  readonly strategy: 'record' | 'splice'
  readonly task: Task
  /** Strikes once, at the third call that carries the instruction: behind a title request and the first turn. */
  readonly fault: Fault | null
}

/** Text that a serialiser can get wrong: quotes, backslashes, markup, letters beyond ASCII and beyond the BMP. */
const awkward = `printf '%s\\n' "naïve <b>&amp;</b> \\\\ 日本語 🙂 \\"quoted\\""`

const talk: readonly ScriptStep[] = [
  { say: 'First I look around: <b>carefully</b>, and with “quotes”.' },
  { shell: awkward },
  { shell: 'ls -a' },
  { parallel: [{ shell: 'echo one' }, { shell: 'echo two' }] },
  { say: 'I have looked around; nothing is missing. 🙂' },
]

/** Commands and words as models write them, and as some programs tidy them up in their history. */
const habits: readonly ScriptStep[] = [
  { say: ' I begin in the working  directory.' },
  { shell: `cd ${workdir} && ls` },
  { shell: 'ls -la   ' },
  // A harness on the host runs where its user is: nothing may be left there.
  { shell: "cat <<'EOF'\nfirst line\n  second line, indented\nEOF" },
  { shell: `cd ${workdir} && ls -a && cd ${workdir}` },
  { shell: 'cd "$(mktemp -d)" && mkdir -p deep/er && cd deep/er && pwd' },
  { shell: `cd ${workdir}; pwd\n` },
  { say: 'That is all.\n' },
]

/** So many turns that whatever a program does with a history that grows has begun. */
const longTurns = 30

const long: readonly ScriptStep[] = [
  ...Array.from({ length: longTurns }, (_, turn) => ({
    shell: turn % 3 === 2 ? `cd ${workdir} && echo turn ${turn}` : `echo turn ${turn}`,
  })),
  { say: 'Every turn is done.' },
]

const short: readonly ScriptStep[] = [{ shell: 'echo one' }, { shell: 'echo two' }, { say: 'Both are done.' }]

/** Seconds that a limited client is told to wait. */
const retryAfterSeconds = 1

/** The probes that every harness is put to. Names are in the instructions, so that faults find their own. */
export const probes: readonly Probe[] = [
  probe('talk', 'record', talk, null),
  probe('habits', 'record', habits, null),
  probe('long', 'record', long, null),
  probe('splice', 'splice', talk, null),
  probe('limited', 'record', short, { kind: 'http_error', status: 429, retryAfterSeconds }),
  probe('failed', 'record', short, { kind: 'http_error', status: 500 }),
  probe('cut', 'record', short, { kind: 'die', at: 'mid_token' }),
]

/** What a sub-agent is asked, for which the engine has a script of its own. */
export const subagentInstruction = 'Sub-agent of the conformance probe: print the word three with the shell and say so.'

/** A probe that makes the harness start another agent through a tool that it was seen to offer. */
export function subagentProbe(tool: {
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
}): Probe {
  return probe('subagent', 'record', [{ tool: tool.name, args: tool.args }, { say: 'The other agent is done.' }], null)
}

/** The sub-agent's own script. */
export const subagentScript = {
  instruction: subagentInstruction,
  candidates: [{ name: 'only', steps: [{ shell: 'echo three' }, { say: 'It printed three.' }] }],
}

function probe(
  name: Probe['name'],
  strategy: Probe['strategy'],
  steps: readonly ScriptStep[],
  fault: Fault | null,
): Probe {
  const instruction = `Conformance probe "${name}": run the shell commands that this probe calls for and say when you are done.`
  return { name, strategy, task: probeTask({ name, instruction, steps }), fault }
}
