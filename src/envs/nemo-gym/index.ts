export { nemoGymEnvironment, type NemoGymOptions } from './environment.ts'
