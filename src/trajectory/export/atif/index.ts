export { atifExporter } from './atif.ts'
