import { PaddockError, type Task } from '../core/index.ts'
import type { Environment, NamedScript, ScriptStep } from '../envs/index.ts'
import type { Harness } from './harnesses/contract.ts'
import { askUserName, wayOf } from './user/index.ts'

/**
 * Posts the scripts of the environment to the scripted engine's control route, so that it can act as an agent on these
 * tasks: the oracle, and the honest attempts that fail, each with its weight. Throws `ENGINE_UNREACHABLE` and
 * `ENGINE_ERROR`.
 */
export async function postScripts(o: {
  readonly control: string
  readonly environment: Environment
  readonly tasks: readonly Task[]
  /** Where its model acts by the text of its answers, only scripts that do are posted. */
  readonly harness: Harness
  readonly signal: AbortSignal
}): Promise<void> {
  // An agent sees the instruction of the step that it is at.
  const asked = o.tasks.flatMap((task) => o.environment.steps(task)?.tasks ?? [task])
  const known = (await Promise.all(asked.map((task) => scriptsOf(o.environment, task, o.harness)))).flat()
  const scripts = o.harness.actsInText === true ? known.flatMap(inText) : known
  const url = `${o.control.replace(/\/$/, '')}/scripts`
  let response: Response
  try {
    response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ scripts }),
      signal: o.signal,
    })
  } catch (cause) {
    if (o.signal.aborted) throw o.signal.reason
    throw new PaddockError('ENGINE_UNREACHABLE', `The scripted engine's control route ${url} does not answer`, {
      cause,
    })
  }
  const said = await response.text()
  if (!response.ok)
    throw new PaddockError('ENGINE_ERROR', `The scripted engine refused the scripts: ${said.slice(0, 400)}`)
}

async function scriptsOf(environment: Environment, task: Task, harness: Harness) {
  const [oracle, distractors] = await Promise.all([
    environment.scripts.oracle(task),
    environment.scripts.distractors(task),
  ])
  const agents = environment.agents(task)
  if (agents !== null) {
    return agents.agents.map(({ name, prompt }) => ({
      instruction: prompt,
      candidates: [oracle, ...distractors].map((one) => {
        const { steps } = one.agents?.[name] ?? one.script
        return candidate({ ...one, script: { steps: agents.by === 'turns' ? spokenBy.turns(steps) : steps } })
      }),
    }))
  }
  const user = environment.user(task)
  const heard =
    user === null ? (steps: readonly ScriptStep[]): readonly PostedStep[] => steps : spokenBy[wayOf(user, harness)]
  return [
    {
      instruction: task.instruction,
      candidates: [oracle, ...distractors].map(({ name, weight, script }) =>
        candidate({ name, weight, script: { steps: heard(script.steps) } }),
      ),
    },
  ]
}

/** A step as the engine takes it: `answer` is the text that a whole turn is. */
type PostedStep = ScriptStep | { readonly answer: string }

/** What a script says to the user of its task: each time the end of a turn, or a call of the tool; the last words end its work. */
const spokenBy = {
  turns: (steps: readonly ScriptStep[]): readonly PostedStep[] =>
    steps.map((step) => ('say' in step ? { answer: step.say } : step)),
  tool: (steps: readonly ScriptStep[]): readonly PostedStep[] =>
    steps.map((step, at) =>
      'say' in step && at < steps.length - 1 ? { tool: askUserName, args: { message: step.say } } : step,
    ),
}

/** A script as answers of text, without candidates that use tools in another way; nothing when none is left. */
function inText({ instruction, candidates }: Awaited<ReturnType<typeof scriptsOf>>[number]) {
  const spoken = candidates.flatMap(({ steps, ...one }) => {
    const acts = steps.filter((step) => 'tool' in step || 'parallel' in step || 'shell' in step)
    const texts = acts.flatMap((step) => {
      const text = 'tool' in step && Object.keys(step.args).length === 1 ? step.args['text'] : undefined
      return typeof text === 'string' ? [{ answer: text }] : []
    })
    return texts.length === acts.length ? [{ ...one, steps: texts }] : []
  })
  return spoken.length === 0 ? [] : [{ instruction, candidates: spoken }]
}

// The engine takes logits of a softmax, the scripts carry relative weights.
function candidate({
  name,
  weight,
  script,
}: Pick<NamedScript, 'name' | 'weight'> & { readonly script: { readonly steps: readonly PostedStep[] } }) {
  return { name, weight: Math.log(weight), steps: script.steps }
}
