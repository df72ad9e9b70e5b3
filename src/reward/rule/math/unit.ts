import { unwrapped } from './text.ts'

/** An answer's number and what it is counted in; `unit` is empty for none. */
export interface Counted {
  readonly body: string
  readonly unit: string
  /** False for a word in `\text{…}` that is no unit we know: it may belong to a number only. */
  readonly known: boolean
}

/** Units by what they are called, each with its sign. */
const names: Readonly<Record<string, string>> = Object.fromEntries(
  [
    'cm centimeter centimeters centimetre centimetres',
    'mm millimeter millimeters millimetre millimetres',
    'km kilometer kilometers kilometre kilometres',
    'm meter meters metre metres',
    'in inch inches',
    'ft foot feet',
    'yd yard yards',
    'mi mile miles',
    'kg kilogram kilograms',
    'mg milligram milligrams',
    'g gram grams',
    'lb lbs pound pounds',
    'oz ounce ounces',
    'ml milliliter milliliters',
    'l liter liters litre litres',
    's sec second seconds',
    'min minute minutes',
    'h hr hrs hour hours',
    'day days',
    'week weeks',
    'month months',
    'year years',
    'degree degrees deg',
    'rad radian radians',
    'percent',
    'dollar dollars',
    'euro euros',
    'cent cents',
    'unit units',
    'mph',
    'kmh kph',
  ].flatMap((line) => {
    const all = line.split(' ')
    return all.map((name) => [name, all[0] ?? name])
  }),
)
/** Signs that are letters as well: units only where they are written as text. */
const ambiguous = new Set(['m', 'g', 'l', 's', 'h', 'in'])
/** Words behind a number that make it another one, and so count nothing. */
const changes =
  /\b(?:squared|cubed|factorial|more|less|fewer|halves|half|thirds?|quarters?|fourths?|fifths?|sixths?|sevenths?|eighths?|ninths?|tenths?|hundredths?|thousandths?|times|fold|plus|minus|over|under|above|below|mod|modulo|or|and|of|to|from|than|not|about|tens|zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|point|divided|multiplied|by|choose|root|raised|power|doubled?|tripled?|halved|negative|maybe|perhaps|else|otherwise|except|without|if|but)\b/i
const currencies: Readonly<Record<string, string>> = {
  '\\$': 'dollar',
  $: 'dollar',
  '€': 'euro',
  '£': 'pound sterling',
  '¥': 'yen',
  '₹': 'rupee',
}

/** Takes a unit off: a currency in front, a percent sign, degrees, a base, or words behind a number. */
export function counted(text: string): Counted {
  const money = /^(-?)\s*(?:US)?(\\\$|[€£¥₹])\s*(-?)\s*(?=[\d.\\])(.*)$/s.exec(text)
  if (money !== null) {
    return { body: `${money[1]}${money[3]}${money[4]}`, unit: currencies[money[2] ?? ''] ?? '', known: true }
  }
  const behind = /^(.*\d)\s*(\\\$|[€£¥₹])$/s.exec(text)
  if (behind !== null) return { body: behind[1] ?? '', unit: currencies[behind[2] ?? ''] ?? '', known: true }
  const percent = /^(.*[\d})])\s*\\?%$/s.exec(text)
  if (percent !== null) return { body: percent[1] ?? '', unit: 'percent', known: true }
  const degrees = /^(.*[\d})])\s*\^\s*\{?\s*\\circ\s*\}?\s*(C|F|\\(?:text|mathrm)\s*\{\s*[CF]\s*\})?$/s.exec(text)
  if (degrees !== null && !/\\(?:sin|cos|tan|cot|sec|csc)/.test(text)) {
    const scale = unwrapped(degrees[2] ?? '').trim()
    return { body: degrees[1] ?? '', unit: scale === '' ? 'degree' : `degree ${scale}`, known: true }
  }
  const based = /^(\d+)_\s*\{?\s*\(?\s*(\d{1,2})\s*\)?\s*\}?$/.exec(text)
  if (based !== null) return { body: based[1] ?? '', unit: `base ${based[2]}`, known: true }
  return inText(text) ?? inWords(text) ?? { body: text, unit: '', known: true }
}

/**
 * Whether two units are one, or one of them was left off or says nothing. A base may be left off where the gold has one;
 * where it has none, digits to another base than ten are another number.
 */
export function sameUnit(gold: string, given: string): boolean {
  const [wanted, told] = [saying(gold), saying(given)]
  if (wanted === '' && told.startsWith('base ')) return told === 'base 10'
  return wanted === '' || told === '' || wanted === told
}

function inText(text: string): Counted | null {
  const found =
    /^(.*\S)\s*\\(?:text|mbox|textrm|mathrm)\s*\{\s*([^{}]*?)\s*\}\s*(?:\^\s*\{?\s*(\d)\s*\}?)?$/s.exec(text) ?? null
  const word = found?.[2] ?? ''
  if (found === null || !/^\\?[A-Za-z%$]/.test(word) || changes.test(word)) return null
  // Of a number among the words nobody knows what it does to the one before them.
  if (/\d/.test(word.replace(/(?<=[A-Za-z])\^?\d$/, ''))) return null
  const { unit, known } = unitOf(word, found[3])
  return { body: found[1] ?? '', unit, known }
}

function inWords(text: string): Counted | null {
  const found = /^(.*[\d})])\s*([A-Za-z][A-Za-z/. ]*?)\s*(?:\^\s*\{?\s*(\d)\s*\}?)?$/s.exec(text)
  const word = found?.[2] ?? ''
  // The name of a command, or a letter of the formula.
  if (found === null || (found[1] ?? '').endsWith('\\')) return null
  const { unit, known } = unitOf(word, found[3])
  if (changes.test(word)) return null
  const isLetter = /^[A-Za-z]$/.test(word) || ambiguous.has(word)
  if (isLetter || (!known && !/^[a-z]{3,}(?: [a-z]{2,})*$/.test(word)) || !/\d/.test(found[1] ?? '')) return null
  if (!known && !/\s[A-Za-z]/.test(text)) return null
  return { body: found[1] ?? '', unit, known }
}

function unitOf(word: string, power: string | undefined): { readonly unit: string; readonly known: boolean } {
  const words = word
    .toLowerCase()
    .replaceAll(/[.\s]+/g, ' ')
    .trim()
    .split(' ')
  const area = ['square', 'sq', 'cubic', 'cu'].indexOf(words[0] ?? '')
  const rest = area < 0 ? words : words.slice(1)
  const raised = power ?? (area < 0 ? '' : area < 2 ? '2' : '3')
  const parts = rest
    .join(' ')
    .replaceAll(/ ?\/ ?| per /g, '/')
    .split('/')
  const signs = parts.map((part) => names[part] ?? null)
  if (signs.every((one) => one !== null)) {
    const unit = signs
      .join('/')
      .replace(/^mi\/h$/, 'mph')
      .replace(/^km\/h$/, 'kmh')
    return { unit: raised === '' ? unit : `${unit}^${raised}`, known: true }
  }
  // Short ones are signs, of which the case counts: Gb and GB.
  if (/^[A-Za-z]{1,3}$/.test(word)) return { unit: `${word}${raised}`, known: false }
  return { unit: `${rest.map((one) => one.replace(/(?<=\w{2})s$/, '')).join(' ')}${raised}`, known: false }
}

/** "Square units" say nothing. */
function saying(unit: string): string {
  return /^unit(?:\^\d)?$/.test(unit) ? '' : unit
}
