// `prepublishOnly`: nobody publishes by hand, from a tree that no check has seen.
if (process.env['PADDOCK_RELEASE'] !== '1') {
  console.error('paddock: publishing is for the release job. Fix: push a tag; the job sets PADDOCK_RELEASE=1.')
  process.exit(1)
}
