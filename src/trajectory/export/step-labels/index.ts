export { stepLabelsExporter } from './step-labels.ts'
