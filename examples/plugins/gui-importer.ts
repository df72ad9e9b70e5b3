/** An importer of gui tasks: a file of questions about a small site that it holds itself. Listed under `gui.importers`. */
import { gui, makeTask, scored, sha256, z } from 'paddock-rl/environment'

const name = 'quiz'
const version = '1'
const own = { format: z.literal(name), pages: z.record(z.string(), z.string()) }
const data = gui.shownShape.extend({ ...own, answer: z.string() })
const set = gui.setShape.extend({
  ...own,
  questions: z.record(z.string(), z.strictObject({ ask: z.string(), answer: z.string() })),
})

export default gui.defineImporter({
  name,
  apiVersion: 1,
  verifierVersion: version,
  task: data,
  read: async ({ path, json }) => {
    if (typeof json !== 'object' || json === null || !('format' in json) || json.format !== name) return null
    const { questions, split, oracles, ...rest } = gui.fitted(
      set,
      json,
      path,
      'A quiz has pages, and questions with ask and answer.',
    )
    gui.requireKnown(path, oracles, Object.keys(questions))
    return Object.entries(questions).map(([question, { ask, answer }]) => {
      const oracle = oracles[question] ?? [gui.steps.look(), gui.steps.answer(answer)]
      const given = data.parse({ ...rest, answer, oracle })
      return makeTask({ name: question, environment: 'gui', instruction: ask, split, source: path, data: given })
    })
  },
  attempt: ({ data: { pages, ...shown } }, box) =>
    gui.openAttempt(box, shown, () => ({
      start: 'http://quiz.test/',
      serve: ({ url: { pathname } }) => ({
        status: 200,
        headers: { 'content-type': 'text/html' },
        body: pages[pathname] ?? '',
      }),
      state: () => null,
      forged: 0,
    })),
  verify: async ({ task, artifacts }) => {
    const { answer } = task.data
    const given = gui.fromArtifacts(artifacts).answer
    const verifier = { id: `gui/${name}`, version, sha256: sha256(answer) }
    return scored(given === answer ? 1 : 0, { verifier, trust: 'host', evidence: `answered ${JSON.stringify(given)}` })
  },
  scripts: {
    oracle: async (task) => gui.oracleScript(task),
    cheats: async () => [{ name: 'says-so', weight: 1, script: { steps: [gui.steps.answer('done')] } }],
  },
})
