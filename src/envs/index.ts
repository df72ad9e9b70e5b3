export { attempt, type AttemptOptions } from './attempt.ts'
export { packArtifact, restoreArtifact, unpackArtifact, withoutExcluded } from './artifacts.ts'
export type {
  ArtifactItem,
  Artifacts,
  Attempt,
  BoxContext,
  BoxNeeds,
  BroughtWork,
  CollectContext,
  Environment,
  EnvironmentScripts,
  GroupContext,
  GroupMember,
  LoadOptions,
  NamedScript,
  OutsideWork,
  PackedArtifact,
  Script,
  ScriptStep,
  TaskSteps,
  Tool,
  ToolContext,
  ToolOutcome,
  ToolPicture,
  VerifyContext,
} from './contract.ts'
export { defineEnvironment, type EnvironmentSpec, type TaskOf } from './define.ts'
export { DeferredTools } from './deferred.ts'
export type { Deferral } from './deferral.ts'
export type { Dice } from './dice.ts'
export { filesystemAmong } from './filesystem.ts'
export { type DesktopOptions, guiEnvironment, type GuiPlugins, loadGuiPlugins, serveDesktop } from './gui/index.ts'
export * as gui from './gui/kit.ts'
export {
  generatedLine,
  type GeneratedTask,
  type GeneratorSeed,
  type GeneratorSpec,
  type TaskGenerator,
} from './generate/index.ts'
export { loadJsonTasks } from './json-tasks.ts'
export { loadEach } from './load-each.ts'
export { environmentKit, type EnvironmentKit } from './kit.ts'
export {
  agentUser,
  openTaskBox,
  type OpenBoxOptions,
  prefetchTaskBox,
  setupNetwork,
  taskImage,
  verifierBoxes,
} from './open-box.ts'
export { nemoGymEnvironment, type NemoGymOptions } from './nemo-gym/index.ts'
export { openEnvEnvironment, type OpenEnvOptions, type OpenEnvServer, type ServerProgram } from './openenv/index.ts'
export { toolOutcome } from './outcome.ts'
export { type RanStep, runScript, scriptStepSchema, shellTool } from './run-script.ts'
export { type EnvironmentRegistry, type EnvironmentSource, registerEnvironments } from './registry.ts'
export { noteTags, sql } from './sql/index.ts'
export { wholeVerdict } from './steps.ts'
export { perAttempt } from './per-attempt.ts'
export {
  type Corpus,
  corpusAt,
  openCorpus,
  type Retriever,
  searchEnvironment,
  type SearchOptions,
  serveRetrieve,
} from './search/index.ts'
export { broughtItems } from './outside/index.ts'
export { type PublicNetwork, terminal, terminalEnvironment, type TerminalOptions } from './terminal/index.ts'
export { type ServedOpenEnv, serveOpenEnv, type ServeOpenEnvOptions } from './serve-openenv/index.ts'
export { defineTool, runToolCall, type ToolSpec } from './tool.ts'
export type { TaskAgent, TaskAgents, TaskAgentsSpec } from './agents.ts'
export { leaveWord, type Said, type TaskUser, type TaskUserSpec } from './user.ts'
export { type AnsweringModel, type RecordedResult, virtualTool, type VirtualToolSpec } from './virtual-tool.ts'
export { verifiersEnvironment, type VerifiersOptions } from './verifiers/index.ts'
export { type ValidateOptions, validateTasks, type ValidationRow, type ValidationStatus } from './validate.ts'
