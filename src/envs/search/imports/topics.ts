/** A question of a retrieval collection: no answer, only an id and a text. */
export interface Topic {
  readonly id: string
  readonly text: string
}

/**
 * TREC topics: SGML (`<top> <num> Number: 301 <title> …`, closing tags or none, the title is the question), or
 * `id<TAB>text` lines as MS MARCO has them. Empty when it is neither.
 */
export function parseTopics(text: string): readonly Topic[] {
  if (/<top>/i.test(text)) return text.split(/<top>/i).slice(1).flatMap(topicOf)
  return text.split('\n').flatMap((line) => {
    const tab = line.indexOf('\t')
    return tab === -1 ? [] : [{ id: line.slice(0, tab).trim(), text: line.slice(tab + 1).trim() }]
  })
}

function topicOf(block: string): readonly Topic[] {
  const field = (name: string) => new RegExp(`<${name}>([^<]*)`, 'i').exec(block)?.[1]?.replaceAll(/\s+/g, ' ').trim()
  const id = field('num')?.replace(/^Number:\s*/i, '')
  const text = field('title')?.replace(/^Topic:\s*/i, '')
  return id === undefined || text === undefined || text === '' ? [] : [{ id, text }]
}
