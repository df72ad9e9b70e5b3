/** Vitest's environment for Node. When it ends, it closes what the test files shared (`test/fixtures/per-worker.ts`). */
import { builtinEnvironments, type Environment } from 'vitest/runtime'
import { beginWorker, endWorker } from '../fixtures/per-worker.ts'

const { node } = builtinEnvironments

const worker: Environment = {
  ...node,
  name: 'worker',
  setup: async (global, options) => {
    const { teardown } = await node.setup(global, options)
    beginWorker()
    return {
      teardown: async (ended) => {
        await endWorker()
        await teardown(ended)
      },
    }
  },
}

export default worker
