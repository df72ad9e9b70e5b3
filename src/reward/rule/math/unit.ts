import { tableOf } from './names.ts'

/** Signs of units, of which the case counts, each with its names; `~` stands for the prefixes of the SI. */
const table = `
~m ~meter ~meters ~metre ~metres|~g ~gram ~grams|~s ~second ~seconds sec secs|~L ~l ~liter ~liters ~litre ~litres|~J ~joule ~joules
~W ~watt ~watts|~N ~newton ~newtons|~Pa ~pascal ~pascals|~V ~volt ~volts|~A ~ampere ~amperes ~amp ~amps|~Hz ~hertz|~mol ~mole ~moles
~eV ~electronvolt ~electronvolts|~bps|~Bps|~B ~byte ~bytes|~b ~bit ~bits|~cal ~calorie ~calories|~Wh|~C ~coulomb ~coulombs|~F ~farad ~farads
~Ω ~ohm ~ohms|~T ~tesla ~teslas|~Wb ~weber ~webers|K kelvin kelvins|atm|bar|min mins minute minutes|h hr hrs hour hours|day days
week weeks|month months|year years yr yrs|in inch inches|ft foot feet|yd yard yards|mi mile miles|lb lbs pound pounds|oz ounce ounces
ton tons|gal gallon gallons|acre acres|°F|°C|degree degrees deg|rad radian radians|percent|dollar dollars|euro euros|cent cents|yen|rupee rupees
unit units|person persons people|student students|man men|woman women|child children|boy boys|girl girls|way ways|apple apples|ball balls
coin coins|book books|card cards|ticket tickets|marble marbles|cookie cookies|item items|piece pieces|solution solutions|value values
point points|page pages|car cars|dog dogs|cat cats|chair chairs|egg eggs|game games|number numbers|triangle triangles|root roots`
const prefixes = tableOf('k:kilo M:mega G:giga T:tera c:centi d:deci m:milli μ:micro n:nano p:pico')
const signs: ReadonlyMap<string, string> = new Map(
  table
    .split(/[|\n]/)
    .filter((line) => line !== '')
    .flatMap((line) => {
      const [sign = '', ...names] = line.split(' ')
      if (!sign.startsWith('~')) return [sign, ...names].map((name) => [name, sign] as const)
      return [['', ''] as const, ...Object.entries(prefixes)].flatMap(([short, long]) => {
        const full = `${short}${sign.slice(1)}`
        // Other signs of one letter or two: `~l` beside `~L`. What has no prefix sign is a name.
        const written = names.map((name) => (name.length < 3 ? short : long) + name.replace('~', ''))
        return [full, ...written.filter((_, i) => short === '' || names[i]?.startsWith('~'))].map(
          (name) => [name, full] as const,
        )
      })
    }),
)

const currencies = tableOf('\\$:dollar $:dollar €:euro £:pound ¥:yen ₹:rupee')

/** What a number is counted in; `unit` is empty for none, and for "square units", which say nothing. */
export interface Counted {
  readonly body: string
  readonly unit: string
}

/**
 * Takes a unit off that the table knows whole: a currency, a percent sign, degrees, words behind a number. `letters`: single
 * letters behind a number may be units too, which are else factors.
 */
export function counted(text: string, letters: boolean): Counted {
  const money = /^(-?)\s*(?:US)?(\\\$|[€£¥₹])\s*(-?)\s*(?=[\d.\\])(.*)$/s.exec(text)
  if (money !== null) return { body: `${money[1]}${money[3]}${money[4]}`, unit: currencies[money[2] ?? ''] ?? '' }
  const behind = /^(.*\d)\s*(\\\$|[€£¥₹])$/s.exec(text)
  if (behind !== null) return { body: behind[1] ?? '', unit: currencies[behind[2] ?? ''] ?? '' }
  const percent = /^(.*[\d})])\s*\\?%$/s.exec(text)
  if (percent !== null) return { body: percent[1] ?? '', unit: 'percent' }
  const degrees = /^(.*[\d})])\s*\^\s*\{?\s*\\circ\s*\}?\s*(C|F|\\(?:text|mathrm)\s*\{\s*[CF]\s*\})?$/s.exec(text)
  if (degrees !== null && !/\\(?:sin|cos|tan|cot|sec|csc)/.test(text)) {
    const scale = /[CF](?=\s*\}?$)/.exec(degrees[2] ?? '')?.[0]
    return { body: degrees[1] ?? '', unit: scale === undefined ? 'degree' : `°${scale}` }
  }
  return inText(text) ?? inWords(text, letters) ?? { body: text, unit: '' }
}

function inText(text: string): Counted | null {
  const found = /^(.*?[^\s\\])\s*(\\(?:text|mbox|textrm|mathrm|operatorname)\s*\{\s*[A-Za-zμΩ°%\\].*)$/s.exec(text)
  if (found === null || /\\(?:text|mbox|textrm|mathrm|frac|sqrt)\s*\{?$/.test(found[1] ?? '')) return null
  const unit = unitOf((found[2] ?? '').replaceAll(/\\(?:text|mbox|textrm|mathrm|operatorname)\s*\{([^{}]*)\}/g, '$1'))
  return unit === null ? null : { body: found[1] ?? '', unit }
}

function inWords(text: string, letters: boolean): Counted | null {
  const found = /^(.*[\d})])(\s*)([A-Za-zμΩ°][\w/^{}. ·-]*)$/s.exec(text)
  const tail = found?.[3] ?? ''
  if (found === null || (found[1] ?? '').endsWith('\\')) return null
  if (!letters && (found[2] === '' || !/[A-Za-z]{2}/.test(tail))) return null
  const unit = unitOf(tail)
  return unit === null ? null : { body: found[1] ?? '', unit }
}

/** A unit in one way of writing: `m s^-2` of `\text{ m/s}^2` and of "meters per second squared". Null for what is unknown. */
function unitOf(text: string): string | null {
  const words = text
    .replaceAll(/\\(?:cdot|times)(?![A-Za-z])|·|~/g, ' ')
    .replaceAll(/\\mu\s*/g, 'μ')
    .replaceAll(/\^\s*\{?\s*(-?\d)\s*\}?/g, '^$1')
    .replace(/\.$/, '')
    .replace(/^percent$|^\\?%$/, 'percent')
    .replace(/\byears? old$/, 'years')
    .replaceAll(/\b(?:mph|miles an hour)\b/g, 'mi/h')
    .replaceAll(/\b(?:kmh|kph)\b/g, 'km/h')
    .replaceAll(/\b(?:square|sq\.?) (\S+)/g, '$1^2')
    .replaceAll(/\b(?:cubic|cu\.?) (\S+)/g, '$1^3')
    .replaceAll(/(\S+) (squared|cubed)/g, (_, name, power) => `${name}^${power === 'squared' ? 2 : 3}`)
    .replaceAll(/\s*\/\s*|\s+per\s+/g, ' / ')
    .trim()
    .split(/\s+/)
  const powers = new Map<string, number>()
  let direction = 1
  for (const word of words) {
    if (word === '/') {
      if (direction < 0) return null
      direction = -1
      continue
    }
    const [name = '', power = '1'] = word.split('^')
    const sign = signs.get(name)
    if (sign === undefined) return null
    powers.set(sign, (powers.get(sign) ?? 0) + direction * Number(power))
  }
  const all = [...powers].filter(([sign]) => sign !== 'unit').toSorted(([a], [b]) => (a < b ? -1 : 1))
  return all.length === 0
    ? ''
    : all
        .map(([sign, power]) => `${sign}^${power}`)
        .join(' ')
        .replaceAll('^1', '')
}
