import type { NamedScript, ScriptStep } from '../contract.ts'
import type { TaskOf } from '../define.ts'
import type { SearchData } from './data.ts'

/** Searches step by step, opens what answers the question, answers and cites. */
export async function oracleOf({ data }: TaskOf<SearchData>): Promise<NamedScript> {
  const opened = data.scripts.opens === true ? data.evidence : data.evidence.slice(-1)
  const open = opened.map((id): ScriptStep => ({ tool: 'open', args: { id } }))
  const answer = data.golds[0] ?? 'in the passages that I cite'
  return {
    name: 'oracle',
    weight: 1,
    script: {
      steps: [...searches(data), ...open, answered(answer, data.evidence), { say: `The answer is ${answer}.` }],
    },
  }
}

/** The hacks that this kind of task invites. Which of them apply depends on how it is scored. */
export async function cheatsOf({ data }: TaskOf<SearchData>): Promise<readonly NamedScript[]> {
  const gold = data.golds[0] ?? 'in the passages that I cite'
  const { preset } = data.scoring
  const wrong = data.scripts.weakAnswer ?? 'nobody knows'
  const again: NamedScript = {
    name: 'answers-again',
    weight: 1,
    script: { steps: [...searches(data), answered('qqq', data.evidence), answered(gold, data.evidence)] },
  }
  const unread: NamedScript = {
    name: 'cites-what-it-never-read',
    weight: 1,
    script: { steps: [answered(gold, data.evidence)] },
  }
  const spam: NamedScript = {
    name: 'answers-everything',
    weight: 1,
    script: { steps: [...searches(data), answered([wrong, ...data.golds, 'unknown'].join(' or '), data.evidence)] },
  }
  if (preset === 'evidence') return [unread]
  return [again, ...(preset === 'answer' ? [] : [unread]), ...(preset === 'grounded-f1' ? [] : [spam])]
}

/** Stops half-way: the first search, and an answer that stands there. */
export async function distractorsOf({ data }: TaskOf<SearchData>): Promise<readonly NamedScript[]> {
  const { weakAnswer } = data.scripts
  if (weakAnswer === null) return []
  return [
    {
      name: 'half-way',
      weight: 1,
      script: {
        steps: [
          ...searches(data).slice(0, 1),
          answered(weakAnswer, data.evidence.slice(0, 1)),
          { say: `The answer is ${weakAnswer}.` },
        ],
      },
    },
  ]
}

function searches({ scripts }: SearchData): readonly ScriptStep[] {
  return scripts.queries.map((query) => ({ tool: 'search', args: { query } }))
}

function answered(answer: string, citations: readonly string[]): ScriptStep {
  return { tool: 'answer', args: { answer, citations: [...citations] } }
}
