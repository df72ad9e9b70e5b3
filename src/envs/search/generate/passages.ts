import type { Dice } from '../../dice.ts'
import type { House, Journey, Person, Plant, River, Thing, Town, Work, World } from './world.ts'

/** The passage of a thing: its own facts in plain sentences, and what stands beside them without answering anything. */
export function passageOf(thing: Thing, world: World, chance: Dice): string {
  const facts = factsOf(thing, chance)
  const asides = [chance.pick(weather), chance.pick(remarks), neighbour(thing, world, chance)]
  const [first = '', ...rest] = facts
  return [first, ...chance.shuffled([...rest, ...asides])].join(' ')
}

function factsOf(thing: Thing, chance: Dice): readonly string[] {
  switch (thing.kind) {
    case 'river':
      return river(thing)
    case 'town':
      return town(thing, chance)
    case 'person':
      return person(thing, chance)
    case 'house':
      return house(thing, chance)
    case 'work':
      return work(thing, chance)
    case 'journey':
      return journey(thing)
    case 'plant':
      return plant(thing)
  }
}

function river({ name, region, lengthKm }: River): readonly string[] {
  return [
    `The ${name} is a river of ${region}.`,
    `From its springs to its mouth it measures ${lengthKm} kilometres.`,
    `Barges use the ${name} from April until the first frost.`,
  ]
}

function town({ name, region, river: stream, chartered, product }: Town, { pick }: Dice): readonly string[] {
  return [
    pick([`${name} is a town in ${region}.`, `${name} is a market town of the region of ${region}.`]),
    pick([
      `The river ${stream.name} flows through ${name}.`,
      `${name} lies on both banks of the river ${stream.name}.`,
    ]),
    `It received its town charter in ${chartered}.`,
    pick([`${name} is known for its ${product}.`, `The town made its name with ${product}.`]),
  ]
}

function person({ name, trade, born, died, birthplace, teacher }: Person, { pick }: Dice): readonly string[] {
  const article = /^[aeiou]/.test(trade) ? 'an' : 'a'
  return [
    `${name} (${born}–${died}) was ${article} ${trade}.`,
    pick([
      `${name} was born in ${birthplace.name} in ${born}.`,
      `The birthplace of ${name} is ${birthplace.name}, the year ${born}.`,
    ]),
    teacher === null
      ? `No teacher of ${name} is known.`
      : pick([`${name} was a pupil of ${teacher.name}.`, `${name} learned the trade from ${teacher.name}.`]),
    `The last letters date from ${died}.`,
  ]
}

function house({ name, type, town: place, founded, founder }: House, { pick }: Dice): readonly string[] {
  return [
    `The ${name} is a ${type} in ${place.name}.`.replace(/ a ([aeiou])/, ' an $1'),
    pick([`It was founded in ${founded} by ${founder.name}.`, `${founder.name} founded the ${name} in ${founded}.`]),
    `Its doors are open on ${pick(['Tuesdays', 'feast days', 'most mornings', 'Sundays after noon'])}.`,
  ]
}

function work({ name, type, maker, year, keptAt }: Work, { pick }: Dice): readonly string[] {
  const article = /^[aeiou]/.test(type) ? 'an' : 'a'
  return [
    `${name} is ${article} ${type} by the ${maker.trade} ${maker.name}.`,
    `It was finished in ${year}.`,
    pick([`The original is kept at the ${keptAt.name}.`, `Since a fire it has been kept at the ${keptAt.name}.`]),
  ]
}

function journey({ name, leader, year, source }: Journey): readonly string[] {
  return [
    `The ${name} set out in ${year} under ${leader.name}.`,
    `Its aim was to find the springs of the river ${source.name}.`,
    `Of the mules of the ${name}, only two came back.`,
  ]
}

function plant({ name, honours, describedBy, year, river: stream }: Plant): readonly string[] {
  return [
    `The ${name} is a plant of wet meadows.`,
    `It was first described in ${year} by ${describedBy.name} and is named in honour of ${honours.name}.`,
    `It grows along the river ${stream.name}.`,
  ]
}

/** A sentence that names another thing, so that a name alone does not find its passage. */
function neighbour(thing: Thing, world: World, { pick }: Dice): string {
  switch (thing.kind) {
    case 'river':
    case 'journey':
      return `A report about it was printed by the ${pick(world.houses).name}.`
    case 'town':
      return `A street of ${thing.name} is called after ${pick(world.people).name}.`
    case 'person':
      return `A portrait of ${thing.name} hangs in the ${pick(world.houses).name}.`
    case 'house':
      return `A copy of ${pick(world.works).name} was once shown there.`
    case 'work':
      return `A critic from ${pick(world.towns).name} called it too long.`
    case 'plant':
      return `In ${pick(world.towns).name} its leaves are boiled against coughs.`
  }
}

const weather = [
  'The winters of those years were long and the roads often closed.',
  'Travellers of the time write of mud, wind and good bread.',
  'Much of what is known comes from parish books.',
  'The older sources do not agree about the details.',
  'A flood destroyed part of the records.',
  'Little changed there for three generations.',
]
const remarks = [
  'Guides still tell the story, each in a different way.',
  'A small society keeps the memory alive.',
  'The matter was last studied by a commission of five.',
  'Children learn a song about it in school.',
  'There is a bench with a brass plate.',
  'An annual fair recalls it, with music and a tombola.',
]
