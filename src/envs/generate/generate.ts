import { type GeneratedPlace, makeTask, PaddockError, placeText, type Task } from '../../core/index.ts'
import type { LoadOptions } from '../contract.ts'
import { refuserOf } from '../refuse.ts'
import type { GeneratorSpec, TaskGenerator } from './contract.ts'

/** A generator of an environment; `check` throws for data that does not fit. */
export function taskGenerator<Data>(
  spec: GeneratorSpec<Data>,
  o: { readonly environment: string; readonly check: (task: Task) => void },
): TaskGenerator {
  const { name, levels } = spec
  return {
    name,
    levels,
    generate: async (at) => {
      const { seed, level } = at
      if (!Number.isSafeInteger(seed) || seed < 0 || !Number.isInteger(level) || level < 1 || level > levels) {
        throw new PaddockError('TASK_INVALID', `The generator ${name} has no task of seed ${seed} at level ${level}`, {
          data: { generator: name, seed, level },
          fix: `Seeds are whole numbers from 0, levels go from 1 to ${levels}.`,
        })
      }
      const { instruction, data } = await spec.generate(at)
      const task = makeTask({
        name: `${name}-${seed}-l${level}`,
        environment: o.environment,
        instruction,
        split: 'train',
        data,
        source: placeText({ name, seeds: [seed, seed], levels: [level, level] }),
      })
      o.check(task)
      return task
    },
  }
}

/** The tasks of a place, level by level. Throws `TASK_INVALID` where it is no place of one of these, and what generating throws. */
export async function generatedTasks(
  generators: readonly TaskGenerator[],
  place: GeneratedPlace,
  o: LoadOptions & { readonly environment: string },
): Promise<readonly Task[]> {
  const generator = generators.find(({ name }) => name === place.name)
  if (generator === undefined) {
    throw new PaddockError('TASK_INVALID', `The environment ${o.environment} has no generator ${place.name}`, {
      data: { environment: o.environment, generator: place.name },
      fix:
        generators.length === 0
          ? 'It generates no tasks: give their directory.'
          : `It has ${generators.map(({ name }) => name).join(', ')}.`,
    })
  }
  const refuse = refuserOf(o)
  const tasks: Task[] = []
  for (let level = place.levels[0]; level <= place.levels[1]; level += 1) {
    for (let seed = place.seeds[0]; seed <= place.seeds[1]; seed += 1) {
      o.signal?.throwIfAborted()
      try {
        tasks.push(await generator.generate({ seed, level, ...(o.signal === undefined ? {} : { signal: o.signal }) }))
      } catch (error) {
        refuse(`${place.name}-${seed}-l${level}`, error)
      }
    }
  }
  return tasks
}
