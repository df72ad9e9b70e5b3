/** A file leaves the environment of its process as it found it: the next one may be in the same process. */
import { afterAll } from 'vitest'

const before = { ...process.env }
const directory = process.cwd()
afterAll(() => {
  for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name]
  Object.assign(process.env, before)
  if (process.cwd() !== directory) process.chdir(directory)
})
