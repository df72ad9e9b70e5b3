/** What a rule says of one answer: a number in [0, 1] and why, in words a reader of the verdict understands. */
export interface RuleResult {
  readonly value: number
  readonly why: string
}

/** A rule that compares on the thread that asks. */
export type TextRule = (answer: string) => RuleResult

/**
 * A rule over the text that an agent gave. Pure and total: every text gets a number, because an odd text is the agent's. A rule that
 * fails throws, and the verdict has no number.
 */
export type Rule = (answer: string) => Promise<RuleResult>

/** How texts are made comparable before a rule looks at them. Each step is off unless named. */
export interface Normalisation {
  /** Strip white space at both ends. */
  readonly trim?: boolean
  /** Every run of white space becomes one space. */
  readonly spaces?: boolean
  readonly lowerCase?: boolean
  /** Unicode NFC. */
  readonly unicode?: boolean
}

/** Applies the named steps. */
export function normalise(text: string, steps: Normalisation): string {
  let out = steps.unicode ? text.normalize('NFC') : text
  if (steps.spaces) out = out.replace(/\s+/gu, ' ')
  if (steps.trim) out = out.trim()
  if (steps.lowerCase) out = out.toLowerCase()
  return out
}

/** 1 or 0 with a reason. */
export function verdictOf(passes: boolean, why: string): RuleResult {
  return { value: passes ? 1 : 0, why }
}

/** 0 for an answer that is longer than is compared. */
export function tooLong(answer: string, most: number): RuleResult {
  return verdictOf(false, `the answer has ${answer.length} characters; at most ${most} are compared`)
}

/** A bounded quotation for a reason. */
export function quote(text: string): string {
  return JSON.stringify(text.length > 120 ? `${text.slice(0, 117)}…` : text)
}
