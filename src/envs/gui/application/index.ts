export {
  type App,
  type AppSpec,
  defineApp,
  type Fields,
  type Files,
  type GoalPlan,
  type Plan,
  type RunningApp,
} from './app.ts'
export { Html, html, type HtmlPart } from './html.ts'
export { act, choice, field, form, hidden, page, type PageParts, radios, tick } from './page.ts'
export { type AppSite, appSite } from './site.ts'
export * as steps from './steps.ts'
export { type NamedRow, table } from './table.ts'
export { cities, colours, firstName, months, people, things } from './words.ts'
