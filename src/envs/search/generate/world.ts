import { dice, type Dice } from '../../dice.ts'
import { Names } from './names.ts'

/** Everything of the made-up world. Each thing has one passage, in which its own facts stand. */
export interface World {
  readonly rivers: readonly River[]
  readonly towns: readonly Town[]
  readonly people: readonly Person[]
  readonly houses: readonly House[]
  readonly works: readonly Work[]
  readonly journeys: readonly Journey[]
  readonly plants: readonly Plant[]
}

export interface River {
  readonly kind: 'river'
  readonly name: string
  readonly region: string
  readonly lengthKm: number
}

export interface Town {
  readonly kind: 'town'
  readonly name: string
  readonly region: string
  readonly river: River
  readonly chartered: number
  readonly product: string
}

export interface Person {
  readonly kind: 'person'
  readonly name: string
  readonly trade: string
  readonly born: number
  readonly died: number
  readonly birthplace: Town
  /** An older person of the same trade. */
  readonly teacher: Person | null
}

/** An institution. */
export interface House {
  readonly kind: 'house'
  readonly name: string
  readonly type: string
  readonly town: Town
  readonly founded: number
  readonly founder: Person
}

export interface Work {
  readonly kind: 'work'
  readonly name: string
  readonly type: string
  readonly maker: Person
  readonly year: number
  readonly keptAt: House
}

export interface Journey {
  readonly kind: 'journey'
  readonly name: string
  readonly leader: Person
  readonly year: number
  readonly source: River
}

export interface Plant {
  readonly kind: 'plant'
  readonly name: string
  readonly honours: Person
  readonly describedBy: Person
  readonly year: number
  readonly river: River
}

export type Thing = World[keyof World][number]

/** Trades, and what each leaves behind. */
export const workOf: Readonly<Record<string, string>> = {
  composer: 'opera',
  novelist: 'novel',
  painter: 'altarpiece',
  engineer: 'tide clock',
  astronomer: 'star atlas',
  botanist: 'herbal',
}
const trades = Object.keys(workOf)
const houseTypes = ['observatory', 'library', 'museum', 'foundry', 'academy', 'theatre', 'printing house', 'hospital']
const products = (
  'blue glass, smoked eel, church bells, rye whisky, oak barrels, woollen caps, sea salt, tin toys, honey cakes, ' +
  'fishing nets, brass buttons, quill pens, walnut oil, clay pipes, saddles, lace collars, pear cider, slate roofs'
).split(', ')

/** Makes a world of about `passages` things. */
export function makeWorld(seed: number, passages: number): World {
  const chance = dice(seed)
  const names = new Names(chance)
  const share = (part: number) => Math.max(4, Math.round(passages * part))
  const regions = many(Math.max(6, Math.round(passages / 250)), () => names.region())
  const rivers = many(share(0.03), (): River => ({
    kind: 'river',
    name: names.river(),
    region: chance.pick(regions),
    lengthKm: chance.between(40, 900),
  }))
  const towns = many(share(0.12), () => town(names, chance, rivers))
  const people: Person[] = []
  for (let count = share(0.35); count > 0; count -= 1) people.push(person(names, chance, towns, people))
  const houses = many(share(0.16), () => house(names, chance, towns, people))
  const works = many(share(0.2), (): Work => {
    const maker = chance.pick(people)
    const type = workOf[maker.trade] ?? 'work'
    return {
      kind: 'work',
      name: `The ${chance.pick(adjectives)} ${names.word()}`,
      type,
      maker,
      year: chance.between(maker.born + 20, maker.died),
      keptAt: chance.pick(houses),
    }
  })
  const journeys = many(share(0.07), (): Journey => {
    const leader = chance.pick(people)
    const year = chance.between(leader.born + 22, leader.died)
    return { kind: 'journey', name: `${names.word()} expedition`, leader, year, source: chance.pick(rivers) }
  })
  const plants = many(share(0.07), (): Plant => {
    const describedBy = chance.pick(people)
    return {
      kind: 'plant',
      name: `${names.word()} ${chance.pick(['orchid', 'gentian', 'saxifrage', 'willow', 'sedge', 'bellflower'])}`,
      honours: chance.pick(people.filter((other) => other !== describedBy)),
      describedBy,
      year: chance.between(describedBy.born + 20, describedBy.died),
      river: chance.pick(rivers),
    }
  })
  return { rivers, towns, people, houses, works, journeys, plants }
}

const adjectives = 'Silent Amber Hollow Distant Winter Gilded Broken Seventh Patient Crooked Salt Evening'.split(' ')

function town(names: Names, chance: Dice, rivers: readonly River[]): Town {
  const river = chance.pick(rivers)
  return {
    kind: 'town',
    name: names.place(),
    region: river.region,
    river,
    chartered: chance.between(1100, 1650),
    product: chance.pick(products),
  }
}

function person(names: Names, chance: Dice, towns: readonly Town[], before: readonly Person[]): Person {
  const trade = chance.pick(trades)
  const born = chance.between(1690, 1880)
  const teachers = before.filter((other) => other.trade === trade && born - other.born >= 18 && born - other.born <= 60)
  return {
    kind: 'person',
    name: names.person(),
    trade,
    born,
    died: born + chance.between(38, 88),
    birthplace: chance.pick(towns),
    teacher: teachers.length === 0 ? null : chance.pick(teachers),
  }
}

function house(names: Names, chance: Dice, towns: readonly Town[], people: readonly Person[]): House {
  const founder = chance.pick(people)
  const type = chance.pick(houseTypes)
  return {
    kind: 'house',
    name: names.unique(() => `${names.word()} ${type.replace(/\b[a-z]/g, (first) => first.toUpperCase())}`),
    type,
    town: chance.pick(towns),
    founded: chance.between(founder.born + 24, founder.died),
    founder,
  }
}

function many<T>(count: number, make: () => T): readonly T[] {
  return Array.from({ length: count }, make)
}
