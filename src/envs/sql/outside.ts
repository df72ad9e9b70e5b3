import { posix } from 'node:path'
import { PaddockError } from '../../core/index.ts'
import type { ArtifactItem, OutsideWork } from '../contract.ts'
import { submissionPath } from './box.ts'

/** What `submit_sql` takes, in characters. */
const longest = 65_536

/** A submission as an answer, or as the file that `submit_sql` would have written. */
export const outsideWork: OutsideWork = {
  places: [submissionPath],
  artifacts: ({ items, answer }) => {
    if (answer !== null && items.length > 0) throw refused('comes as an answer and as a file: bring one of them')
    const found = answer === null ? items : [submission(answer)]
    const [file] = found.flatMap(({ content }) => content.entries)
    if (file?.type !== 'file') throw refused(`is one file, ${submissionPath}, or an answer`)
    if (new TextDecoder().decode(file.data).length > longest) throw refused(`has at most ${longest} characters`)
    return { items: found }
  },
}

function submission(sql: string): ArtifactItem {
  const data = Buffer.from(sql)
  const entries = [{ type: 'file' as const, path: posix.basename(submissionPath), mode: 0o644, data }]
  return {
    path: submissionPath,
    content: { found: true, entries, refused: [], cutShort: false, totalBytes: data.length },
  }
}

function refused(why: string): PaddockError {
  return new PaddockError('WORK_REFUSED', `A submission ${why}.`, {
    fix: 'Bring the statement or script as the answer.',
  })
}
