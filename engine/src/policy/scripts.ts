import { createHash } from 'node:crypto'
import { EngineError, validationError } from '../errors.ts'
import { readList, readNumber, readObject, readText } from '../json/read.ts'
import type { Json, JsonObject } from '../json/lossless.ts'

/** A call as a script writes it: a shell command for whatever shell tool is offered, or a tool by name. */
export type AbstractCall =
  | { readonly kind: 'shell'; readonly command: string }
  | { readonly kind: 'tool'; readonly name: string; readonly args: JsonObject }

/** What one answer does: thinks, says, calls. An answer without calls ends the script, or is a step `answer` of it. */
export interface ScriptTurn {
  readonly think: string
  readonly say: string
  readonly calls: readonly AbstractCall[]
}

/** One way to go about a task. `weight` is its logit in the softmax over the script's candidates. */
export interface ScriptCandidate {
  readonly name: string
  weight: number
  readonly turns: readonly ScriptTurn[]
}

/** What the engine does for one instruction. */
export interface Script {
  readonly instructionSha256: string
  readonly instruction: string | undefined
  readonly candidates: readonly ScriptCandidate[]
}

const LAST_WORDS = 'Done.'

/** SHA-256 of an instruction's UTF-8 text, in hex: the key of its script. */
export function instructionDigest(instruction: string): string {
  return createHash('sha256').update(instruction, 'utf8').digest('hex')
}

/**
 * Reads a script from a control request. Throws a 400 that names the field: an instruction or its digest is required and
 * they must agree, there is at least one candidate, names are unique, a step has exactly one of its forms.
 */
export function readScript(body: JsonObject): Script {
  const instruction = readText(body, 'instruction')
  const given = readText(body, 'instructionSha256')?.toLowerCase()
  if (instruction === undefined && given === undefined) throw validationError('Field required', 'instructionSha256')
  const digest = instruction === undefined ? given : instructionDigest(instruction)
  if (digest === undefined || !/^[0-9a-f]{64}$/.test(digest) || (given !== undefined && given !== digest)) {
    throw validationError('instructionSha256 is not the SHA-256 of the instruction', 'instructionSha256')
  }
  const candidates = (readList(body, 'candidates') ?? []).map((item, index) => readCandidate(item, index))
  if (candidates.length === 0) throw validationError('At least one candidate is required', 'candidates')
  const names = new Set(candidates.map((candidate) => candidate.name))
  if (names.size !== candidates.length) throw validationError('Candidate names must be unique', 'candidates')
  return { instructionSha256: digest, instruction, candidates }
}

function readCandidate(item: Json, index: number): ScriptCandidate {
  const place = `candidates.${index}`
  if (!(item instanceof Map)) throw validationError('Input should be a valid dictionary', place)
  // JSON writes an infinite logit as null; taking that for the default would make the impossible likely.
  const weight = item.get('weight') === null ? Number.NaN : (readNumber(item, 'weight') ?? 0)
  if (!Number.isFinite(weight)) throw validationError('weight must be finite', `${place}.weight`)
  const steps = (readList(item, 'steps') ?? []).map((step, at) => readStep(step, `${place}.steps.${at}`))
  return { name: readText(item, 'name') ?? `candidate-${index}`, weight, turns: toTurns(steps.flat()) }
}

type Step =
  | { readonly answer: string }
  | { readonly think: string }
  | { readonly say: string }
  | { readonly calls: readonly AbstractCall[] }

function readStep(step: Json, place: string): Step {
  if (!(step instanceof Map)) throw validationError('Input should be a valid dictionary', place)
  const answer = readText(step, 'answer')
  if (answer !== undefined) return { answer }
  const say = readText(step, 'say')
  if (say !== undefined) return { say }
  const think = readText(step, 'think')
  if (think !== undefined) return { think }
  const parallel = readList(step, 'parallel')
  if (parallel !== undefined) return { calls: parallel.map((call, at) => readCall(call, `${place}.parallel.${at}`)) }
  return { calls: [readCall(step, place)] }
}

function readCall(step: Json, place: string): AbstractCall {
  if (!(step instanceof Map)) throw validationError('Input should be a valid dictionary', place)
  const command = readText(step, 'shell')
  if (command !== undefined) return { kind: 'shell', command }
  const name = readText(step, 'tool')
  if (name !== undefined) return { kind: 'tool', name, args: readObject(step, 'args') ?? new Map() }
  throw new EngineError(`${place}: a step is one of shell, tool, say, think, parallel, answer`, { param: place })
}

/** Steps up to and including a call, or a whole answer of text, are one answer; what follows the last call is the final answer. */
function toTurns(steps: readonly Step[]): ScriptTurn[] {
  const turns: ScriptTurn[] = []
  let think: string[] = []
  let say: string[] = []
  const close = (calls: readonly AbstractCall[]): void => {
    turns.push({ think: think.join('\n'), say: say.join('\n'), calls })
    think = []
    say = []
  }
  for (const step of steps) {
    if ('think' in step) think.push(step.think)
    else if ('say' in step) say.push(step.say)
    else if ('answer' in step) {
      say.push(step.answer)
      close([])
    } else if (step.calls.length > 0) close(step.calls)
  }
  const last = steps.at(-1)
  if (last !== undefined && 'answer' in last) return turns
  if (say.length === 0) say.push(LAST_WORDS)
  close([])
  return turns
}
