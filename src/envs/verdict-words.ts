import type { VerdictDraft } from '../reward/index.ts'

/** Status and number. */
export function shortOf({ status, reward }: VerdictDraft): string {
  return reward === null ? status : `${status} ${reward}`
}

/** A verdict with what speaks for it: why there is no number, what was tampered with, or what the tests said last. */
export function wordsOf(verdict: VerdictDraft): string {
  const why = verdict.reward === null ? verdict.reason : verdict.evidence
  const signs =
    verdict.status === 'hacked' ? verdict.evidence.split('\n').filter((line) => line.startsWith('tampered: ')) : []
  const words = signs.length > 0 ? signs.slice(0, 3).join(', ') : lastWords(why)
  return words === '' ? shortOf(verdict) : `${shortOf(verdict)}: ${words}`
}

/** What failed, in the words of pytest or TAP where they are there, else the last lines that say something; one short line. */
export function lastWords(text: string): string {
  const lines = text.split('\n')
  const failed = lines.find((one) => /^(?:E {3}|FAILED |not ok )/.test(one))?.trim()
  const last = lines.map((one) => one.trim()).filter((one) => one !== '')
  const line = failed ?? last.slice(-2).join(' / ')
  return line.length <= 240 ? line : `…${line.slice(-239)}`
}
