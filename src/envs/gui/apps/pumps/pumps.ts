import { gui } from '../../../../kits/environment.ts'

const { act, defineApp, field, form, hidden, html, page, steps, table } = gui

interface Pump {
  readonly name: string
  /** Of the file of limits; the page shows what it should be. */
  readonly limit: number
  readonly samples: readonly number[]
  reading: number | null
  stopped: boolean
}
interface Pumps {
  readonly pumps: Pump[]
}

const names = ['north', 'south', 'east', 'west', 'river', 'tower', 'canal', 'mill'] as const
const { click, type, look, done, computer, write, q } = steps

/** What the program prints for a pump: each sample counts as often as its line's number says. */
const readingOf = ({ samples }: Pump): number => samples.reduce((sum, sample, at) => sum + sample * (at + 1), 0) % 997

const program = `#!/bin/sh
# Usage: sh meter.sh PUMP. Prints the reading of a pump.
awk -F, -v pump="$1" '$1 == pump { line += 1; sum += $2 * line } END { print "reading of " pump ": " sum % 997 }' samples.csv
`

/** A pump station, used beside a terminal: a program gives the readings, and a file holds the limits. */
export const pumps = defineApp<Pumps>({
  name: 'pumps',
  apiVersion: 1,
  beside: 'terminal',
  start: (d) => ({
    pumps: d
      .shuffled(names)
      .slice(0, 5)
      .map((name) => ({
        name,
        limit: d.between(20, 90),
        samples: Array.from({ length: d.between(4, 9) }, () => d.between(10, 99)),
        reading: null,
        stopped: false,
      })),
  }),
  workspace: ({ pumps: all }) => ({
    'meter.sh': program,
    'samples.csv': all.flatMap(({ name, samples }) => samples.map((sample) => `${name},${sample}\n`)).join(''),
    'limits.conf': limitsFile(all),
  }),
  page: (path, query, state) => (path === '/' ? stationPage(state, query['pump'] ?? '') : null),
  act: (op, fields, { pumps: all }) => {
    const pump = all.find(({ name }) => name === fields['pump'])
    if (pump === undefined) return '!There is no such pump.'
    if (op === 'stop') {
      pump.stopped = true
      return '/'
    }
    const { reading = '' } = fields
    if (op !== 'reading' || !/^\d{1,5}$/.test(reading)) return '!A reading is a whole number.'
    pump.reading = Number(reading)
    return '/'
  },
  goals: {
    reading: (d, { pumps: all }) => {
      const pump = d.pick(all)
      const enter = (value: number) => [
        ...inTerminal(`sh meter.sh ${pump.name}`),
        click(`link ${q(pump.name)}`),
        type('textbox "Reading"', String(value)),
        click('button "Save"'),
        done(),
      ]
      return {
        instruction: `Run "sh meter.sh ${pump.name}" in the terminal, and save the number that it prints as the reading of the pump ${pump.name} in the browser. Change no file.`,
        change: (s) => {
          for (const one of s.pumps) if (one.name === pump.name) one.reading = readingOf(pump)
        },
        oracle: enter(readingOf(pump)),
        near: enter(readingOf(pump) + 1),
      }
    },
    limit: (d, { pumps: all }) => {
      const pump = d.pick(all)
      const wanted = wantedOf(pump)
      const edit = (value: number) => [
        look(),
        ...inTerminal(`sed -i 's/^${pump.name} = .*/${pump.name} = ${value}/' limits.conf; cat limits.conf`),
        done(),
      ]
      return {
        instruction: `The page shows what the limit of each pump should be. In the terminal, change the limit of the pump ${pump.name} in /workspace/limits.conf to that; change nothing else.`,
        files: (files) => ({
          ...files,
          'limits.conf': limitsFile(all.map((one) => (one.name === pump.name ? { ...one, limit: wanted } : one))),
        }),
        oracle: edit(wanted),
        near: edit(wanted + 1),
      }
    },
    'stop-highest': (_d, { pumps: all }) => {
      const byReading = all.toSorted((a, b) => readingOf(b) - readingOf(a))
      const [highest, next] = byReading
      const stop = (pump: Pump | undefined) => [
        ...inTerminal(`for p in ${all.map(({ name }) => name).join(' ')}; do sh meter.sh $p; done`),
        look(),
        click(`row ${q(pump?.name ?? '')} > button "Stop"`),
        done(),
      ]
      return {
        instruction:
          'Run "sh meter.sh PUMP" in the terminal for each pump of the page, and stop the one with the highest reading in the browser.',
        change: (s) => {
          for (const one of s.pumps) if (one.name === highest?.name) one.stopped = true
        },
        oracle: stop(highest),
        near: stop(next),
      }
    },
  },
})

/** A limit that differs from the one of the file. */
const wantedOf = ({ limit }: Pump): number => limit + 5
const limitsFile = (all: readonly Pump[]): string => all.map(({ name, limit }) => `${name} = ${limit}\n`).join('')

/** Types a line into the terminal, whose window is at the right of the screen. */
function inTerminal(line: string) {
  return [computer({ action: 'click', x: 1000, y: 600 }), write(`${line}\n`)]
}

function stationPage({ pumps: all }: Pumps, open: string) {
  const rows = all.map((pump) => {
    const { name, reading, stopped } = pump
    const stop = stopped ? 'stopped' : act('stop', 'Stop', { pump: name }, { plain: true })
    return { name, cells: [html`<a href="/?pump=${name}">${name}</a>`, wantedOf(pump), reading ?? 'none', stop] }
  })
  const chosen = all.find(({ name }) => name === open)
  return page({
    title: 'Pump station',
    bar: [['Pumps', '/']],
    body: html`${table(['Pump', 'Limit should be', 'Reading', ''], rows)}
    ${
      chosen !== undefined &&
      html`<h2>Reading of ${chosen.name}</h2>
        ${form(
          'reading',
          html`${hidden('pump', chosen.name)} ${field('Reading', 'reading', { size: 8 })} <button>Save</button>`,
        )}`
    }`,
  })
}
