import type { Dice } from '../../dice.ts'
import type { Thing, World } from './world.ts'

/** A question whose answer the world knows. */
export interface GeneratedQuestion {
  readonly kind: string
  readonly question: string
  readonly golden_answers: readonly string[]
  /** What has to be read, in the order of reading. */
  readonly evidence: readonly Thing[]
  /** What a competent agent searches for, one per step. */
  readonly queries: readonly string[]
  /** What somebody answers who stops half-way. */
  readonly weak_answer: string
}

type Maker = (world: World, chance: Dice) => GeneratedQuestion

/** One maker per kind: one to three passages to be read, bridges and comparisons. */
const makers = {
  foundingYear: ({ houses }, { pick }) => {
    const house = pick(houses)
    return {
      kind: 'one-hop',
      question: `In which year was the ${house.name} founded?`,
      golden_answers: [String(house.founded)],
      evidence: [house],
      queries: [`${house.name} founded`],
      weak_answer: String(house.founder.born),
    }
  },
  birthRiver: ({ people }, { pick }) => {
    const person = pick(people)
    const { birthplace } = person
    return {
      kind: 'bridge-2',
      question: `Which river flows through the birthplace of ${person.name}?`,
      golden_answers: [birthplace.river.name, `the river ${birthplace.river.name}`],
      evidence: [person, birthplace],
      queries: [`${person.name} birthplace born`, `${birthplace.name} town river`],
      weak_answer: birthplace.name,
    }
  },
  makersTeacher: ({ works }, { pick }) => {
    const work = pick(works.filter(({ maker }) => maker.teacher !== null))
    const teacher = work.maker.teacher?.name ?? ''
    return {
      kind: 'bridge-2',
      question: `Of whom was the maker of the ${work.type} "${work.name}" a pupil?`,
      golden_answers: [teacher],
      evidence: [work, work.maker],
      queries: [`${work.name} ${work.type}`, `${work.maker.name} ${work.maker.trade} pupil learned`],
      weak_answer: work.maker.name,
    }
  },
  foundersRegion: ({ houses }, { pick }) => {
    const house = pick(houses)
    const { founder } = house
    return {
      kind: 'bridge-3',
      question: `In which region was the founder of the ${house.name} born?`,
      golden_answers: [founder.birthplace.region],
      evidence: [house, founder, founder.birthplace],
      queries: [`${house.name} founded by`, `${founder.name} born`, `${founder.birthplace.name} town region`],
      weak_answer: founder.birthplace.name,
    }
  },
  olderHouse: ({ houses }, { pick }) => {
    const first = pick(houses)
    const second = pick(houses.filter((other) => other.founded !== first.founded))
    const [older, younger] = first.founded < second.founded ? [first, second] : [second, first]
    return {
      kind: 'comparison',
      question: `Which was founded earlier, the ${first.name} or the ${second.name}?`,
      golden_answers: [older.name],
      evidence: [first, second],
      queries: [`${first.name} founded`, `${second.name} founded`],
      weak_answer: younger.name,
    }
  },
  leadersProduct: ({ journeys }, { pick }) => {
    const journey = pick(journeys)
    const { birthplace } = journey.leader
    return {
      kind: 'bridge-3',
      question: `For which product is the town known in which the leader of the ${journey.name} was born?`,
      golden_answers: [birthplace.product],
      evidence: [journey, journey.leader, birthplace],
      queries: [journey.name, `${journey.leader.name} birthplace born`, `${birthplace.name} town known for`],
      weak_answer: birthplace.name,
    }
  },
  honouredYear: ({ plants }, { pick }) => {
    const plant = pick(plants)
    return {
      kind: 'bridge-2',
      question: `In which year was the person born in whose honour the ${plant.name} is named?`,
      golden_answers: [String(plant.honours.born)],
      evidence: [plant, plant.honours],
      queries: [`${plant.name} named in honour of`, `${plant.honours.name} born`],
      weak_answer: String(plant.year),
    }
  },
} satisfies Readonly<Record<string, Maker>>

/** Makers by what a question asks: to read one passage, two, or three. */
const byLevel: readonly (readonly Maker[])[] = [
  [makers.foundingYear],
  [makers.birthRiver, makers.makersTeacher, makers.honouredYear, makers.olderHouse],
  [makers.foundersRegion, makers.leadersProduct],
]

/** Levels of {@link questionsOf}. */
export const questionLevels = byLevel.length

/** `count` different questions, the kinds in turn: those of a level, from 1, or all. */
export function questionsOf(
  world: World,
  chance: Dice,
  count: number,
  level: number | null = null,
): readonly GeneratedQuestion[] {
  const turns: readonly Maker[] = level === null ? Object.values(makers) : (byLevel[level - 1] ?? [])
  const made = new Map<string, GeneratedQuestion>()
  for (let turn = 0; made.size < count; turn += 1) {
    const make = turns[made.size % turns.length]
    const question = make?.(world, chance)
    // A world this large has more than enough questions; a bound keeps a tiny one from an endless search.
    if (turn > count * 50) throw new RangeError(`This world has no ${count} different questions.`)
    if (question !== undefined) made.set(question.question, question)
  }
  return [...made.values()]
}
