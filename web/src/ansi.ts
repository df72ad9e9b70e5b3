/** Colours of terminal output, as classes. Recorded text is data: nothing of it is obeyed, and what is no colour is dropped. */

/** A run of text with the same look. */
export interface Styled {
  readonly text: string
  /** Fixed names, made of nothing that was recorded. */
  readonly look: string
}

const names = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'] as const

// Control sequences (ECMA-48): CSI with its parameters; OSC, DCS, SOS, PM and APC with their strings; other two-character escapes.
const sequence =
  // oxlint-disable-next-line no-control-regex -- these are what it is for
  /\u001b\[([0-?]*)[ -/]*([@-~])|\u001b[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\|$)|\u001b[ -/]*[0-~]|\u001b/g

/** Most runs of one text; behind them all has one look. */
const mostRuns = 400

/** Cuts output into runs. Carriage returns begin their line anew, as a terminal would have it. */
export function styled(output: string): readonly Styled[] {
  const runs: Styled[] = []
  let look = ''
  let at = 0
  const take = (text: string): void => {
    if (text === '') return
    const last = runs.at(-1)
    if (last !== undefined && (last.look === look || runs.length >= mostRuns)) {
      runs[runs.length - 1] = { text: last.text + text, look: last.look }
    } else runs.push({ text, look })
  }
  const text = overwritten(output)
  for (const match of text.matchAll(sequence)) {
    take(text.slice(at, match.index))
    at = match.index + match[0].length
    if (match[2] === 'm') look = lookAfter(look, match[1] ?? '')
  }
  take(text.slice(at))
  return runs
}

/** Of a line that was written over, what was written last. */
function overwritten(text: string): string {
  return text.replaceAll(/\r+\n/g, '\n').replaceAll(/[^\n\r]*\r(?=[^\n\r])/g, '')
}

/** Select Graphic Rendition: bold and the eight colours, bright ones as the plain. Others are passed over with their parameters. */
function lookAfter(before: string, parameters: string): string {
  let isBold = before.includes('bold')
  let colour = names.find((name) => before.includes(name)) ?? null
  const codes = parameters.split(/[;:]/).map(Number)
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at] ?? 0
    if (code === 0) {
      isBold = false
      colour = null
    } else if (code === 1) isBold = true
    else if (code === 22) isBold = false
    else if (code === 39) colour = null
    else if (code >= 30 && code <= 37) colour = names[code - 30] ?? null
    else if (code >= 90 && code <= 97) colour = names[code - 90] ?? null
    else if (code === 38 || code === 48) at += codes[at + 1] === 5 ? 2 : 4
  }
  return [isBold ? 'bold' : '', colour ?? ''].filter((one) => one !== '').join(' ')
}
