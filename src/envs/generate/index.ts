export type { GeneratedTask, GeneratorSeed, GeneratorSpec, TaskGenerator } from './contract.ts'
export { generatedLine, readGenerated } from './file.ts'
export { generatedTasks, taskGenerator } from './generate.ts'
