import { PaddockError } from '../../core/index.ts'
import type { OutsideWork } from '../contract.ts'
import type { TaskOf } from '../define.ts'
import type { SearchData } from './data.ts'
import { parseRecord, recordPath, toArtifact } from './record.ts'

/** An answer alone, where the task asks for no more; else the record of the searches, in the words of Paddock's own. */
export function outsideWork({ name, data }: TaskOf<SearchData>): OutsideWork {
  const { preset } = data.scoring
  return {
    places: [recordPath],
    artifacts: ({ items, answer }) => {
      const [file] = items.flatMap(({ content }) => content.entries)
      if (answer !== null && file === undefined) {
        if (preset !== 'answer') throw refused(`${name} is scored (${preset}) by what was found and cited, too`)
        return { items: [toArtifact({ searches: [], opened: [], answer: { text: answer, citations: [] } })] }
      }
      if (answer !== null) throw refused('An answer beside a record is the one that stands in the record')
      const record = file?.type === 'file' ? parseRecord(file.data) : null
      if (record === null) throw refused(`${recordPath.slice(1)} is no record`)
      return { items: [toArtifact(record)] }
    },
  }
}

function refused(what: string): PaddockError {
  return new PaddockError('WORK_REFUSED', `${what}.`, {
    fix: `Bring ${recordPath.slice(1)} in the archive: {"searches": [{"query", "hits": [ids]}], "opened": [ids], "answer": {"text", "citations": [ids]}}.`,
  })
}
