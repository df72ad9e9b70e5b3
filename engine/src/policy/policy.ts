import { answerText, terminatorOf } from './answer-text.ts'
import { objectFor, valueFor } from './fill.ts'
import { dumpJson } from '../json/lossless.ts'
import { callsIn, compatible, nextTurn } from './history.ts'
import { concreteCall, readTools } from './offered-tools.ts'
import type { PromptView } from '../chat/prompt-view.ts'
import type { Json } from '../json/lossless.ts'
import type { Profile } from '../profiles.ts'
import type { AnswerForm, AnswerPlan } from './answer-text.ts'
import type { ScriptBook } from './script-book.ts'
import type { ScriptCandidate, ScriptTurn } from './scripts.ts'
import type { AnswerCandidate } from './trie.ts'

/** What the answer must look like: a form of call, or JSON of a schema (`response_format`). */
export type Constraint = AnswerForm | { readonly kind: 'json'; readonly schema: Json }

interface WeightedPlan extends AnswerPlan {
  readonly name: string
  readonly logit: () => number
}

/** What the policy chose from, and which script it was (for the journal). */
export interface PolicyAnswer {
  readonly candidates: readonly AnswerCandidate[]
  /** How many ids of each candidate are in the prompt already. */
  readonly depth: number
  readonly script: string | undefined
}

const NO_SCRIPT = [
  ['I am a scripted engine, not a language model, and I have no script for this prompt.', 0.6],
  ['I am a scripted engine, and no script is registered for this prompt.', 0.2],
  ['This is a scripted engine: it has no script for this prompt, so it cannot answer.', 0],
  ['This is a scripted engine without a script for this prompt.', -0.4],
] as const
const SHORT = [
  ['Scripted engine session', 0.5],
  ['Scripted engine reply', 0],
  ['Scripted reply without a script', -0.5],
] as const
const EMPTY_THINKING = '<think>\n\n</think>\n\n'
const OPEN_THINKING = '<think>\n'
/** What is thought where a prompt opens thinking and the script has nothing to think. */
const IDLE_THOUGHT = 'The next step is clear.'

/**
 * The distribution over answers to a prompt. It depends on the prompt's ids, the scripts and their weights, and the
 * constraint; on nothing else. Throws SCRIPT_NO_SHELL_TOOL when a script needs a shell that the tools do not offer.
 */
export async function answersTo(
  view: PromptView,
  scripts: ScriptBook,
  profile: Profile,
  constraint: Constraint,
): Promise<PolicyAnswer> {
  const found = scripts.find(view.turns)
  const tools = readTools(view.tools)
  const form: AnswerForm = constraint.kind === 'json' ? { kind: 'free' } : constraint
  let plans: WeightedPlan[] | undefined
  if (found !== undefined && constraint.kind !== 'json') {
    const since = view.turns.slice(found.turn + 1)
    const seen = callsIn(since, profile)
    const answers = since.filter(({ role }) => role === 'assistant').length
    plans = compatible(found.script.candidates, seen, tools).flatMap((candidate) =>
      weightedPlan(candidate, nextTurn(candidate, seen.length, answers), tools, form),
    )
  }
  const known = plans !== undefined && plans.length > 0
  const chosen = known && plans !== undefined ? plans : withoutScript(view, constraint)
  const fitted = chosen.map((plan) => fitToForm(plan, form, tools))
  const { candidates, depth } = await toCandidates(fitted, view.open ?? new Int32Array(0), profile, form)
  return { candidates, depth, script: known ? found?.script.instructionSha256 : undefined }
}

/** A candidate's next turn with the calls as the offered tools take them; none when the request is not part of the script. */
function weightedPlan(
  candidate: ScriptCandidate,
  turn: ScriptTurn,
  tools: ReturnType<typeof readTools>,
  form: AnswerForm,
): WeightedPlan[] {
  // Title and summary requests quote the task but offer no tools.
  if (turn.calls.length > 0 && tools.length === 0) return []
  try {
    const calls = turn.calls.map((call) => concreteCall(call, tools))
    return [{ ...turn, calls, name: candidate.name, logit: () => candidate.weight }]
  } catch (error) {
    // A harness that forces a tool of its own (a schema to fill in) does not ask for the script's shell.
    if (form.kind === 'named') return []
    throw error
  }
}

