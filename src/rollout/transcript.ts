import { PaddockError } from '../core/index.ts'
import type { Box } from '../sandbox/index.ts'
import { harnessHome } from './agent.ts'
import type { HarnessResume } from './harnesses/contract.ts'

/**
 * Looks for each text in a file that ends with a whole line, for five seconds in all: a bound for what never comes. A large result is
 * written in pieces, and its id stands in the first.
 */
const script = `dir=$1; shift; n=0; IFS='
'
written() { for file in $(grep -rlF -- "$1" "$dir" 2>/dev/null); do [ -z "$(tail -c 1 "$file")" ] && return; done; return 1; }
for text in "$@"; do until written "$text"; do n=$((n+1)); [ $n -le 100 ] || exit 1; sleep 0.05; done; done`

/**
 * Resolves when a program has written down all results of tools that its request tells of. Throws `HARNESS_FAILED` where it does not
 * come to that: a copy of its box would begin with less than it has asked.
 */
export async function untilWritten(
  box: Box,
  { directory, holds }: NonNullable<HarnessResume['transcript']>,
  body: Uint8Array,
): Promise<void> {
  const texts = resultsIn(JSON.parse(Buffer.from(body).toString())).map(holds)
  const command = ['sh', '-c', script, 'sh', `${harnessHome}/${directory}`, ...texts]
  const result = await box.exec({ command, cwd: '/' })
  if (result.kind === 'exited' && result.code === 0) return
  throw new PaddockError('HARNESS_FAILED', 'Its transcript does not hold the results of its tools.')
}

/** Ids of the tool calls whose results stand in a request, in whatever dialect. */
function resultsIn(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.flatMap(resultsIn)
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, member]) =>
    (name === 'tool_use_id' || name === 'tool_call_id') && typeof member === 'string' ? [member] : resultsIn(member),
  )
}
