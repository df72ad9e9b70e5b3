/** Runs the benches that need a real vLLM at their smoke size. */
import { describe } from 'vitest'
import { smokeBenches } from '../lab/benches.ts'
import { cache } from './vllm.ts'

describe.skipIf(cache === '')('with a real vLLM', () => smokeBenches('real'))
