export { dockerDesk } from './desk.ts'
export { sandboxSource } from './recipe.ts'
export { type DockerProviderOptions, dockerProvider } from './provider.ts'
