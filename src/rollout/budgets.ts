import { availableParallelism } from 'node:os'
import { stageBudgets } from '../config/index.ts'
import type { StageBudgets, WorkerLimits } from './contract.ts'

/** An agent mostly waits for the model, so there are more of them than cores. */
export function defaultLimits(cores: number = availableParallelism()): WorkerLimits {
  return { boot: 2, agent: 2 * cores, verify: 2 }
}

/** Budgets of a run. Null: the run says nothing of it, and the task may. */
export interface RunBudgets extends Omit<StageBudgets, 'agentMs' | 'verifyMs'> {
  readonly agentMs: number | null
  readonly verifyMs: number | null
}

export function runBudgets(asked: Partial<StageBudgets>): RunBudgets {
  return { ...stageBudgets, ...asked, agentMs: asked.agentMs ?? null, verifyMs: asked.verifyMs ?? null }
}

/** Milliseconds of a stage of which task and run may both say something: the shorter one, else the default. */
export function stageMs(stage: 'agentMs' | 'verifyMs', task: number | null, run: RunBudgets): number {
  const said = [task, run[stage]].filter((ms) => ms !== null)
  return said.length === 0 ? stageBudgets[stage] : Math.min(...said)
}