function withoutScript(view: PromptView, constraint: Constraint): WeightedPlan[] {
  if (constraint.kind === 'json') {
    const text = dumpJson(valueFor(constraint.schema, 'scripted engine'))
    return [{ name: 'json', think: '', say: text, calls: [], logit: () => 0 }]
  }
  const texts = view.tools.length === 0 ? SHORT : NO_SCRIPT
  return texts.map(([say, weight]) => ({ name: 'no-script', think: '', say, calls: [], logit: () => weight }))
}

/** A forced tool choice needs a call: the plan's own, else the forced (or first) tool with what it requires. */
function fitToForm(plan: WeightedPlan, form: AnswerForm, tools: ReturnType<typeof readTools>): WeightedPlan {
  if (form.kind === 'free') return plan
  const wanted = form.kind === 'named' ? plan.calls.filter((call) => call.name === form.name) : plan.calls
  if (wanted.length > 0) return { ...plan, calls: form.kind === 'named' ? wanted.slice(0, 1) : wanted }
  const tool = form.kind === 'named' ? tools.find((offered) => offered.name === form.name) : tools[0]
  const name = tool?.name ?? (form.kind === 'named' ? form.name : 'none')
  return { ...plan, calls: [{ name, args: objectFor(tool?.schema, 'scripted engine') }] }
}

async function toCandidates(
  plans: readonly WeightedPlan[],
  open: Int32Array,
  profile: Profile,
  form: AnswerForm,
): Promise<{ candidates: AnswerCandidate[]; depth: number }> {
  const whole: AnswerCandidate[] = []
  const continued: AnswerCandidate[] = []
  const opened = profile.vocabulary.decode(open)
  const closedThinking = opened.startsWith(EMPTY_THINKING)
  const said = closedThinking ? opened.slice(EMPTY_THINKING.length) : opened
  for (const plan of plans) {
    const think = closedThinking ? '' : plan.think || (said.startsWith(OPEN_THINKING) ? IDLE_THOUGHT : '')
    const text = answerText(profile, { ...plan, think }, form)
    const end = terminatorOf(profile, plan, form)
    const ids = Int32Array.from([...(await profile.vocabulary.encode(text)), end])
    if (open.every((id, at) => ids[at] === id)) whole.push({ ids, logit: plan.logit, name: plan.name })
    else if (said === '' || text.startsWith(said)) {
      const rest = await profile.vocabulary.encode(text.slice(said.length))
      continued.push({ ids: Int32Array.from([...rest, end]), logit: plan.logit, name: plan.name })
    }
  }
  if (whole.length > 0) return { candidates: whole, depth: open.length }
  if (continued.length > 0) return { candidates: continued, depth: 0 }
  return { candidates: await unknownContinuation(said, plans, profile, form), depth: 0 }
}

/** A prefix that no candidate has: thinking is closed, the answer follows; text is simply carried on. */
async function unknownContinuation(
  said: string,
  plans: readonly WeightedPlan[],
  profile: Profile,
  form: AnswerForm,
): Promise<AnswerCandidate[]> {
  const thinking = said.lastIndexOf('<think>') > said.lastIndexOf('</think>')
  const bridge = thinking ? '\n</think>\n\n' : ' '
  return Promise.all(
    plans.map(async (plan) => {
      const text = bridge + answerText(profile, { ...plan, think: '' }, form)
      const ids = Int32Array.from([...(await profile.vocabulary.encode(text)), terminatorOf(profile, plan, form)])
      return { ids, logit: plan.logit, name: plan.name }
    }),
  )
}
