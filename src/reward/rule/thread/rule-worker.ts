/** A thread that compares answers by the rules that it receives. */
import { parentPort } from 'node:worker_threads'
import type { RuleResult } from '../rule.ts'
import { dataRules, textRules } from '../text-rules.ts'
import type { RuleReply, RuleRequest, RuleSpec } from './pool.ts'

/** Rules that are kept made: a schema takes longer to compile than to apply. */
const kept = 100
type Compare = (answer: unknown) => RuleResult
const rules = { ...textRules, ...dataRules }
const made = new Map<number, Compare>()

function ruleOf({ id, name, args }: RuleSpec): Compare {
  // The main thread made the same rule of the same arguments before it sent them.
  const make = (rules as Readonly<Record<string, unknown>>)[name] as (...given: readonly unknown[]) => Compare
  // What holds tables is compared once.
  if (Object.hasOwn(dataRules, name)) return make(...args)
  const rule = made.get(id) ?? make(...args)
  made.delete(id)
  made.set(id, rule)
  const [oldest] = made.keys()
  if (made.size > kept && oldest !== undefined) made.delete(oldest)
  return rule
}

const reply = (message: RuleReply): void => parentPort?.postMessage(message)

parentPort?.on('message', ({ rule, answer }: RuleRequest) => {
  try {
    reply({ result: ruleOf(rule)(answer) })
  } catch (error) {
    reply({ fault: String(error) })
  }
})
reply({ ready: true })
