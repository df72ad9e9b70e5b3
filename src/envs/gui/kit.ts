/**
 * What applications and importers of the environment `gui` are written with, Paddock's own among them: the namespace `gui`
 * of `paddock-rl/environment`. What an application needs is stable; what only an importer needs may change in any version.
 */
export {
  act,
  type App,
  type AppSpec,
  choice,
  cities,
  colours,
  defineApp,
  field,
  type Fields,
  type Files,
  firstName,
  form,
  type GoalPlan,
  hidden,
  Html,
  html,
  type HtmlPart,
  months,
  type NamedRow,
  page,
  type PageParts,
  people,
  type Plan,
  radios,
  type RunningApp,
  steps,
  table,
  things,
  tick,
} from './application/index.ts'
export type { Dice } from '../dice.ts'
export {
  asset,
  assetFile,
  defineImporter,
  type Elsewhere,
  fitted,
  forwardSite,
  type Found,
  Imported,
  type Importer,
  type ImporterSpec,
  type ImportOptions,
  invalid,
  measureElsewhere,
  oracleScript,
  type Place,
  programOf,
  readJson,
  requireKnown,
  requireTrust,
  screenShape,
  setShape,
  shownShape,
  type Sidecar,
  sidecarSchema,
} from './importer/index.ts'
export { type Action, parseAction, type Screen, type SingleAction } from './actions/index.ts'
export { adapterOf } from './adapters/index.ts'
export { guiBox as box, guiPrompt as prompt, guiTools as tools, openAttempt, type Shown } from './attempt.ts'
export { CdpRefusal, type GuiPage, type SiteRequest, type SiteResponse } from './browser/index.ts'
export {
  boxMachine,
  type Machine,
  type MachineBrowser,
  MachineSession,
  osworldMachine,
  withoutSudo,
} from './osworld/index.ts'
export { fromArtifacts, type GuiRecord, toArtifact } from './record.ts'
export type { GuiSession } from './session.ts'
export type { TaskSite } from './site.ts'
export { adaptedTool, type ComputerSession, computerTool } from './tools/index.ts'
export { guiVerifierVersion as verifierVersion } from './verify.ts'
