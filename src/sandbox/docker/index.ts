export { type DockerProviderOptions, dockerProvider } from './provider.ts'
