import type { Dice } from '../../dice.ts'

const starts = 'B Br C Cr D Dr F G Gr H J K Kr L M N P R S Sk St T Th Tr V W Z'.split(' ')
const middles = 'a e i o u ae ei ia oa'.split(' ')
const codas = 'l ld ll lm m n nd nn r rd rn s sk t th v x'.split(' ')
const placeEnds = 'holm wick ford mar stad by dale haven mere minster gate combe'.split(' ')
const givenNames = (
  'Ada Alva Anselm Basil Beatrix Cato Clemens Cora Dario Delia Edda Elian Elke Emeric Fenna Florian Greta Gustav Hanno ' +
  'Hedda Ilse Ivo Jorun Jutta Kasimir Klara Lasse Leonie Linus Lotte Magnus Marit Milan Nadia Nils Odile Orson Otto ' +
  'Petra Quirin Ragna Remy Rosalind Rufus Selma Sigrid Tamsin Thea Tilda Ulrich Ursel Viggo Vera Wanda Willem Yara Zeno'
).split(' ')

/** Gives names that no other thing of the same world has. */
export class Names {
  readonly #dice: Dice
  readonly #taken = new Set<string>()

  constructor(dice: Dice) {
    this.#dice = dice
  }

  place(): string {
    return this.#fresh(() => this.#syllables(1) + this.#dice.pick(placeEnds))
  }

  river(): string {
    return this.#fresh(() => `${this.#syllables(2)}${this.#dice.pick(['a', 'e', 'is', 'or'])}`)
  }

  region(): string {
    return this.#fresh(() => `${this.#syllables(2)}${this.#dice.pick(['ia', 'and', 'mark'])}`)
  }

  person(): string {
    return this.#fresh(() => `${this.#dice.pick(givenNames)} ${this.#syllables(2)}`)
  }

  word(): string {
    return this.#fresh(() => this.#syllables(2))
  }

  /** Holds a composed name to the same rule. */
  unique(make: () => string): string {
    return this.#fresh(make)
  }

  #fresh(make: () => string): string {
    for (;;) {
      const name = make()
      if (this.#taken.has(name)) continue
      this.#taken.add(name)
      return name
    }
  }

  #syllables(count: number): string {
    const { pick } = this.#dice
    const text = Array.from({ length: count }, () => pick(starts).toLowerCase() + pick(middles) + pick(codas)).join('')
    return text.slice(0, 1).toUpperCase() + text.slice(1)
  }
}
