import { NamedCall, PlainText, RequiredCalls } from './forced-calls.ts'
import { TaggedCalls } from './tagged-calls.ts'
import { ThinkingParser } from './thinking.ts'
import type { Profile } from '../profiles.ts'
import type { AnswerParser } from './contract.ts'

export { joinParts, parseWhole } from './contract.ts'
export type { AnswerParser, AnswerPart } from './contract.ts'

/** What a request allows an answer to be. */
export type ToolChoice =
  | { readonly kind: 'none' }
  | { readonly kind: 'auto' }
  | { readonly kind: 'required' }
  | { readonly kind: 'named'; readonly name: string }

/**
 * The parser for one answer. `thinkingOpen` when the prompt ended inside `<think>`. Reasoning is split off whatever the
 * tool choice; calls are read only where tools were offered.
 */
export function answerParser(profile: Profile, choice: ToolChoice, thinkingOpen: boolean): AnswerParser {
  const body = bodyParser(profile, choice)
  return profile.thinks ? new ThinkingParser(body, thinkingOpen) : body
}

function bodyParser(profile: Profile, choice: ToolChoice): AnswerParser {
  switch (choice.kind) {
    case 'none':
      return new PlainText()
    case 'auto':
      return new TaggedCalls(profile.callTags)
    case 'required':
      return new RequiredCalls()
    case 'named':
      return new NamedCall(choice.name)
  }
}
