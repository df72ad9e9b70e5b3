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
export { type AppSite, appSite } from './site.ts'
export { Html, html, type HtmlPart } from './html.ts'
export { act, choice, field, form, hidden, page, pageMark, radios, tick } from './page.ts'
export * as steps from './steps.ts'
export { table } from './table.ts'
export { cities, colours, firstName, months, people, things } from './words.ts'
