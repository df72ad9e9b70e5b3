/** The snapshot of the public surface, as `scripts/house surface` writes it. */
export const surfaceFile = 'docs/reference/surface.txt'
