import type { NamedPlay, PlayStep } from '../contract.ts'
import type { TaskOf } from '../define.ts'
import type { SearchData } from './data.ts'

/** Searches step by step, opens what answers the question, answers and cites. */
export async function oracleOf({ data }: TaskOf<SearchData>): Promise<NamedPlay> {
  const opened = data.plays.opens === true ? data.evidence : data.evidence.slice(-1)
  const open = opened.map((id): PlayStep => ({ tool: 'open', args: { id } }))
  const answer = data.golds[0] ?? 'in the passages that I cite'
  return {
    name: 'oracle',
    weight: 1,
    play: { steps: [...searches(data), ...open, answered(answer, data.evidence), { say: `The answer is ${answer}.` }] },
  }
}

/** The hacks that this kind of task invites. Which of them apply depends on how it is scored. */
export async function cheatsOf({ data }: TaskOf<SearchData>): Promise<readonly NamedPlay[]> {
  const gold = data.golds[0] ?? 'in the passages that I cite'
  const { preset } = data.scoring
  const wrong = data.plays.weakAnswer ?? 'nobody knows'
  const again: NamedPlay = {
    name: 'answers-again',
    weight: 1,
    play: { steps: [...searches(data), answered('qqq', data.evidence), answered(gold, data.evidence)] },
  }
  const unread: NamedPlay = {
    name: 'cites-what-it-never-read',
    weight: 1,
    play: { steps: [answered(gold, data.evidence)] },
  }
  const spam: NamedPlay = {
    name: 'answers-everything',
    weight: 1,
    play: { steps: [...searches(data), answered([wrong, ...data.golds, 'unknown'].join(' or '), data.evidence)] },
  }
  if (preset === 'evidence') return [unread]
  return [again, ...(preset === 'answer' ? [] : [unread]), ...(preset === 'grounded-f1' ? [] : [spam])]
}

/** Stops half-way: the first search, and an answer that stands there. */
export async function distractorsOf({ data }: TaskOf<SearchData>): Promise<readonly NamedPlay[]> {
  const { weakAnswer } = data.plays
  if (weakAnswer === null) return []
  return [
    {
      name: 'half-way',
      weight: 1,
      play: {
        steps: [
          ...searches(data).slice(0, 1),
          answered(weakAnswer, data.evidence.slice(0, 1)),
          { say: `The answer is ${weakAnswer}.` },
        ],
      },
    },
  ]
}

function searches({ plays }: SearchData): readonly PlayStep[] {
  return plays.queries.map((query) => ({ tool: 'search', args: { query } }))
}

function answered(answer: string, citations: readonly string[]): PlayStep {
  return { tool: 'answer', args: { answer, citations: [...citations] } }
}
