import { memoryQueryOf, taskPage, taskPageView, taskQuery } from '../../read/index.ts'
import type { RlApi } from './api.ts'
import type { RlParts } from './contract.ts'

/** What is remembered of tasks. */
export function taskRoutes(api: RlApi, { reader }: RlParts): void {
  const listing = { name: 'tasks', says: 'Tasks by what is remembered of them', query: taskQuery, answer: taskPage }
  api.add('get', '/tasks', listing, async ({ query }) => {
    const { catalogue } = reader
    if (query.run !== undefined) await catalogue.run(query.run)
    return taskPageView(await catalogue.memory(memoryQueryOf(query)), catalogue)
  })
}
