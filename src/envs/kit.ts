import { z } from 'zod'
import { makeTask, PaddockError, sha256 } from '../core/index.ts'
import {
  answerContains,
  answerF1,
  answerMatch,
  citationsGrounded,
  compareTables,
  compose,
  createJudge,
  directoryCache,
  duplicateQueries,
  evidenceRecall,
  exact,
  hacked,
  jsonEqual,
  jsonSchema,
  loadRubric,
  math,
  mathVerify,
  numeric,
  overSearch,
  regex,
  runCheck,
  scored,
  set,
  sqlPresets,
  stepsByStatus,
  unscored,
} from '../reward/index.ts'
import { packArtifact, restoreArtifact } from './artifacts.ts'
import type { Artifacts } from './contract.ts'
import { defineEnvironment } from './define.ts'
import { dice } from './dice.ts'
import * as gui from './gui/kit.ts'
import { loadJsonTasks } from './json-tasks.ts'
import { nemoGymEnvironment } from './nemo-gym/index.ts'
import { openEnvEnvironment } from './openenv/index.ts'
import { toolOutcome } from './outcome.ts'
import { perAttempt } from './per-attempt.ts'
import { defineTool } from './tool.ts'
import { verifiersEnvironment } from './verifiers/index.ts'
import { virtualTool } from './virtual-tool.ts'

/**
 * What a plugin is written with. A plugin's module exports a function that takes this kit, so that it imports nothing of
 * Paddock at run time: it works from any path, and there is one Paddock only.
 */
export const environmentKit = {
  z,
  defineEnvironment,
  defineTool,
  virtualTool,
  gui,
  nemoGymEnvironment,
  openEnvEnvironment,
  verifiersEnvironment,
  toolOutcome,
  perAttempt,
  makeTask,
  loadJsonTasks,
  dice,
  packArtifact,
  restoreArtifact,
  artifactText,
  scored,
  hacked,
  unscored,
  stepsByStatus,
  compose,
  runCheck,
  createJudge,
  loadRubric,
  directoryCache,
  rules: {
    exact,
    numeric,
    regex,
    set,
    jsonEqual,
    jsonSchema,
    math,
    mathVerify,
    answerMatch,
    answerF1,
    answerContains,
    evidenceRecall,
    citationsGrounded,
    duplicateQueries,
    overSearch,
    compareTables,
    sqlPresets,
  },
  sha256,
  PaddockError,
} as const

export type EnvironmentKit = typeof environmentKit

/** The text of the one file that was taken from `path`; null when the agent left none there. */
function artifactText(artifacts: Artifacts, path: string): string | null {
  const entries = artifacts.items.find((item) => item.path === path)?.content.entries ?? []
  const file = entries.find((entry) => entry.type === 'file')
  return file?.type === 'file' && entries.length === 1 ? new TextDecoder().decode(file.data) : null
}
