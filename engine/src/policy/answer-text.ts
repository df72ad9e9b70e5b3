import { dumpJson } from '../json/lossless.ts'
import type { Profile } from '../profiles.ts'
import type { ConcreteCall } from './offered-tools.ts'

/** What an answer consists of before it is written in a family's own way. */
export interface AnswerPlan {
  readonly think: string
  readonly say: string
  readonly calls: readonly ConcreteCall[]
}

/** How an answer must be written: freely, or in one of the two JSON forms that a forced tool choice leads to. */
export type AnswerForm =
  | { readonly kind: 'free' }
  | { readonly kind: 'required' }
  | { readonly kind: 'named'; readonly name: string }

/**
 * The text of an answer exactly as the profile's template would render it back, so that a clean conversation extends
 * token for token. The terminator is not part of it.
 */
export function answerText(profile: Profile, plan: AnswerPlan, form: AnswerForm): string {
  const thinking = profile.thinks && plan.think !== '' ? `<think>\n${plan.think}\n</think>\n\n` : ''
  if (form.kind === 'named') return thinking + dumpJson(plan.calls[0]?.args ?? new Map())
  if (form.kind === 'required') {
    return `${thinking}[${plan.calls.map((call) => callText(call, 'parameters')).join(', ')}]`
  }
  if (plan.calls.length === 0) return thinking + plan.say
  const { open, close } = profile.callTags
  const calls = plan.calls.map((call) => callText(call, profile.argumentsKey))
  if (close === undefined) return thinking + plan.say + open + calls.join(profile.separator)
  const tagged = calls.map((call) => `${open}\n${call}\n${close}`).join(profile.separator)
  return `${thinking}${plan.say === '' ? '' : `${plan.say}\n`}${tagged}`
}

/** The id that ends such an answer. */
export function terminatorOf(profile: Profile, plan: AnswerPlan, form: AnswerForm): number {
  const called = plan.calls.length > 0 && form.kind === 'free'
  return called ? profile.terminator.afterCall : profile.terminator.afterText
}

function callText(call: ConcreteCall, argumentsKey: string): string {
  return `{"name": ${JSON.stringify(call.name)}, "${argumentsKey}": ${dumpJson(call.args)}}`
}
